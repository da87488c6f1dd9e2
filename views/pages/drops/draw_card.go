package drops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dropbell/domain/draw"
	"dropbell/views/ui"
)

// drawURL is the public page of the draw.
func (p Template) drawURL() string { return fmt.Sprintf("/draw/%d", p.ID) }

// drawState says in one sentence how far the draw is.
func (p Template) drawState(ctx context.Context) string {
	if p.Draw == nil {
		return ui.T(ctx, "draw.state.none")
	}
	return ui.T(ctx, "draw.state."+string(p.Draw.State))
}

// drawFacts are the figures of the draw. Its entries are won, waiting, struck and left.
func (p Template) drawFacts(ctx context.Context) (list []fact) {
	l, d := ui.From(ctx).Locale, p.Draw
	add := func(key, value string) { list = append(list, fact{key, value}) }
	add("window", l.DateTime(d.OpensAt, p.Zone())+" – "+l.DateTime(d.ClosesAt, p.Zone()))
	add("entries", l.Number(d.Taken()))
	if p.Stock > 0 {
		add("per_coupon", ui.Ratio(ctx, float64(d.Taken())/float64(p.Stock)))
	}
	if d.DrawnAt != nil {
		add("won", l.Number(d.Won))
		add("waiting", l.Number(d.Waiting()))
	}
	if d.Struck > 0 {
		add("struck", l.Number(d.Struck))
	}
	if d.Lapsed > 0 {
		add("lapsed", l.Number(d.Lapsed))
	}
	if d.State == draw.Offered && d.OffersUntil != nil {
		add("offers_until", l.DateTime(*d.OffersUntil, p.Zone()))
	}
	if d.Left > 0 {
		add("left", l.Number(d.Left))
	}
	if d.Round != 0 {
		add("round", fmt.Sprintf("%d, %s", d.Round, l.DateTime(draw.RoundTime(d.Round), p.Zone())))
	}
	if d.Figures != "" && d.Evidence == "" {
		add("figures", d.Figures+" ("+d.FiguresBy+")")
	}
	return list
}

// drawWarning says what weakens the draw.
func (p Template) drawWarning(ctx context.Context) string {
	card, err := p.Draw.Card()
	if err != nil {
		return ""
	}
	switch card.Source.Kind {
	case draw.Local:
		return ui.T(ctx, "draw_page.local")
	case draw.Commit:
		return ui.T(ctx, "draw_page.commit")
	}
	return ""
}

// figuresWanted reports whether the draw waits for the figures of a public draw.
func (p Template) figuresWanted() bool {
	card, err := p.Draw.Card()
	return err == nil && card.Source.Kind == draw.Public && p.Draw.State == draw.Sealed && p.Draw.Evidence == ""
}

// fairnessNote says when the draw was made.
func (p drawn) fairnessNote(ctx context.Context) string {
	d := p.Draw.Draw
	if d.DrawnAt == nil {
		return ui.T(ctx, "draw.state."+string(d.State))
	}
	return ui.T(ctx, "report.draw.at", ui.From(ctx).Locale.DateTime(*d.DrawnAt, p.zone()))
}

// A drawStage is a step of a draw with its instant; the zero instant is not known yet.
type drawStage struct {
	key  string
	at   time.Time
	done bool
}

// stages are the steps of the draw in their order.
func (p Template) stages(ctx context.Context) (list []drawStage) {
	d, now := p.Draw, ui.From(ctx).Now
	add := func(key string, at *time.Time, done bool) {
		s := drawStage{key: key, done: done}
		if at != nil {
			s.at = *at
		}
		list = append(list, s)
	}
	add("opens", &d.OpensAt, !now.Before(d.OpensAt))
	add("closes", &d.ClosesAt, d.State != draw.Open)
	add("seal", d.SealedAt, d.Seal != "")
	var round *time.Time
	if d.Round != 0 {
		round = new(draw.RoundTime(d.Round))
	}
	add("draw", cmp.Or(d.DrawnAt, round), d.DrawnAt != nil)
	if p.AcceptHours > 0 {
		add("offers", d.OffersUntil, d.State == draw.Done)
	}
	add("coupons", nil, d.State == draw.Done)
	return list
}

// entriesChart is how the number of entries grew.
func (p Template) entriesChart(ctx context.Context) ui.TimeChart {
	return ui.TimeChart{ID: "entries", Label: ui.T(ctx, "draw.chart", p.Name), Value: ui.T(ctx, "draw.entries"), None: ui.T(ctx, "draw.chart_none"), Zone: p.Zone(),
		Own: ui.Curve{Name: p.Name, Origin: p.OpensAt, Points: p.Entries}}
}
