package pages

import (
	"context"
	"strings"

	"dropbell/views/ui"
)

// kindOptions are the kinds of things that the audit log speaks of.
func kindOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "audit.all_kinds")}}
	for _, k := range []string{"template", "campaign", "shop", "staff", "key", "channel", "dead_message", "dead_letters", "user", "segment", "coupon", "job", "console", "queue", "address"} {
		list = append(list, ui.Option{Value: k, Label: ui.T(ctx, "kind_of."+k)})
	}
	return list
}

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
