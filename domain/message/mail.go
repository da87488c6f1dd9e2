package message

import (
	_ "embed"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// compiledMail is the output of `go tool task generate:mail` for mail.mjml.
//
//go:embed mail.html
var compiledMail string

// MaxMail bounds the page of a mail, in bytes: mail programs clip longer ones.
const MaxMail = 100_000

// The colours of a shop without a brand of its own, and of words on a light card.
const (
	defaultColour = "#c2410c"
	darkWords     = "#161a22"
)

// fragments returns the parts of a mail by the names of their block comments. "head" is the part
// before the first comment.
func fragments() map[string]string {
	list := map[string]string{}
	_, page, _ := strings.Cut(compiledMail, "\n") // the first line names the source
	name := "head"
	for page != "" {
		text, rest, more := strings.Cut(page, "<!--block:")
		list[name] = text
		if !more {
			break
		}
		name, page, _ = strings.Cut(rest, "-->")
	}
	return list
}

// mailOf returns the page and the plain text of a mail: its blocks, with the shop's logo before
// and the closing part after them.
func mailOf(k Kind, lang string, title Pattern, blocks []Block, brand Shop) (page, plainText Pattern) {
	blocks = blocks[:min(len(blocks), MaxBlocks)] // saving refuses more
	m := mailWriter{kind: k, parts: fragments(), named: slices.ContainsFunc(blocks, func(b Block) bool { return b.names(k) })}
	colour := brand.Colour
	if !ValidColour(colour) {
		colour = defaultColour
	}
	m.coupon = brand.Coupon
	m.colours = strings.NewReplacer("#b00001", colour, "#b00002", WordsOn(colour), "#b00003", wordsLike(colour))
	titled := escaped(title)
	m.write("head", map[string]Pattern{"MAILTITLE": titled, "LANGUAGE": literal(html.EscapeString(lang)), "PREHEADER": escaped(oneLine(patternOf(brand.Preheader, k)))})
	m.write("top", nil)
	if brand.Logo != "" {
		m.write("logo", map[string]Pattern{"https://mail.invalid/SOURCE": literal(html.EscapeString(brand.Logo)), "CONTENT": variableIn(VarShop)})
	}
	for _, b := range blocks {
		if b.Type != Footer {
			m.block(b)
		}
	}
	m.write("bottom", nil)
	for _, b := range blocks {
		if b.Type == Footer {
			m.block(b)
		}
	}
	if brand.Postal != "" {
		lines := strings.Split(brand.Postal, "\n")
		m.say(part{literal: brand.Postal})
		for i := range lines {
			lines[i] = html.EscapeString(lines[i])
		}
		m.write("footer", map[string]Pattern{"CONTENT": literal(strings.Join(lines, "<br>"))})
	}
	m.write("end", nil)
	return Pattern{m.page}, Pattern{m.plain}
}

// mailWriter collects the two forms of a mail.
type mailWriter struct {
	kind    Kind
	parts   map[string]string
	colours *strings.Replacer
	page    []part
	plain   []part
	// named says that a heading or text of the mail has the drop's name, so that the coupon card
	// does not repeat it.
	named bool
	// coupon is the picture above the coupon card; the zero Block = none.
	coupon Block
}

// names reports whether the block shows the name of the drop to every reader.
func (b Block) names(k Kind) bool {
	return (b.Type == Heading || b.Type == Words) && slices.Contains(patternOf(b.Text, k).Uses(false), VarDrop)
}

func (m *mailWriter) block(b Block) {
	p := patternOf(b.Text, m.kind)
	switch b.Type {
	case Heading:
		m.write("heading", map[string]Pattern{"CONTENT": escaped(p)})
		m.say(p.parts...)
	case Words:
		page, text := formatted(p)
		m.write("text", map[string]Pattern{"CONTENT": page})
		m.say(text.parts...)
	case Footer:
		page, text := formatted(p)
		m.write("footer", map[string]Pattern{"CONTENT": page})
		m.say(text.parts...)
	case Image:
		m.image(p, b.URL)
	case Button:
		// The whole block is optional: without a link there is no button.
		from := len(m.page)
		m.write("button", map[string]Pattern{"https://mail.invalid/TARGET": variableIn(VarLink), "CONTENT": escaped(p)})
		m.page = append(m.page[:from:from], part{group: m.page[from:]})
		m.say(part{group: append(append([]part{}, p.parts...), part{literal: ": "}, part{variable: VarLink})})
	case Coupon:
		if m.coupon.URL != "" {
			m.image(literal(m.coupon.Text), m.coupon.URL)
		}
		at := []part{{group: []part{{variable: VarOpensAt, escape: inHTML}}}}
		if m.named {
			m.write("coupon", map[string]Pattern{"WORTH": variableIn(VarWorth), "NAME": {}, "WHEN": {at}})
			m.say(part{group: []part{{variable: VarWorth}, {literal: "\n"}}}, part{group: []part{{variable: VarOpensAt}}})
			return
		}
		name := Pattern{[]part{{literal: `<div style="font-size:16px;font-weight:600;">`}, {variable: VarDrop, escape: inHTML}, {literal: "</div>"}}}
		m.write("coupon", map[string]Pattern{"WORTH": variableIn(VarWorth), "NAME": name, "WHEN": {at}})
		m.say(part{group: []part{{variable: VarWorth}, {literal: " · "}}}, part{variable: VarDrop}, part{group: []part{{literal: "\n"}, {variable: VarOpensAt}}})
	}
}

func (m *mailWriter) image(alt Pattern, address string) {
	m.write("image", map[string]Pattern{"https://mail.invalid/SOURCE": literal(html.EscapeString(address)), "CONTENT": escaped(alt)})
}

// say adds a paragraph to the plain text.
func (m *mailWriter) say(parts ...part) {
	if len(m.plain) > 0 && len(parts) > 0 {
		m.plain = append(m.plain, part{literal: "\n\n"})
	}
	m.plain = append(m.plain, parts...)
}

// write adds a fragment with its places filled in.
func (m *mailWriter) write(name string, places map[string]Pattern) {
	rest := m.colours.Replace(m.parts[name])
	for rest != "" {
		first, place := len(rest), ""
		for p := range places {
			if at := strings.Index(rest, p); at >= 0 && at < first {
				first, place = at, p
			}
		}
		m.page = append(m.page, part{literal: rest[:first]})
		if place == "" {
			return
		}
		m.page = append(m.page, places[place].parts...)
		rest = rest[first+len(place):]
	}
}

func literal(s string) Pattern { return Pattern{[]part{{literal: s}}} }

func variableIn(name string) Pattern { return Pattern{[]part{{variable: name, escape: inHTML}}} }

// escaped returns a plain text as a part of a page.
func escaped(p Pattern) Pattern { return Pattern{escapedParts(p.parts)} }

func escapedParts(parts []part) []part {
	list := make([]part, len(parts))
	for i, q := range parts {
		q.literal, q.escape = html.EscapeString(q.literal), inHTML
		if q.group != nil {
			q.group = escapedParts(q.group)
		}
		list[i] = q
	}
	return list
}

// ValidColour reports whether s is a colour such as "#c2410c".
func ValidColour(s string) bool {
	if len(s) != 7 || s[0] != '#' {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 16, 32)
	return err == nil && !strings.ContainsAny(s, "+-_")
}

// Contrast returns the contrast of two valid colours as WCAG 2 defines it, from 1 to 21.
func Contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(colour string) float64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	part := func(shift uint) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

// readableContrast is the contrast that WCAG 2 requires of text at level AA.
const readableContrast = 4.5

// WordsOn returns the text colour for a button of the given colour: white if it is readable,
// otherwise nearly black. One of them is always readable.
func WordsOn(colour string) string {
	if Contrast(colour, "#ffffff") >= readableContrast {
		return "#ffffff"
	}
	return "#000000"
}

// wordsLike returns colour as the text colour on a light ground, or nearly black if colour is not
// readable there.
func wordsLike(colour string) string {
	if Contrast(colour, "#f6f1ee") >= readableContrast {
		return colour
	}
	return darkWords
}
