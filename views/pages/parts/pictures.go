package parts

import (
	"context"
	"fmt"
	"strconv"

	"dropbell/views/ui"
)

// Pictures are the library of a shop from which a mail takes its pictures. Shop 0 has none.
type Pictures struct {
	Shop int64
	List []Picture
}

// A Picture is a picture of the library that a mail can have.
type Picture struct {
	Address, Alt  string
	Width, Height int
}

// Picked returns the picture with the address; false if the library has none.
func (p Pictures) Picked(address string) (Picture, bool) {
	for _, v := range p.List {
		if v.Address == address {
			return v, true
		}
	}
	return Picture{}, false
}

// LibraryURL is the page of the shop's pictures.
func LibraryURL(shop int64) string { return "/shops/" + strconv.FormatInt(shop, 10) + "/pictures" }

func (p Pictures) options(ctx context.Context) []ui.Option {
	options := []ui.Option{{Label: ui.T(ctx, "pictures.choose_none")}}
	for _, v := range p.List {
		options = append(options, ui.Option{Value: v.Address, Label: fmt.Sprintf("%s (%d × %d)", v.Alt, v.Width, v.Height)})
	}
	return options
}
