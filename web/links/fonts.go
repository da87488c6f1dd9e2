package links

import (
	_ "embed"
	"image"
	"strings"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// hanTTF has the characters of GB 2312 and the frequent characters of Big5; see glyphs/README.md.
//
//go:embed glyphs/droid-sans-fallback.ttf
var hanTTF []byte

// fonts write Latin, Greek and Cyrillic text, Chinese text and kana.
type fonts struct{ regular, bold, han *opentype.Font }

func openFonts() (f fonts, err error) {
	for font, file := range map[**opentype.Font][]byte{&f.regular: goregular.TTF, &f.bold: gobold.TTF, &f.han: hanTTF} {
		if *font, err = opentype.Parse(file); err != nil {
			return f, err
		}
	}
	return f, nil
}

// has reports whether the font has a glyph for r.
func has(f *opentype.Font, r rune) bool {
	i, err := f.GlyphIndex(nil, r)
	return err == nil && i != 0
}

// drawable returns the text with plain spaces and without symbols that the fonts lack, such as emoji.
// It returns "" if they lack a letter, a digit or a punctuation mark: a part of a name would be another name.
func (f fonts) drawable(latin *opentype.Font, text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case has(latin, r), has(f.han, r):
			b.WriteRune(r)
		case !unicode.In(r, unicode.So, unicode.Sk, unicode.Cf, unicode.Me, unicode.Variation_Selector):
			return ""
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// words divides a text where a line may end: after spaces, and beside Chinese characters and their
// punctuation marks. No part begins with a closing mark or ends with an opening one.
func words(text string) (list []string) {
	wide := func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
	}
	opening := func(r rune) bool { return unicode.In(r, unicode.Ps, unicode.Pi) }
	var before rune
	for _, r := range text {
		closing := r == ' ' || unicode.IsPunct(r) && !opening(r)
		if len(list) == 0 || before == ' ' || !closing && !opening(before) && (wide(before) || wide(r)) {
			list = append(list, "")
		}
		list[len(list)-1] += string(r)
		before = r
	}
	return list
}

// face returns a face that takes the glyphs that latin lacks from the Chinese font.
func (f fonts) face(latin *opentype.Font, size float64) (font.Face, error) {
	options := &opentype.FaceOptions{Size: size, DPI: 72}
	first, err := opentype.NewFace(latin, options)
	if err != nil {
		return nil, err
	}
	second, err := opentype.NewFace(f.han, options)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	return mixed{first, second, latin}, nil
}

// mixed is a face over two fonts. Its metrics are the metrics of the first.
type mixed struct {
	font.Face
	other font.Face
	latin *opentype.Font
}

func (m mixed) of(r rune) font.Face {
	if has(m.latin, r) {
		return m.Face
	}
	return m.other
}

// Close closes both faces.
func (m mixed) Close() error {
	_ = m.other.Close() // neither fails
	return m.Face.Close()
}

// Glyph returns the glyph of the font that has r.
func (m mixed) Glyph(dot fixed.Point26_6, r rune) (image.Rectangle, image.Image, image.Point, fixed.Int26_6, bool) {
	return m.of(r).Glyph(dot, r)
}

// GlyphBounds is [mixed.Glyph] without the picture.
func (m mixed) GlyphBounds(r rune) (fixed.Rectangle26_6, fixed.Int26_6, bool) {
	return m.of(r).GlyphBounds(r)
}

// GlyphAdvance returns how far the glyph moves the dot.
func (m mixed) GlyphAdvance(r rune) (fixed.Int26_6, bool) { return m.of(r).GlyphAdvance(r) }

// Kern returns the correction between two glyphs of the first font; between two fonts there is none.
func (m mixed) Kern(a, b rune) fixed.Int26_6 {
	if has(m.latin, a) && has(m.latin, b) {
		return m.Face.Kern(a, b)
	}
	return 0
}
