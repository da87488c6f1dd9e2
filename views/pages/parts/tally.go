package parts

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/views/ui"
)

// A tallied state is one row of the table and one piece of the bar.
type tallied struct {
	state coupon.State
	class string
	n     int64
}

func (p Tally) rows() []tallied {
	return []tallied{{coupon.Used, "bar-sent", p.Used}, {coupon.Locked, "bar-inflight", p.Locked}, {coupon.Expired, "bar-expired", p.Expired},
		{coupon.Revoked, "bar-dead", p.Revoked}, {coupon.Unused, "bar-skipped", p.Unused()}}
}

func (p Tally) pieces() (list []Piece) {
	for _, r := range p.rows() {
		list = append(list, Piece{r.class, r.n})
	}
	return list
}

// sum may be more than what was issued for as long as events are on their way.
func (p Tally) sum() (n int64) {
	for _, r := range p.rows() {
		n += r.n
	}
	return n
}

func (p Tally) text(ctx context.Context) string {
	var words []string
	for _, r := range p.rows() {
		words = append(words, ui.T(ctx, "coupon.state."+string(r.state))+" "+ui.Num(ctx, r.n))
	}
	return strings.Join(words, ui.T(ctx, "ui.list_join"))
}

// url leads to the coupons in the state.
func (p Tally) url(s coupon.State) string {
	return "/coupons?" + url.Values{"by": {"template"}, "q": {fmt.Sprint(p.Template.ID)}, "state": {string(s)}}.Encode()
}

// steps are what coupons have been through, which is not a state.
func (p Tally) steps(ctx context.Context) string {
	words := []string{ui.N(ctx, "tally.released", p.Released), ui.N(ctx, "tally.refunded", p.Refunded)}
	if p.Returned > 0 {
		words = append(words, ui.N(ctx, "tally.returned", p.Returned))
	}
	if p.Discounted > 0 {
		words = append(words, ui.T(ctx, "tally.discounted", ui.From(ctx).Locale.Money(p.Discounted, p.Template.Currency)))
	}
	if p.Removed > 0 {
		words = append(words, ui.N(ctx, "tally.removed", p.Removed))
	}
	return strings.Join(words, ui.T(ctx, "ui.list_join"))
}
