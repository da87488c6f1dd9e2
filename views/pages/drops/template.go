package drops

import (
	"context"
	"dropbell/domain/flight"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// openSoon is how long before the opening the page has its layout of an open drop. moment.js knows it.
const openSoon = 30 * time.Second

// atOpening shows a part of the page of t, or of its line. From an hour before the opening the page also has the part as it is
// at the opening: app.js shows it at that instant, before the server tells.
func atOpening(t template.Template, part templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		f := *ui.From(ctx)
		next := nextOpening(t, f.Now)
		if t.State(f.Now) != template.Scheduled || f.Now.Before(next.Add(-before)) {
			return part.Render(ctx, w)
		}
		at := ui.Machine(next)
		f.Now = next
		if _, err := fmt.Fprintf(w, `<span class="turn" data-until="%s">`, at); err != nil {
			return err
		}
		if err := part.Render(ctx, w); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, `</span><span class="turn" data-from="%s" hidden>`, at); err != nil {
			return err
		}
		if err := part.Render(ui.With(ctx, &f), w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</span>")
		return err
	})
}

// drawn reports whether the draw is made: its winners have coupons or offers.
func (p Template) drawn(ctx context.Context) bool {
	return p.Stage(ui.From(ctx).Now) == template.Drawn
}

// moments are those of the drop, which name the instant of its draw.
func (p Template) moments(ctx context.Context) templ.Attributes {
	d := p.Drop
	if p.Draw != nil && p.Draw.DrawnAt == nil {
		d.DrawAt = p.Draw.DueAt()
	}
	return d.moments(ctx)
}

// reported reports whether the drop has a report: a door of it has opened.
func (p Template) reported(ctx context.Context) bool {
	return p.state(ctx) != template.Draft && !ui.From(ctx).Now.Before(p.FirstOpening())
}

// claiming reports whether the head has the buttons for the time of the rush, in which the menu has the report and the close. The
// report of a draw is its next step.
func (p Template) claiming(ctx context.Context) bool {
	s := p.state(ctx)
	return (s == template.Scheduled || s == template.Open || s == template.SoldOut) && !p.drawn(ctx) && p.manage(ctx)
}

// lastMinutes is how long before an opening no button is emphasized.
const lastMinutes = 5 * time.Minute

// mainKind is the kind of the button of the next step: plain shortly before an opening, and once the list of a draw is sealed.
func (p Template) mainKind(ctx context.Context) string {
	now := ui.From(ctx).Now
	near := p.state(ctx) == template.Scheduled && !now.Before(nextOpening(p.Drop.Template, now).Add(-lastMinutes))
	if near || p.Stage(now) == template.Sealed {
		return ""
	}
	return "primary"
}

// aheadText is shown in the last seconds before the opening: how many reminders are sent, and when the drop opens.
func (p Template) aheadText(ctx context.Context) string {
	l, c := ui.From(ctx).Locale, p.Board.Progress()
	at := seconds(nextOpening(p.Drop.Template, ui.From(ctx).Now), p.Zone())
	switch {
	case c.Expected() == 0:
		return l.T("drop.opens_clock", at)
	case c.Sent == c.Expected():
		return l.N("drop.all_sent", c.Sent, at)
	}
	return l.N("drop.sent_of", c.Expected(), l.Number(c.Sent), at)
}

// reportKind is the kind of the button of the report: after a draw nothing is left to do.
func (p Template) reportKind(ctx context.Context) string {
	if p.drawn(ctx) {
		return "primary"
	}
	return ""
}

func (p Template) sentNote(ctx context.Context) string {
	c := p.Board.Progress()
	if c.Reserved == 0 && c.Waiting == 0 {
		return ui.T(ctx, "stat.sent_none")
	}
	return ui.T(ctx, "stat.sent_note", ui.From(ctx).Locale.Percent(c.Sent, c.Expected()), c.Expected())
}

// booked is the chart of bookings.
func (p Template) booked(ctx context.Context) ui.TimeChart {
	var beside Sales
	if p.Sales != nil {
		beside = *p.Sales
	}
	booked, _ := ChartsOf(ctx, p.Drop.Template, p.Growth, beside.Curve, beside.Events, beside.Earlier)
	return booked
}

// left returns how many coupons can still be claimed. It is the number of the card about claims,
// which includes coupons that a gate has given but not stored yet.
func (p Template) left() int64 {
	if p.Sales != nil {
		return p.Sales.stock().Left()
	}
	return p.StockLeft()
}

// problems are the problems of this drop.
func (p Template) problems(ctx context.Context) (list []concern) {
	add := func(url, text string) { list = append(list, concern{ui.Warn, text, url}) }
	if p.state(ctx) == template.Paused {
		add("", ui.T(ctx, "problem.paused"))
	}
	if n := p.Flight.Count(flight.Red); n > 0 && ui.From(ctx).Now.Before(p.OpensAt) {
		add(p.path("flight"), ui.N(ctx, "problem.flight", int64(n)))
	}
	for _, c := range p.Board.Totals() {
		if c.Booked > 0 && !p.Channels.Has(c.Channel) {
			add("/channels", ui.T(ctx, "problem.no_sender", ui.T(ctx, "channel."+c.Channel.String()), c.Booked))
		}
	}
	if n := p.Board.DeadLetters; n > 0 {
		add(fmt.Sprintf("/dead-letters?template=%d", p.ID), ui.N(ctx, "problem.dead", n))
	}
	if n := p.Board.PastAtMove(); n > 0 {
		add("", ui.N(ctx, "problem.past_at_move", int64(n)))
	}
	if c := p.counts(); c.Expired > 0 {
		add(fmt.Sprintf("/deliveries?template=%d&outcome=expired", p.ID), ui.N(ctx, "problem.expired", c.Expired))
	}
	var overdue []template.Slot
	for _, r := range p.Board.Rows {
		if r.Overdue(ui.From(ctx).Now) {
			overdue = append(overdue, r.Slot.Slot)
		}
	}
	if len(overdue) > 0 {
		add("", overdueText(ctx, overdue))
	}
	if p.Difference != 0 {
		add(p.url()+"/balance", ui.N(ctx, "problem.balance", p.Difference))
	}
	return list
}

// overdueText names the slots that are due and have not started.
func overdueText(ctx context.Context, slots []template.Slot) string {
	var minutes []string
	for _, s := range slots {
		minutes = append(minutes, ui.Num(ctx, int64(s.Minutes())))
	}
	return ui.T(ctx, "problem.overdue", strings.Join(minutes, ui.T(ctx, "ui.list_join")))
}

// next returns the slot that fires next, or nil.
func (p Template) next(ctx context.Context) (next *reminder.Row) {
	for i, r := range p.Board.Rows {
		if r.Upcoming(ui.From(ctx).Now) && (next == nil || r.DueAt.Before(next.DueAt)) {
			next = &p.Board.Rows[i]
		}
	}
	return next
}

func (p Template) nextClock(ctx context.Context) string {
	if r := p.next(ctx); r != nil {
		return ui.From(ctx).Locale.Clock(r.DueAt, p.Zone())
	}
	return "–"
}

func (p Template) nextNote(ctx context.Context) string {
	r := p.next(ctx)
	if r == nil {
		return ui.T(ctx, "stat.next_none")
	}
	return ui.N(ctx, "stat.next_note", r.Booked())
}
