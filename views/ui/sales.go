package ui

import (
	"context"
	"strings"

	"dropbell/domain/claim"
	"dropbell/domain/reminder"
)

// Stock is a template's coupons by place.
type Stock struct{ Total, Issued, Writing, Held int64 }

// Left returns how many can still be claimed.
func (s Stock) Left() int64 { return max(0, s.Total-s.Issued-s.Writing-s.Held) }

// parts divides the bar; the remaining part is its background. Empty parts have no length, so that a live part grows from nothing.
func (s Stock) parts() []part {
	total := float64(max(1, s.Total))
	var list []part
	at := 0.0
	for _, p := range []part{{class: "sent", n: s.Issued}, {class: "inflight", n: s.Writing}, {class: "skipped", n: s.Held}} {
		p.from, p.to = at, at
		if p.n > 0 {
			p.to = min(1000, at+max(4, 1000*float64(p.n)/total))
		}
		at = p.to
		list = append(list, p)
	}
	return list
}

func (s Stock) text(ctx context.Context) string {
	words := []string{T(ctx, "claims.bar_issued", Num(ctx, s.Issued)), T(ctx, "claims.bar_available", Num(ctx, s.Left()))}
	if s.Writing > 0 {
		words = append(words, T(ctx, "claims.bar_writing", Num(ctx, s.Writing)))
	}
	if s.Held > 0 {
		words = append(words, T(ctx, "claims.bar_held", Num(ctx, s.Held)))
	}
	return strings.Join(words, T(ctx, "ui.list_join"))
}

// Sold is the curve as a line from nothing on.
func Sold(c claim.Curve) []reminder.Growth {
	if len(c.Points) == 0 {
		return nil
	}
	list := []reminder.Growth{{At: c.Points[0].At}}
	for _, p := range c.Points {
		list = append(list, reminder.Growth{At: p.At.Add(c.Width), Booked: p.Total})
	}
	return list
}
