// Package workertest has the helpers that tests of worker's rooms share.
package workertest

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
)

// Value returns the value of the gauge or counter with exactly these labels ("channel=sms"), and
// whether it exists. For a histogram the value is its number of samples.
func Value(t *testing.T, g prometheus.Gatherer, name string, labels ...string) (float64, bool) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && slices.Equal(labelsOf(m), slices.Sorted(slices.Values(labels))) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

func labelsOf(m *dto.Metric) []string {
	var list []string
	for _, l := range m.Label {
		list = append(list, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(list)
	return list
}

// Expect fails the test unless there is the metric and it has the value; see [Value].
func Expect(t *testing.T, g prometheus.Gatherer, want float64, name string, labels ...string) {
	t.Helper()
	if got, ok := Value(t, g, name, labels...); got != want || !ok {
		t.Errorf("%s %v = %v (there: %v), want %v", name, labels, got, ok, want)
	}
}

// AloneFor are limits that so many processes share.
func AloneFor(processes int) *redis.Alone {
	return redis.NewAlone(redis.AloneConfig{Sharing: func(context.Context, delivery.Channel) int { return processes },
		Counted: func(string, int) {}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
}
