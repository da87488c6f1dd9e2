package work

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

// TestAStepThatFellBehindIsTold: the log names the step with the rows left, and the metrics say
// since when it is behind; a step that has finished is not told.
func TestAStepThatFellBehindIsTold(t *testing.T) {
	w := pgtest.New(t)
	w.Exec(`insert into housekeeping_steps (step, ran_at, ended_at, behind_since, removed, per_second, remaining) values
		('batches', now(), now(), null, 5, 100, 0), ('coupons', now(), now() - interval '2 hours', now() - interval '90 minutes', 70, 50, 412),
		('audit', now(), null, now() - interval '1 minute', 0, 0, null)`)
	var out strings.Builder
	d := Deps{House: House{Housekeeping: workdb.NewHousekeeping(w.DB)}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&out, nil))}
	w.Must(d.tellBehind(t.Context()))
	if told := out.String(); strings.Count(told, "fell behind") != 2 || !strings.Contains(told, "step=coupons behind=1h30m") || !strings.Contains(told, "left=412") || strings.Contains(told, "batches") {
		t.Errorf("the log has %s", told)
	}
	g := newGauges(d)
	w.Must(g.setHousekeeping(t.Context()))
	behind, left, ended := stepMetrics(t, d.Registry)
	if behind["coupons"] < 5400 || behind["coupons"] > 5500 || behind["batches"] != 0 {
		t.Errorf("behind for %v", behind)
	}
	if left["coupons"] != 412 || len(left) != 2 || len(ended) != 2 {
		t.Errorf("left are %v, ended are %v", left, ended)
	}
}

// stepMetrics returns the gauges of housekeeping by step.
func stepMetrics(t *testing.T, r *prometheus.Registry) (behind, left, ended map[string]float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]float64{}
	for _, f := range families {
		all[f.GetName()] = map[string]float64{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				all[f.GetName()][l.GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return all["dropbell_housekeeping_behind_seconds"], all["dropbell_housekeeping_left"], all["dropbell_housekeeping_ended_timestamp_seconds"]
}
