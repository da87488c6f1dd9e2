package drops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/export"
)

// exportsEvery is how often drops are looked for that are due to be exported. They become due at night.
const exportsEvery = 10 * time.Minute

// exports exports drops that are over.
type exports struct {
	*export.Exporter
	rows dropsdb.Exports
	late prometheus.Gauge
}

func newExports(d Deps) exports {
	late := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_export_late_seconds",
		Help: "For how long the export of a drop has been due."})
	d.Registry.MustRegister(late)
	return exports{d.Exports, d.ExportRows, late}
}

func (e exports) run(ctx context.Context) error {
	failed := e.Run(ctx)
	at, err := e.rows.Oldest(ctx)
	switch {
	case err != nil:
	case at.IsZero():
		e.late.Set(0)
	default:
		e.late.Set(max(0, app.Clock().Sub(at).Seconds()))
	}
	if failed != nil {
		return failed
	}
	return err
}
