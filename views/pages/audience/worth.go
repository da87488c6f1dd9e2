package audience

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/timeline"
	"dropbell/views/ui"
)

func amount(ctx context.Context, n money.Amount, s timeline.Spent) string {
	return ui.From(ctx).Locale.Sum(n, s.With.Currency)
}

// paid writes an amount of the user's orders, which all have decimals or all have none.
func (p User) paid(ctx context.Context, n money.Amount, currency string) string {
	var all []money.Amount
	for _, o := range p.Orders {
		if o.Currency == currency {
			all = append(all, o.Amount(), o.PaidBack)
			for _, u := range o.Uses {
				all = append(all, u.Off)
			}
		}
	}
	return ui.From(ctx).Locale.Money(n, currency, all...)
}

// orderCount is the number of a user's orders of all currencies.
func orderCount(w timeline.Worth) (n int64) {
	for _, s := range w.Spent {
		n += s.Orders()
	}
	return n
}

// usedText writes how many of a user's coupons are used.
func usedText(ctx context.Context, w timeline.Worth) string {
	if w.Coupons == 0 {
		return "–"
	}
	return ui.T(ctx, "worth.of", ui.Num(ctx, w.Used), ui.Num(ctx, w.Coupons))
}

// before are the orders of the currency in the days before.
func (p Users) before(currency string) report.Sums {
	for _, b := range p.Earned.Before {
		if b.Currency == currency {
			return b
		}
	}
	return report.Sums{}
}

// dueNote names the channel, the time and the drop of the reminder that is sent next.
func (p User) dueNote(ctx context.Context) string {
	at := ui.From(ctx).Locale.DateTime(p.Due.DueAt, p.User.Zone())
	return strings.Join([]string{ui.T(ctx, "channel."+p.Due.Channel.String()), at, p.Due.Drop}, " · ")
}

func last(ctx context.Context, at time.Time) string {
	if at.IsZero() {
		return "–"
	}
	return ui.From(ctx).Locale.Ago(at, ui.From(ctx).Now)
}

func lastNote(ctx context.Context, at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return ui.From(ctx).Locale.Date(at, zone)
}
