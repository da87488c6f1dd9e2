package drops

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/series"
	"dropbell/domain/staff/alert"
)

// repeating creates the drops of series, and copies standing reservations to them.
type repeating struct {
	keeper *series.Keeper
	rows   dropsdb.Series
	late   prometheus.Gauge
}

func newRepeating(d Deps) repeating {
	drops := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_series_drops_total",
		Help: "Drops of series that were created, changed or published (kept), taken out of their series (removed), or refused."}, []string{"outcome"})
	users := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_series_reservations_total",
		Help: "Reservations that were copied from standing reservations to drops of series."})
	late := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_series_late_seconds",
		Help: "For how long a series has been due whose drops are not created."})
	d.Registry.MustRegister(drops, users, late)
	for _, outcome := range []string{"kept", "removed", "refused"} {
		drops.WithLabelValues(outcome)
	}
	d.Series.Done = func(o series.Occurrence) {
		outcome := "kept"
		switch {
		case o.State == series.Removed:
			outcome = "removed"
		case o.Why != nil:
			outcome = "refused"
		}
		drops.WithLabelValues(outcome).Inc()
	}
	d.Series.Copied = func(n int64) { users.Add(float64(n)) }
	return repeating{d.Series, d.SeriesRows, late}
}

func (r repeating) sweep(ctx context.Context) error {
	failed := r.keeper.Sweep(ctx)
	late, err := r.rows.SeriesLate(ctx)
	if err == nil {
		r.late.Set(late.Seconds())
	}
	return errors.Join(failed, err)
}

// refusedAtMost is how many drops of series staff are told of at once.
const refusedAtMost = 100

// refusedDrops returns the drops of series that need staff as conditions.
func (d Deps) refusedDrops(ctx context.Context) ([]alert.Condition, error) {
	refused, err := d.SeriesRows.Refused(ctx, refusedAtMost)
	list := make([]alert.Condition, len(refused))
	for i, r := range refused {
		list[i] = alert.Condition{Kind: alert.Series, Object: fmt.Sprintf("%d:%s", r.SeriesID, r.Day), Shop: r.Shop, Template: r.TemplateID, Name: r.Series,
			Detail: r.Day, Path: fmt.Sprintf("/series/%d", r.SeriesID)}
	}
	return list, err
}
