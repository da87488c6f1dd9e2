package picture_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"testing"

	pictures "dropbell/adapters/picture"
	"dropbell/domain/picture"
)

// memory keeps one file and counts how often it is read.
type memory struct {
	picture.Files
	content []byte
	read    int
}

func (m *memory) Get(_ context.Context, p picture.Picture) ([]byte, error) {
	if m.read++; p.Shop != 10 || p.Type != "png" {
		return nil, picture.ErrNotFound
	}
	return m.content, nil
}

// A strip is the middle of a stored picture, made once. Pictures of other servers have none.
func TestStrips(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 400, 400))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 150, 400, 250), image.NewUniform(color.NRGBA{200, 0, 0, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	files := &memory{content: b.Bytes()}
	s := &pictures.Strips{Files: files, Converter: pictures.NewConverter(), Public: "https://drop.example/"}
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for range 2 {
		made, err := s.Of(t.Context(), "https://drop.example/pictures/10/"+hash+".png")
		if err != nil || len(made) != 2 {
			t.Fatalf("%d files, %v", len(made), err)
		}
		for name, size := range map[string]image.Point{"strip.png": {X: 375, Y: 144}, "strip@2x.png": {X: 750, Y: 288}} {
			strip, err := png.Decode(bytes.NewReader(made[name]))
			if err != nil || strip.Bounds().Size() != size {
				t.Fatalf("%s: %v, %v", name, strip.Bounds(), err)
			}
			if r, g, _, _ := strip.At(size.X/2, size.Y/2).RGBA(); r < 0xb000 || g > 0x1000 {
				t.Errorf("%s does not show the middle", name)
			}
		}
	}
	if files.read != 1 {
		t.Errorf("the file was read %d times", files.read)
	}
	for _, other := range []string{"https://shop.example/c.png", "https://drop.example/pictures/10/x.png", "https://drop.example/pictures/10/" + hash + ".gif", ""} {
		if made, err := s.Of(t.Context(), other); made != nil || err != nil {
			t.Errorf("%q: %d files, %v", other, len(made), err)
		}
	}
	if _, err := s.Of(t.Context(), "https://drop.example/pictures/11/"+hash+".png"); err == nil {
		t.Error("a picture that is gone has a strip")
	}
}
