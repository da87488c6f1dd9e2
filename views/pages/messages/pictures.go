package messages

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/picture"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// Library is the page of a shop's pictures.
type Library struct {
	Shop    template.Shop
	List    []picture.Picture
	MayEdit bool
	Zone    *time.Location
	// Alt is the typed text of a refused upload, Errors are its rules and Refused is any other
	// reason.
	Alt     string
	Errors  []fault.Field
	Refused string
	// First and Next are the addresses of other pages.
	First, Next string
}

// LibraryURL is the page of the shop's pictures.
func LibraryURL(shop int64) string { return "/shops/" + strconv.FormatInt(shop, 10) + "/pictures" }

// URL is the address of the page.
func (p Library) URL() string { return LibraryURL(p.Shop.Number) }

func (p Library) crumbs(ctx context.Context) []ui.Crumb {
	return []ui.Crumb{{Label: ui.T(ctx, "nav.shops"), URL: "/shops"}, {Label: p.Shop.Name, URL: "/shops/" + strconv.FormatInt(p.Shop.Number, 10) + "/message"}}
}

// size says how large a picture is.
func size(ctx context.Context, p picture.Picture) string {
	return ui.T(ctx, "pictures.size", p.Width, p.Height, max(1, p.Bytes/1000))
}

// useURL is the page of a text that has a picture.
func (p Library) useURL(u picture.Use) string {
	switch {
	case u.Campaign != 0:
		return fmt.Sprintf("/campaigns/%d", u.Campaign)
	case u.Template != 0:
		return fmt.Sprintf("/templates/%d/message", u.Template)
	}
	return fmt.Sprintf("/shops/%d/message", p.Shop.Number)
}

func (p Library) useName(ctx context.Context, u picture.Use) string {
	if u.Name == "" {
		return ui.T(ctx, "pictures.use_shop")
	}
	return u.Name
}

// Offered is a picture of the library that a mail can have.
type Offered struct {
	Address, Alt  string
	Width, Height int
}

func offers(ctx context.Context, list []Offered) []ui.Option {
	options := []ui.Option{{Label: ui.T(ctx, "pictures.choose_none")}}
	for _, o := range list {
		options = append(options, ui.Option{Value: o.Address, Label: fmt.Sprintf("%s (%d × %d)", o.Alt, o.Width, o.Height)})
	}
	return options
}
