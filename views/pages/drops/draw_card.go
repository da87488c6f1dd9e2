package drops

import (
	"context"
	"fmt"

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
		add("per_coupon", fmt.Sprintf("%.1f", float64(d.Taken())/float64(p.Stock)))
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
