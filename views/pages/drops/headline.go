package drops

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// A headline is the largest text in the head of a drop's page: a number or a few words, or the time until an instant.
type headline struct {
	label string
	// text is the number or the words, "" = the instant is the headline. figure is the name of the number, note says what it is
	// part of.
	text, figure, note string
	// at is the next instant, the zero time = not known. label names it if there is no text, otherwise after does. ended says that
	// nothing follows: at is no countdown.
	at    time.Time
	after string
	ended bool
}

// headline returns the text that matters most: the countdown to the next step, the coupons that are left, or in how long they
// were gone.
func (p Template) headline(ctx context.Context) headline {
	l, now := ui.From(ctx).Locale, ui.From(ctx).Now
	s := p.state(ctx)
	switch {
	case s == template.Closed:
		return headline{label: l.T("drop.ended_at"), at: p.OverAt(), ended: true}
	case s == template.Cancelled:
		return headline{label: l.T("drop.opened_at"), at: p.OpensAt, ended: true}
	case p.Draw != nil && !now.Before(p.Draw.ClosesAt):
		return p.drawHeadline(ctx)
	case now.Before(p.OpensAt):
		label, at := p.nextStep(ctx)
		return headline{label: label, at: at}
	case p.OpeningMode.Drawn(): // its card is published within a second
		return headline{label: l.T("draw.given"), text: l.Number(p.Issued), at: p.EndsAt(), after: l.T("drop.closes_in")}
	}
	h := headline{label: l.T("drop.coupons_left"), text: l.Number(p.left()), figure: "coupons:left", note: p.claimed(ctx), at: p.EndsAt(), after: l.T("drop.closes_in")}
	if s == template.SoldOut {
		h.label, h.text, h.figure = h.note, l.T("claims.sold_out"), ""
		h.note = ""
		if took := p.goneIn(); took > 0 {
			h.text = l.T("drop.gone_in", l.Duration(wholeSeconds(took)))
		}
	}
	return h
}

// claimed says how many of the coupons are claimed, and how many are kept for the waitlist.
func (p Template) claimed(ctx context.Context) string {
	issued, total := p.Issued, p.Stock
	if p.Sales != nil {
		issued, total = p.Sales.Issued+p.Sales.Writing, p.Sales.Total
	}
	text := ui.T(ctx, "drop.claimed_of", issued, total)
	if p.Sales != nil && p.Sales.Wait.Held > 0 {
		text += " · " + ui.T(ctx, "drop.kept", p.Sales.Wait.Held)
	}
	return text
}

// goneIn is how long the coupons lasted, 0 if that is not known.
func (p Template) goneIn() time.Duration {
	if p.Sales == nil {
		return 0
	}
	return p.Sales.soldOutAfter()
}

// drawHeadline counts down to the draw once the entries are closed, and then says how many entries won.
func (p Template) drawHeadline(ctx context.Context) headline {
	l, d := ui.From(ctx).Locale, p.Draw
	if d.DrawnAt != nil {
		h := headline{label: l.T("draw.won"), text: l.Number(d.Won), note: l.T("draw.of_entries", d.Entries()), at: p.EndsAt(), after: l.T("drop.closes_in")}
		if d.State == draw.Offered && d.OffersUntil != nil {
			h.at, h.after = *d.OffersUntil, l.T("draw.offers_end_in")
		}
		return h
	}
	if at := d.DueAt(); ui.From(ctx).Now.Before(at) {
		return headline{label: l.T("draw.made_in"), at: at}
	}
	h := headline{label: l.T("draw.stage.draw"), text: l.T("draw.making")}
	if p.figuresWanted() {
		h.text = l.T("draw.awaits_figures")
	}
	return h
}

// nextOpening is the next instant at which a door of the drop opens; the opening of the drop once all doors are open.
func nextOpening(t template.Template, now time.Time) time.Time {
	for _, o := range t.Openings() {
		if now.Before(o.At) {
			return o.At
		}
	}
	return t.OpensAt
}

// doorsApart reports whether the doors of the drop open at several instants.
func doorsApart(t template.Template) bool { return len(t.Openings()) > 1 }

// doorTimes names the doors of the drop with their openings: "Members 11:00 · Everyone 12:00".
func doorTimes(ctx context.Context, t template.Template) string {
	l, list := ui.From(ctx).Locale, make([]string, len(t.Doors))
	for i, d := range t.Doors {
		list[i] = d.Name + " " + l.Clock(t.OpensFor(i+1), t.Zone())
	}
	return strings.Join(list, " · ")
}

// doorsAt names the doors that open at the instant.
func doorsAt(ctx context.Context, t template.Template, at time.Time) string {
	var list []string
	for i, d := range t.Doors {
		if t.OpensFor(i + 1).Equal(at) {
			list = append(list, d.Name)
		}
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

// nextStep is the next step before the opening, with its label. Entries of a draw close at the opening.
func (d Drop) nextStep(ctx context.Context) (label string, at time.Time) {
	switch {
	case !d.OpeningMode.Drawn() && doorsApart(d.Template):
		at := nextOpening(d.Template, ui.From(ctx).Now)
		return ui.T(ctx, "drop.door_opens_in", doorsAt(ctx, d.Template, at)), at
	case !d.OpeningMode.Drawn():
		return ui.T(ctx, "drop.opens_in"), d.OpensAt
	case d.PublishedAt != nil && ui.From(ctx).Now.Before(d.EntriesFrom(*d.PublishedAt)):
		return ui.T(ctx, "draw.opens_in"), d.EntriesFrom(*d.PublishedAt)
	}
	return ui.T(ctx, "draw.closes_in"), d.OpensAt
}

// stockText says how many coupons there are: those left, or those that a draw has given and will give. While coupons are claimed
// the headline says how many are left.
func (p Template) stockText(ctx context.Context) string {
	s := p.state(ctx)
	switch {
	case p.OpeningMode.Drawn():
		return ui.T(ctx, "draw.is_stock", p.Issued, p.Stock)
	case p.opened(ctx) && s != template.Closed && s != template.Cancelled:
		return ui.N(ctx, "drop.coupons", p.Stock)
	}
	return ui.T(ctx, "drop.is_stock", p.left(), p.Stock)
}

func (p Template) opened(ctx context.Context) bool { return !ui.From(ctx).Now.Before(p.OpensAt) }
