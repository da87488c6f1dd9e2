package coupons

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/cart"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// ExampleLines is how many lines the example cart has.
const ExampleLines = 3

// Together shows which drops' coupons go together in one order, with an example cart.
type Together struct {
	Shops []template.Shop
	Shop  int64
	Drops []cart.Drop
	// More says that the shop has more drops than are shown.
	More bool
	// Currency is that of the newest drop.
	Currency string
	// Values are the typed products and amounts: "product1", "amount1" and so on.
	Values map[string]string
	Errors []fault.Field
	// Answer is computed with a coupon of each drop; its coupons are the drops.
	Answer cart.Answer
	Cart   cart.Cart
}

func (p Together) shopChoice(ctx context.Context) ui.ChoiceProps {
	return ui.ChoiceProps{Name: "shop", Label: ui.T(ctx, "field.shop_number"), Value: fmt.Sprint(p.Shop), Options: parts.ShopOptions(ctx, p.Shops), Required: true}
}

func (p Together) field(ctx context.Context, kind string, line int) ui.FieldProps {
	name := fmt.Sprint(kind, line)
	f := ui.FieldProps{Name: name, Label: ui.T(ctx, "together."+kind, line), Value: p.Values[name], Error: ui.ErrorOf(ctx, p.Errors, name), Autocomplete: "off"}
	if kind == "amount" {
		f.InputMode, f.Suffix = "decimal", p.Currency
	} else {
		f.MaxLength = fmt.Sprint(template.MaxName)
	}
	return f
}

func (p Together) name(id int64) string {
	for _, d := range p.Drops {
		if d.ID == id {
			return d.Name
		}
	}
	return ""
}

// partners are the drops that go together with d, and the drops that only one side of names.
func (p Together) partners(d cart.Drop) (both, oneSided []string) {
	for _, o := range p.Drops {
		switch {
		case o.ID == d.ID:
		case d.Together(o.Stacking):
			both = append(both, o.Name)
		case d.Names(o.Group) || o.Names(d.Group):
			oneSided = append(oneSided, o.Name)
		}
	}
	return both, oneSided
}

func joined(ctx context.Context, names []string) string {
	return strings.Join(names, ui.T(ctx, "ui.list_join"))
}

// alone is what the drop's coupon does for the example by itself.
func (p Together) alone(ctx context.Context, id int64) string {
	l := ui.From(ctx).Locale
	for _, u := range p.Answer.Usable {
		if u.Coupon == id {
			return l.Money(u.Off, p.Currency)
		}
	}
	for _, r := range p.Answer.Unusable {
		if r.Coupon == id && r.Reason == cart.BelowThreshold {
			return l.T("together.missing", l.Money(r.Missing, p.Currency))
		} else if r.Coupon == id {
			return l.T("together.reason." + string(r.Reason))
		}
	}
	return parts.OrDash("")
}

func (p Together) money(ctx context.Context, a money.Amount) string {
	return ui.From(ctx).Locale.Money(a, p.Currency)
}
