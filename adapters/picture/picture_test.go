package picture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	adapter "dropbell/adapters/picture"
	"dropbell/domain/fault"
	"dropbell/domain/picture"
)

// drawn is a picture with a red left half and a blue right half.
func drawn(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, map[bool]color.NRGBA{true: {255, 0, 0, 255}, false: {0, 0, 255, 255}}[x < width/2])
		}
	}
	return img
}

func encoded(t *testing.T, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// photograph is a JPEG with an Exif segment that says how it must be turned and has a text.
func photograph(t *testing.T, orientation byte, img image.Image) []byte {
	raw := encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) })
	tiff := []byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 18, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0}
	exif := append(append([]byte("Exif\x00\x00"), tiff...), []byte("31.2304 N, 121.4737 E")...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return append(append(append([]byte{}, raw[:2]...), append(segment, exif...)...), raw[2:]...)
}

// bomb is a PNG whose header promises a huge picture.
func bomb(width, height uint32) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), width), height)
	head = append(head, 8, 6, 0, 0, 0)
	raw := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(head))
}

func TestConvert(t *testing.T) {
	transparent := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	frames := &gif.GIF{Delay: []int{1, 1}}
	for range 2 {
		frames.Image = append(frames.Image, image.NewPaletted(image.Rect(0, 0, 30, 10), color.Palette{color.White, color.Black}))
	}
	for name, c := range map[string]struct {
		content       []byte
		kind          string
		width, height int
	}{
		"photograph":       {encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, drawn(60, 30), nil) }), "jpeg", 60, 30},
		"turned right":     {photograph(t, 6, drawn(60, 30)), "jpeg", 30, 60},
		"upside down":      {photograph(t, 3, drawn(60, 30)), "jpeg", 60, 30},
		"wide":             {encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, drawn(3000, 100), nil) }), "jpeg", 1200, 40},
		"drawing":          {encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, drawn(60, 30)) }), "png", 60, 30},
		"transparent":      {encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, transparent) }), "png", 40, 20},
		"GIF of 2 frames":  {encoded(t, func(b *bytes.Buffer) error { return gif.EncodeAll(b, frames) }), "png", 30, 10},
		"WebP of 1 × 1":    {[]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"), "png", 1, 1},
		"metadata is junk": {append([]byte("\xff\xd8\xff\xe1\x00\x0aExif\x00\x00\xff\xff"), encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, drawn(60, 30), nil) })[2:]...), "jpeg", 60, 30},
	} {
		got, err := adapter.NewConverter().Convert(t.Context(), c.content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		img, kind, err := image.Decode(bytes.NewReader(got.Content))
		if err != nil || kind != c.kind || got.Type != c.kind || got.Width != c.width || got.Height != c.height || img.Bounds().Dx() != c.width || img.Bounds().Dy() != c.height {
			t.Errorf("%s: %s %s %d × %d, %v", name, kind, got.Type, got.Width, got.Height, err)
		}
		if bytes.Contains(got.Content, []byte("Exif")) || bytes.Contains(got.Content, []byte("121.4737")) {
			t.Errorf("%s: the metadata is still there", name)
		}
		if r, _, b, _ := img.At(2, c.height-3).RGBA(); name == "upside down" && (b < r || b < 0x8000) {
			t.Errorf("%s: the lower left corner is %x %x", name, r, b)
		}
	}
}

func TestRefused(t *testing.T) {
	good := encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, drawn(60, 30)) })
	for name, c := range map[string]struct {
		content []byte
		rule    string
	}{
		"empty":      {nil, "rule.picture_type"},
		"SVG":        {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), "rule.picture_type"},
		"HTML":       {[]byte("<html><script>alert(1)</script>"), "rule.picture_type"},
		"PDF":        {[]byte("%PDF-1.7"), "rule.picture_type"},
		"wide bomb":  {bomb(100_000, 10), "rule.picture_pixels"},
		"large bomb": {bomb(12_000, 12_000), "rule.picture_pixels"},
		"cut off":    {good[:len(good)-30], "rule.picture_broken"},
	} {
		_, err := adapter.NewConverter().Convert(t.Context(), c.content)
		var fields *fault.Fields
		if !errors.As(err, &fields) || fields.List[0].Key != c.rule || fields.List[0].Name != "file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzConvert: no content crashes the converter or makes a picture that is too large.
func FuzzConvert(f *testing.F) {
	f.Add(bomb(10, 10))
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x0aExif\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := adapter.NewConverter().Convert(t.Context(), content)
		if err == nil && (got.Width > picture.FitWidth || got.Height > picture.FitHeight || len(got.Content) == 0) {
			t.Errorf("%d × %d, %d bytes", got.Width, got.Height, len(got.Content))
		}
		if fault.KindOf(err) == 0 && err != nil {
			t.Errorf("%v is no refusal", err)
		}
	})
}
