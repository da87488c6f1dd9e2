package messages

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/picture"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
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

// URL is the address of the page.
func (p Library) URL() string { return parts.LibraryURL(p.Shop.Number) }

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
