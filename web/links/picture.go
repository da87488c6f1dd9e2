package links

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"dropbell/domain/report"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
)

// Lengths and positions in pixels.
const (
	pictureMargin = 64
	barsTop       = 330
	barHeight     = 34
	barPitch      = 52
	barLeft       = 330
	barLongest    = 560
	nameSize      = 54
	storySize     = 32
	labelSize     = 26
	storyLines    = 4
)

var (
	pictureGround = color.RGBA{0xff, 0xff, 0xff, 0xff}
	pictureInk    = color.RGBA{0x1b, 0x1f, 0x2a, 0xff}
	pictureSoft   = color.RGBA{0x5b, 0x63, 0x73, 0xff}
	pictureTrack  = color.RGBA{0xe9, 0xec, 0xf2, 0xff}
	pictureBar    = color.RGBA{0x4f, 0x46, 0xe5, 0xff}
)

// A canvas is a picture with the fonts to write on it.
type canvas struct {
	*image.RGBA
	fonts
}

func (c canvas) fill(r image.Rectangle, with color.Color) {
	draw.Draw(c, r, image.NewUniform(with), image.Point{}, draw.Src)
}

// write draws lines of text with the first baseline at y and returns the baseline after the last.
// Words that do not fit into the width begin a new line; lines after the most are left out.
func (c canvas) write(latin *opentype.Font, size float64, ink color.Color, x, y, width, most int, text string) (int, error) {
	face, err := c.face(latin, size)
	if err != nil {
		return y, err
	}
	defer func() { _ = face.Close() }()
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: face}
	var line string
	put := func() {
		d.Dot = fixed.P(x, y)
		d.DrawString(line)
		y += int(size * 1.35)
		most--
	}
	for _, word := range words(c.drawable(latin, text)) {
		longer := line + word
		if line != "" && d.MeasureString(strings.TrimRight(longer, " ")).Ceil() > width {
			line = strings.TrimRight(line, " ")
			if most == 1 {
				line += "…"
				put()
				return y, nil
			}
			put()
			longer = word
		}
		line = longer
	}
	if line != "" {
		put()
	}
	return y, nil
}

// picture draws the figures of a report as a PNG file for previews of its link: the shop and the drop,
// the sentence, and the way from the booking to the use of a coupon. Texts with letters that the fonts
// lack are left out. The picture holds nothing that the shared page does not show.
func picture(ctx context.Context, f fonts, r report.Report) ([]byte, error) {
	c := canvas{image.NewRGBA(image.Rect(0, 0, droppages.PictureWidth, droppages.PictureHeight)), f}
	c.fill(c.Bounds(), pictureGround)
	c.fill(image.Rect(0, 0, droppages.PictureWidth, 12), pictureBar)
	width := droppages.PictureWidth - 2*pictureMargin
	if _, err := c.write(f.regular, labelSize, pictureSoft, pictureMargin, 54, width, 1, r.Template.ShopName); err != nil {
		return nil, err
	}
	y, err := c.write(f.bold, nameSize, pictureInk, pictureMargin, 118, width, 1, r.Template.Name)
	if err != nil {
		return nil, err
	}
	if _, err = c.write(f.regular, storySize, pictureSoft, pictureMargin, y, width, storyLines, droppages.StoryText(ctx, r)); err != nil {
		return nil, err
	}
	for i, s := range r.People.Funnel() {
		top := barsTop + i*barPitch
		c.fill(image.Rect(barLeft, top, barLeft+barLongest, top+barHeight), pictureTrack)
		c.fill(image.Rect(barLeft, top, barLeft+int(barLongest*min(1, s.Share)), top+barHeight), pictureBar)
		if _, err = c.write(f.regular, labelSize, pictureSoft, pictureMargin, top+26, barLeft-pictureMargin, 1, ui.T(ctx, "report.stage."+s.Key)); err != nil {
			return nil, err
		}
		number := ui.Num(ctx, s.People) + " · " + ui.From(ctx).Locale.Percent(s.People, r.People.Booked)
		if _, err = c.write(f.bold, labelSize, pictureInk, barLeft+barLongest+24, top+26, width, 1, number); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err = png.Encode(&out, c)
	return out.Bytes(), err
}
