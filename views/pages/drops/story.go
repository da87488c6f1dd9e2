package drops

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// StoryText returns the sentence that a report begins with, in the language of ctx. Parts that
// are unknown are left out.
func StoryText(ctx context.Context, r report.Report) string {
	s, zone := r.Story(), r.Template.Zone()
	var told []string
	if d := r.Draw; d != nil && d.Draw.DrawnAt != nil {
		told = append(told, ui.N(ctx, "story.drawn", d.Draw.Entries(), ui.Num(ctx, d.Draw.Won), ui.Ratio(ctx, d.PerWinner())))
	} else if c := s.Coupons; c.Known && c.GoneIn > 0 {
		told = append(told, ui.N(ctx, "story.gone", c.Issued, ui.From(ctx).Locale.Duration(wholeSeconds(c.GoneIn))))
	} else if c := s.Coupons; c.Known {
		told = append(told, ui.N(ctx, "story.given", c.Total, c.Issued))
	}
	if p := s.Reminded; p.Known && !p.Opened {
		told = append(told, ui.N(ctx, "story.reminded_so_far", p.People))
	} else if p.Known && p.Late == 0 {
		told = append(told, ui.N(ctx, "story.reminded", p.People, ui.From(ctx).Locale.Clock(r.Template.OpensAt, zone)))
	} else if p.Known {
		told = append(told, ui.N(ctx, "story.reminded_late", p.People, p.Late, ui.From(ctx).Locale.Clock(r.Template.OpensAt, zone)))
	}
	if used := usedText(ctx, s); used != "" {
		told = append(told, used)
	}
	if c := s.Compared; c.Given > 0 {
		told = append(told, ui.T(ctx, "story.rates", ui.From(ctx).Locale.Percent(c.Used, c.Given), ui.From(ctx).Locale.Percent(c.UsedThen, c.GivenThen)))
	}
	if len(told) == 0 {
		return ui.N(ctx, "story.booked", r.Progress.Booked)
	}
	text := told[0]
	for _, part := range told[1:] {
		text = ui.T(ctx, "ui.sentences", text, part)
	}
	if s := r.Template.State(r.At); (s == template.Open || s == template.SoldOut) && r.Draw == nil {
		text = ui.T(ctx, "story.so_far", text)
	}
	return text
}

// wholeSeconds rounds up: all coupons were gone within that time.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// usedText says how many coupons were used, for which orders, and how that compares.
func usedText(ctx context.Context, s report.Story) string {
	u, c := s.Used, s.Compared
	if !u.Known {
		return ""
	}
	if u.Revenue == 0 {
		return ui.N(ctx, "story.used", u.Coupons)
	}
	amount := ui.From(ctx).Locale.Sum(u.Revenue, u.Currency)
	switch {
	case !c.Known:
		return ui.N(ctx, "story.orders", u.Coupons, amount)
	case c.Revenue > c.Before:
		return ui.N(ctx, "story.orders_more", u.Coupons, amount, ui.From(ctx).Locale.Percent(int64(c.Revenue-c.Before), int64(c.Before)), c.Drop)
	case c.Revenue < c.Before:
		return ui.N(ctx, "story.orders_less", u.Coupons, amount, ui.From(ctx).Locale.Percent(int64(c.Before-c.Revenue), int64(c.Before)), c.Drop)
	}
	return ui.N(ctx, "story.orders_same", u.Coupons, amount, c.Drop)
}

func amountText(ctx context.Context, minor int64, currency string) string {
	return ui.From(ctx).Locale.Sum(money.Amount(minor), currency)
}

// A funnelRow is one stage with the same stage of the drop that is compared.
type funnelRow struct {
	report.Stage
	other      report.Stage
	hasOutline bool
	// struck says that entries of the draw were struck.
	struck bool
}

// over reports whether the drop is closed or cancelled. A drop that still goes on is not compared with finished ones.
func (p drawn) over() bool {
	s := p.Template.State(p.At)
	return s == template.Closed || s == template.Cancelled
}

// unreminded reports whether no reminder was ever booked.
func (p drawn) unreminded() bool {
	return p.People.Booked+p.Progress.Booked+p.Progress.Expected() == 0
}

// outlined reports whether the funnel also shows the other drop.
func (p drawn) outlined() bool {
	return p.over() && !p.unreminded() && p.Other != nil && p.Other.People.Booked > 0
}

// figure is the name of the stage's number.
func (r funnelRow) figure() string {
	switch r.Key {
	case "stock":
		return "coupons:total"
	case "coupons_used":
		return "tally:used"
	case "entries", "given", "won", "coupons_given":
		return ""
	}
	return "people:" + r.Key
}

// stages are the steps of users from the booking on, or the steps of a drop without reminders.
func (p drawn) stages() []report.Stage {
	if p.unreminded() {
		return p.CouponFunnel()
	}
	return p.People.Funnel()
}

func (p drawn) funnel() (list []funnelRow) {
	for i, s := range p.stages() {
		row := funnelRow{Stage: s}
		row.struck = p.Draw != nil && p.Draw.Draw.Struck > 0
		if p.outlined() {
			row.other, row.hasOutline = p.Other.People.Funnel()[i], true
		}
		list = append(list, row)
	}
	return list
}

// funnelWhole is the length of the bar of the first stage.
const funnelWhole = 1000

func barLength(share float64) string { return parts.Unit(funnelWhole * min(1, share)) }

// change says how many users were lost since the stage before, or came without that stage. Until the drop is
// over they are not lost.
func (r funnelRow) change(ctx context.Context, first int64, over bool) string {
	share := ui.From(ctx).Locale.Percent(-r.Change, first)
	switch {
	case r.Change > 0:
		return ui.N(ctx, "story.came", r.Change)
	case r.Key == "won" && r.People == 0:
		return ui.T(ctx, "story.undrawn")
	case r.Key == "won" && r.struck:
		return ui.T(ctx, "story.not_won_or_struck", -r.Change, share)
	case r.Key == "won":
		return ui.T(ctx, "story.not_won", -r.Change, share)
	case r.Key == "given":
		return ui.T(ctx, "story.left", -r.Change, share)
	case r.Key == "coupons_given":
		return ui.T(ctx, "story.not_given", -r.Change, share)
	case r.Key == "coupons_used":
		return ui.T(ctx, "story.unused", -r.Change, share)
	case !over:
		return ui.T(ctx, "story.not_yet", -r.Change, share)
	}
	return ui.N(ctx, "story.lost", -r.Change, share)
}

// around divides a text at its number, which is shown as a figure.
func around(ctx context.Context, text string, n int64) (before, number, after string) {
	number = ui.Num(ctx, n)
	before, after, _ = strings.Cut(text, number)
	return before, number, after
}

// otherOptions are the drops to compare with.
func (p drawn) otherOptions(ctx context.Context) (list []ui.Option) {
	for _, t := range p.Others {
		list = append(list, ui.Option{Value: parts.ID(t.ID), Label: dropAndDay(ctx, t)})
	}
	return list
}

func (p drawn) otherID() string {
	if p.Other == nil {
		return ""
	}
	return parts.ID(p.Other.Template.ID)
}

// dropAndDay names the drop and the day of its opening.
func dropAndDay(ctx context.Context, t template.Template) string {
	return t.Name + " · " + ui.From(ctx).Locale.Day(t.OpensAt, t.Zone())
}

// The size in pixels of the picture that previews of a shared report show.
const (
	PictureWidth  = 1200
	PictureHeight = 630
)
