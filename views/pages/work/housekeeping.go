package work

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/housekeeping"
	"dropbell/views/ui"
)

// Housekeeping is the progress of the removal of old rows.
type Housekeeping struct {
	Steps []housekeeping.Step
	// Archived is how many drops are archived.
	Archived int64
	Now      time.Time
}

// HousekeepingURL is where the progress of the removal of old rows is.
const HousekeepingURL = "/housekeeping"

// behind is the number of steps that did not finish in their time.
func (p Housekeeping) behind() int { return len(p.unfinished()) }

// unfinished are the steps that did not finish in their time.
func (p Housekeeping) unfinished() []housekeeping.Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s housekeeping.Step) bool { return !s.Behind() })
}

func (p Housekeeping) finished() []housekeeping.Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), housekeeping.Step.Behind)
}

// stepName says which rows a step removes.
func stepName(ctx context.Context, s housekeeping.Step) string {
	if key := "housekeeping.step." + s.Name; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return s.Name // a step of a newer worker
}

// ago writes how long ago the instant was, "–" if it never came.
func (p Housekeeping) ago(ctx context.Context, at *time.Time) string {
	if at == nil {
		return "–"
	}
	return ui.From(ctx).Locale.Ago(*at, p.Now)
}

// left writes how many rows the last run left.
func left(ctx context.Context, s housekeeping.Step) string {
	switch {
	case s.Left == nil:
		return ui.T(ctx, "housekeeping.uncounted")
	case *s.Left >= housekeeping.CountedLeft:
		return ui.T(ctx, "housekeeping.more_than", int64(housekeeping.CountedLeft))
	}
	return ui.Num(ctx, *s.Left)
}

// rate writes how many rows a second the step removes.
func rate(ctx context.Context, s housekeeping.Step) string {
	if s.PerSecond == 0 {
		return "–"
	}
	return ui.Num(ctx, int64(s.PerSecond+0.5))
}

// summary says whether all steps finished, and how many drops are archived.
func (p Housekeeping) summary(ctx context.Context) string {
	state := ui.T(ctx, "housekeeping.all_finished")
	if n := p.behind(); n > 0 {
		state = ui.N(ctx, "housekeeping.some_behind", int64(n))
	}
	return ui.T(ctx, "ui.sentences", state, ui.N(ctx, "housekeeping.archived", p.Archived))
}
