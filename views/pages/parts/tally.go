package parts

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/views/ui"
)

// A tallied state is one row of the table and one piece of the bar. key ends the names of its text and
// its figure.
type tallied struct {
	state coupon.State
	key   string
	class string
	n     int64
	share string // of all rows, rounded alone
}

func (p Tally) rows(ctx context.Context) []tallied {
	rows := []tallied{{state: coupon.Used, class: "bar-sent", n: p.Used}, {state: coupon.Locked, class: "bar-inflight", n: p.Locked},
		{state: coupon.Expired, class: "bar-expired", n: p.Expired}, {state: coupon.Revoked, class: "bar-dead", n: p.Revoked - p.Returned},
		{state: coupon.Suspended, class: "bar-bounced", n: p.Suspended},
		{state: coupon.Unused, class: "bar-skipped", n: p.Unused()}}
	if p.Returned > 0 {
		rows = slices.Insert(rows, 4, tallied{state: coupon.Revoked, key: returned, class: "bar-returned", n: p.Returned})
	}
	var all int64
	for _, r := range rows {
		all += r.n
	}
	for i, r := range rows {
		rows[i].key, rows[i].share = cmp.Or(r.key, string(r.state)), ui.From(ctx).Locale.Percent(r.n, all)
	}
	return rows
}

func (p Tally) pieces(ctx context.Context) (list []Piece) {
	for _, r := range p.rows(ctx) {
		list = append(list, Piece{r.class, r.n})
	}
	return list
}

func (p Tally) text(ctx context.Context) string {
	var words []string
	for _, r := range p.rows(ctx) {
		words = append(words, ui.T(ctx, "coupon.state."+r.key)+" "+ui.Num(ctx, r.n))
	}
	return strings.Join(words, ui.T(ctx, "ui.list_join"))
}

// url leads to the coupons in the state.
func (p Tally) url(s coupon.State) string {
	return "/coupons?" + url.Values{"by": {"template"}, "q": {fmt.Sprint(p.Template.ID)}, "state": {string(s)}}.Encode()
}

// steps counts the past steps of coupons, which are no states.
func (p Tally) steps(ctx context.Context) string {
	words := []string{ui.N(ctx, "tally.released", p.Released), ui.N(ctx, "tally.refunded", p.Refunded)}
	if p.Discounted > 0 {
		words = append(words, ui.T(ctx, "tally.discounted", ui.From(ctx).Locale.Sum(p.Discounted, p.Template.Currency)))
	}
	if p.Removed > 0 {
		words = append(words, ui.N(ctx, "tally.removed", p.Removed))
	}
	return strings.Join(words, ui.T(ctx, "ui.list_join"))
}
