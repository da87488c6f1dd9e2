package coupons

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/cart"
	"dropbell/domain/template"
	couponpages "dropbell/views/pages/coupons"
	"dropbell/web/console/shell"
)

// showTogether shows which drops' coupons go together, and what they take off the typed cart.
func (h *handlers) showTogether(w http.ResponseWriter, r *http.Request, shops []template.Shop) error {
	p := couponpages.Together{Shops: shops, Currency: "CNY", Values: map[string]string{}}
	if typed, err := strconv.ParseInt(r.FormValue("shop"), 10, 64); err == nil && slices.ContainsFunc(shops, func(s template.Shop) bool { return s.Number == typed }) {
		p.Shop = typed
	} else if len(shops) > 0 {
		p.Shop = shops[0].Number
	}
	place, err := h.CellOf(strconv.FormatInt(p.Shop, 10))
	if err != nil {
		return err
	}
	h = h.cells[place]
	if p.Drops, err = h.Carts.Drops(r.Context(), p.Shop, cart.MaxCandidates+1); err != nil {
		return err
	}
	if p.More = len(p.Drops) > cart.MaxCandidates; p.More {
		p.Drops = p.Drops[:cart.MaxCandidates]
	}
	if len(p.Drops) > 0 {
		p.Currency = p.Drops[0].Rule.Currency
	}
	h.example(r, &p)
	return h.Listed(w, r, p.Results(), p.Page())
}

// example reads the cart and computes its coupons. Without a typed cart it is an example.
func (h *handlers) example(r *http.Request, p *couponpages.Together) {
	typed := false
	for i := 1; i <= couponpages.ExampleLines; i++ {
		for _, kind := range []string{"product", "amount"} {
			name := fmt.Sprint(kind, i)
			p.Values[name] = r.FormValue(name)
			typed = typed || r.Form.Has(name)
		}
	}
	if !typed {
		p.Values["amount1"], p.Values["amount2"] = "80", "20"
	}
	rd := &shell.Reading{Values: p.Values}
	p.Cart = cart.Cart{Shop: p.Shop, Currency: p.Currency}
	for i := 1; i <= couponpages.ExampleLines; i++ {
		amount, product := fmt.Sprint("amount", i), strings.TrimSpace(p.Values[fmt.Sprint("product", i)])
		if strings.TrimSpace(p.Values[amount]) != "" {
			p.Cart.Lines = append(p.Cart.Lines, cart.Line{ID: strconv.Itoa(i), Product: product, Quantity: 1, Amount: rd.Amount(amount, p.Currency)})
		}
	}
	if p.Errors = rd.Broken.List; len(p.Errors) > 0 || len(p.Cart.Lines) == 0 {
		return
	}
	if p.Errors = shell.FieldsOf(p.Cart.Check()); len(p.Errors) > 0 {
		return
	}
	list := make([]cart.Terms, len(p.Drops))
	for i, d := range p.Drops {
		list[i] = d.Terms
	}
	p.Answer = cart.Qualify(p.Cart, list, time.Time{})
}
