package pkpass

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strconv"

	"dropbell/domain/coupon/wallet"
)

// iconSize is the side of the icon in points.
const iconSize = 29

// icons returns the icon's files at three resolutions. The icon is a ticket in the shop's
// colours.
func icons(p wallet.Pass) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, scale := range map[string]int{"icon.png": 1, "icon@2x.png": 2, "icon@3x.png": 3} {
		var b bytes.Buffer
		if err := png.Encode(&b, ticket(iconSize*scale, rgb(p.Colour), rgb(p.Ink))); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

func rgb(s string) color.NRGBA {
	n, _ := strconv.ParseUint(s[1:], 16, 32)
	return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}
}

// ticket draws a ticket with a notch on each side and a perforation. ink is the ticket's colour,
// ground the background; size is the side in pixels.
func ticket(size int, ground, ink color.NRGBA) image.Image {
	picture := image.NewNRGBA(image.Rect(0, 0, size, size))
	unit := float64(size) / iconSize
	for y := range size {
		for x := range size {
			c := ground
			if inTicket((float64(x)+0.5)/unit, (float64(y)+0.5)/unit) {
				c = ink
			}
			picture.SetNRGBA(x, y, c)
		}
	}
	return picture
}

// inTicket reports whether the point, in points, is part of the ticket.
func inTicket(x, y float64) bool {
	const left, right, top, bottom, notch = 5.0, 24.0, 9.0, 20.0, 2.5
	middle := (top + bottom) / 2
	switch {
	case x < left || x > right || y < top || y > bottom:
		return false
	case math.Hypot(x-left, y-middle) < notch || math.Hypot(x-right, y-middle) < notch:
		return false
	case x > 17 && x < 18.2 && math.Mod(y-top, 3) < 1.6: // the perforation
		return false
	}
	return true
}
