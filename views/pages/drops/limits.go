package drops

import (
	"context"
	"strconv"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/views/ui"
)

// ShopLimits are the limits that a shop sets to its campaigns.
type ShopLimits struct {
	Shop int64 // 0 = campaigns of no shop
	Name string
	// Values are shown. Was are the values that the form was rendered with: a change is refused if
	// the stored values have changed since.
	Values, Was map[string]string
	Errors      []fault.Field
}

// LimitValues are limits as the form shows them.
func LimitValues(l campaign.Limits) map[string]string {
	return map[string]string{"approval_above": strconv.FormatInt(l.ApprovalAbove, 10), "per_day": strconv.Itoa(l.PerDay), "per_week": strconv.Itoa(l.PerWeek)}
}

func limitFields() []string { return []string{"approval_above", "per_day", "per_week"} }

func limitLabel(ctx context.Context, name string) string { return ui.T(ctx, "limits."+name) }

func (p ShopLimits) url() string { return "/shops/" + strconv.FormatInt(p.Shop, 10) + "/limits" }

func (p ShopLimits) crumbs(ctx context.Context) []ui.Crumb {
	list := []ui.Crumb{{Label: ui.T(ctx, "nav.shops"), URL: "/shops"}}
	if p.Shop == 0 {
		return append(list, ui.Crumb{Label: ui.T(ctx, "limits.no_shop"), URL: p.url()})
	}
	return append(list, ui.Crumb{Label: p.Name, URL: "/shops/" + strconv.FormatInt(p.Shop, 10)})
}

func (p ShopLimits) field(ctx context.Context, name string) ui.FieldProps {
	return ui.FieldProps{Name: name, Label: limitLabel(ctx, name), Help: ui.T(ctx, "limits.help."+name), Value: p.Values[name],
		Error: ui.ErrorOf(ctx, p.Errors, name), InputMode: "numeric", Required: true, Autocomplete: "off"}
}
