package work

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/app"
)

const (
	// recountTurn is how long one recount of figures goes on with further drops.
	recountTurn = time.Minute
	// recountedAtOnce bounds the drops of one recount. impossibleAtOnce bounds the drops that a
	// census recounts because their figures cannot be true.
	recountedAtOnce  = 1000
	impossibleAtOnce = 20
)

// figures replaces sums that handlers of events keep where they differ from the rows.
type figures struct {
	all       app.Figures
	corrected *prometheus.CounterVec
	found     func(figure string, templateID, off int64)
}

func newFigures(d Deps) figures {
	f := figures{all: d.Figures, corrected: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_figures_corrected_total",
		Help: "Drops whose figures differed from the rows, and were replaced."}, []string{"figure"}),
		found: func(figure string, id, off int64) {
			d.Log.Error("figures that events keep differed from the rows, and were replaced", "figure", figure, "template", id, "off", off)
		}}
	for _, one := range f.all {
		f.corrected.WithLabelValues(one.Name)
	}
	d.Registry.MustRegister(f.corrected)
	return f
}

// recount compares the figures that are due for a while.
func (f figures) recount(ctx context.Context) error {
	return f.each(ctx, func(one app.Figure) ([]int64, error) { return one.Due(ctx, recountedAtOnce) })
}

// correct recounts figures that cannot be true.
func (f figures) correct(ctx context.Context) error {
	return f.each(ctx, func(one app.Figure) ([]int64, error) { return one.Impossible(ctx, impossibleAtOnce) })
}

func (f figures) each(ctx context.Context, which func(app.Figure) (templates []int64, err error)) (failed error) {
	until := time.Now().Add(recountTurn)
	for _, one := range f.all {
		ids, err := which(one)
		failed = errors.Join(failed, err)
		for _, id := range ids {
			if ctx.Err() != nil || !time.Now().Before(until) {
				break
			}
			off, err := one.Recount(ctx, id)
			failed = errors.Join(failed, err)
			if err == nil && off != 0 {
				f.corrected.WithLabelValues(one.Name).Inc()
				f.found(one.Name, id, off)
			}
		}
	}
	return failed
}
