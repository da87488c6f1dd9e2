package drops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// drawURL is the public page of the draw.
func drawURL(t template.Template) string { return fmt.Sprintf("/draw/%d", t.ID) }

// drawState says in one sentence how far the draw is.
func (p Template) drawState(ctx context.Context) string {
	if p.Draw == nil {
		return ui.T(ctx, "draw.state.none")
	}
	return drawText(ctx, p.Drop.Template, p.Draw)
}

// drawText says in one sentence how many entries the draw has, and how far it is.
func drawText(ctx context.Context, t template.Template, d *draw.Draw) string {
	l := ui.From(ctx).Locale
	state := l.T("draw.state." + string(d.State))
	switch {
	case d.State == draw.Cancelled:
		return state
	case d.DrawnAt != nil:
		return l.T("ui.sentences", l.N("draw.said.drawn", d.Won, l.Number(d.Entries())), state)
	case d.State == draw.Sealed && ui.From(ctx).Now.Before(d.DueAt()):
		return l.T("ui.sentences", l.N("draw.said.taken", d.Entries(), l.Number(t.Stock)), l.T("draw.said.due", seconds(d.DueAt(), t.Zone())))
	case d.State == draw.Open:
		return l.N("draw.said.open", d.Entries(), l.Number(t.Stock), l.DateTime(d.ClosesAt, t.Zone()))
	}
	return l.T("ui.sentences", l.N("draw.said.taken", d.Entries(), l.Number(t.Stock)), state)
}

// openingField names the opening of the drop, at which the entries of a draw close.
func openingField(t template.Template) string {
	if t.OpeningMode.Drawn() {
		return "draw.stage.closes"
	}
	return "field.opens_at"
}

// drawWinners is how many entries have won, or can win.
func drawWinners(t template.Template, d *draw.Draw) int64 {
	if d.DrawnAt != nil {
		return d.Won
	}
	return min(t.Stock, d.Entries())
}

// drawPieces divides the entries by their result.
func drawPieces(t template.Template, d *draw.Draw) []parts.Piece {
	won := drawWinners(t, d)
	return []parts.Piece{{Class: "bar-sent", N: won}, {Class: "bar-expired", N: d.Lapsed}, {Class: "bar-dead", N: d.Struck}, {Class: "bar-skipped", N: d.Taken() - won - d.Lapsed - d.Struck}}
}

// drawOdds says how many entries there are for each coupon.
func drawOdds(ctx context.Context, t template.Template, d *draw.Draw) string {
	won := drawWinners(t, d)
	if won == 0 {
		return ui.T(ctx, "draw.chart_none")
	}
	return ui.T(ctx, "draw.odds", ui.Ratio(ctx, float64(d.Entries())/float64(won)), ui.From(ctx).Locale.Percent(won, d.Entries()))
}

// drawFacts are the figures of the draw that neither its sentence nor its steps have.
func (p Template) drawFacts(ctx context.Context) (list []fact) {
	l, d := ui.From(ctx).Locale, p.Draw
	add := func(key, value string) { list = append(list, fact{key, value}) }
	if d.DrawnAt != nil {
		add("waiting", l.Number(d.Waiting()))
	}
	if d.Struck > 0 {
		add("struck", l.Number(d.Struck))
	}
	if d.Lapsed > 0 {
		add("lapsed", l.Number(d.Lapsed))
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
	add("draw", cmp.Or(d.DrawnAt, new(d.DueAt())), d.DrawnAt != nil)
	if p.AcceptHours > 0 {
		add("offers", d.OffersUntil, d.State == draw.Done)
	}
	add("coupons", nil, d.State == draw.Done)
	return list
}

// entriesChart is how the number of entries grew.
func entriesChart(ctx context.Context, t template.Template, points []reminder.Growth) ui.TimeChart {
	return ui.TimeChart{ID: "entries", Label: ui.T(ctx, "draw.chart", t.Name), Value: ui.T(ctx, "draw.entries"), None: ui.T(ctx, "draw.chart_none"), Zone: t.Zone(),
		Own: ui.Curve{Name: t.Name, Origin: t.OpensAt, Points: points}}
}
