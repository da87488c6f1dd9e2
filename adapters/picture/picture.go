// Package picture converts uploaded pictures. Nothing of the uploaded file is stored: the picture
// is decoded and encoded again.
package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"github.com/kovidgoyal/imaging"
	"github.com/kovidgoyal/imaging/prism/meta/autometa"

	"dropbell/domain/fault"
	"dropbell/domain/picture"
)

const (
	quality = 85
	// maxLossless is the size from which on an opaque picture is stored as a JPEG, in bytes.
	maxLossless = 400 << 10
)

// Converter converts one picture at a time, since a decoded picture takes up to 300 MB.
type Converter struct{ turn chan struct{} }

// NewConverter returns a converter.
func NewConverter() Converter { return Converter{make(chan struct{}, 1)} }

// Convert makes a picture of an uploaded file; see [picture.Converter]. The first bytes of the
// content say what it is, never the name of the file.
func (c Converter) Convert(ctx context.Context, content []byte) (f picture.File, err error) {
	head, kind, err := image.DecodeConfig(bytes.NewReader(content))
	switch {
	case err != nil || kind != "jpeg" && kind != "png" && kind != "gif" && kind != "webp":
		return f, refused("rule.picture_type", "must be a picture of the type JPEG, PNG, GIF or WebP")
	case head.Width < 1 || head.Height < 1 || head.Width > picture.MaxSide || head.Height > picture.MaxSide || head.Width*head.Height > picture.MaxPixels:
		return f, refused("rule.picture_pixels", "must have at most %d million pixels and %d on a side; it has %d × %d",
			picture.MaxPixels/1_000_000, picture.MaxSide, head.Width, head.Height)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return f, picture.ErrBusy
	}
	img, err := decode(content, kind)
	if err != nil {
		return f, err
	}
	if b := img.Bounds(); b.Dx() > picture.FitWidth || b.Dy() > picture.FitHeight {
		img = imaging.Fit(img, picture.FitWidth, picture.FitHeight, imaging.Lanczos)
	}
	f = picture.File{Width: img.Bounds().Dx(), Height: img.Bounds().Dy()}
	f.Content, f.Type, err = encode(img, kind)
	return f, err
}

// decode returns the upright picture, or for a GIF its first frame. Decoders may panic on content
// that was made to harm.
func decode(content []byte, kind string) (img image.Image, err error) {
	broken := refused("rule.picture_broken", "cannot be read; it may be damaged. Save it anew and try again")
	defer func() {
		if recover() != nil {
			img, err = nil, broken
		}
	}()
	if kind == "gif" {
		if img, err = gif.Decode(bytes.NewReader(content)); err != nil {
			return nil, broken
		}
		return img, nil
	}
	meta, _, err := autometa.Load(bytes.NewReader(content))
	if err == nil && meta != nil && meta.HasFrames {
		return nil, refused("rule.picture_moves", "is an animation; save one picture of it")
	}
	img, err = imaging.Decode(bytes.NewReader(content), imaging.Backends(imaging.GO_IMAGE), imaging.AutoOrientation(true))
	if err != nil || img == nil { // also for metadata that cannot be read: the picture itself may be good
		img, err = imaging.Decode(bytes.NewReader(content), imaging.Backends(imaging.GO_IMAGE), imaging.AutoOrientation(false), imaging.ColorSpace(imaging.NO_CHANGE_OF_COLORSPACE))
	}
	if err != nil || img == nil {
		return nil, broken
	}
	return img, nil
}

// encode returns a JPEG for photographs and for large pictures without transparency, otherwise a
// PNG.
func encode(img image.Image, kind string) ([]byte, string, error) {
	var b bytes.Buffer
	if kind != "jpeg" {
		if err := png.Encode(&b, img); err != nil {
			return nil, "", fmt.Errorf("encode a picture: %w", err)
		}
		if b.Len() <= maxLossless || !imaging.IsOpaque(img) {
			return b.Bytes(), "png", nil
		}
		b.Reset()
	}
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, "", fmt.Errorf("encode a picture: %w", err)
	}
	return b.Bytes(), "jpeg", nil
}

func refused(key, text string, args ...any) error {
	e := &fault.Fields{}
	e.Add("file", key, text, args...)
	return e
}
