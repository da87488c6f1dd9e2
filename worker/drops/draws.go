package drops

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/draw"
)

// draws takes the steps of draws and measures how late they are.
type draws struct {
	operator *draw.Operator
	rows     interface {
		DrawLateness(ctx context.Context) (seconds float64, err error)
	}
	late prometheus.Gauge
}

func newDraws(d Deps) draws {
	w := draws{d.Draws, d.DrawRows, prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_draw_late_seconds",
		Help: "How long ago the next step of a draw should have been taken: its close, its seal, the draw after its round, the coupons of its winners, or the end of their offers."})}
	d.Registry.MustRegister(w.late)
	return w
}

// sweep takes the next step of every draw that has one. It needs no data in Redis.
func (w draws) sweep(ctx context.Context) error {
	if err := w.operator.Sweep(ctx); err != nil {
		return err
	}
	late, err := w.rows.DrawLateness(ctx)
	w.late.Set(late)
	return err
}
