package drops

import (
	"cmp"
	"context"

	"dropbell/domain/template"
	"dropbell/views/ui"
)

// openingModes offers the three ways to share coupons.
func (p TemplateForm) openingModes(ctx context.Context) ui.ChoiceProps {
	c := p.choice(ctx, "opening_mode", string(template.FirstCome), string(template.Shuffled), string(template.ByDraw))
	c.Value, c.Help = cmp.Or(c.Value, string(template.FirstCome)), ui.T(ctx, "help.opening_mode")
	return c
}

// drawSources offers the sources of randomness; the first one leaves the choice to the server.
func (p TemplateForm) drawSources(ctx context.Context) ui.ChoiceProps {
	c := p.choice(ctx, "draw_source", template.SourceDrand, template.SourcePublic, template.SourceCommit, template.SourceLocal)
	c.Options = append([]ui.Option{{Value: "", Label: ui.T(ctx, "draw_source.best"), Help: ui.T(ctx, "draw_source.best.help")}}, c.Options...)
	return c
}

// countsOpening reports whether a field of the opening belongs to the chosen mode and source.
func (p TemplateForm) countsOpening(name string) bool {
	mode := template.OpeningMode(p.Values["opening_mode"])
	switch name {
	case "entry_minutes", "draw_source":
		return mode.Drawn()
	case "accept_hours":
		return mode == template.ByDraw
	case "accept_minutes":
		return template.Waitlist(p.Values["waitlist"]) == template.OfferNext
	case "draw_public":
		return mode.Drawn() && p.Values["draw_source"] == template.SourcePublic
	}
	return true
}
