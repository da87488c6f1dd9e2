package drops

import (
	"context"
	"strings"

	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

func (p ShopForm) title(ctx context.Context) string {
	if p.New {
		return ui.T(ctx, "shops.new")
	}
	return p.Values["name"]
}

// label names a field; on this form the shop is its number.
func (p ShopForm) label(ctx context.Context, name string) string {
	if name == "shop_number" {
		return ui.T(ctx, "shops.number")
	}
	return parts.FieldLabel(ctx, name)
}

func (p ShopForm) action() string {
	if p.New {
		return "/shops"
	}
	return "/shops/" + p.Values["shop_number"]
}

// zoneOptions offers zones by their IANA name, with the name that other pages show.
func zoneOptions(ctx context.Context, zones []string) []ui.Option {
	list := make([]ui.Option, len(zones))
	for i, z := range zones {
		list[i] = ui.Option{Value: z, Label: strings.ReplaceAll(z, "_", " ") + " · " + parts.ZoneName(ctx, z)}
	}
	return list
}
