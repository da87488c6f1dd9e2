package drops

import (
	"context"
	"strings"

	"dropbell/views/ui"
)

func (p ShopForm) title(ctx context.Context) string {
	if p.New {
		return ui.T(ctx, "shops.new")
	}
	return p.Values["name"]
}

func (p ShopForm) action() string {
	if p.New {
		return "/shops"
	}
	return "/shops/" + p.Values["shop_number"]
}

func zoneOptions(zones []string) []ui.Option {
	list := make([]ui.Option, len(zones))
	for i, z := range zones {
		list[i] = ui.Option{Value: z, Label: strings.ReplaceAll(z, "_", " ")}
	}
	return list
}
