package work

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/event/hook"
)

// hookMetrics are what a worker measures of webhooks.
type hookMetrics struct {
	attempts *prometheus.CounterVec
	seconds  prometheus.Histogram
	waiting  prometheus.Gauge
	oldest   prometheus.Gauge
	failing  *prometheus.GaugeVec
}

func newHookMetrics(r *prometheus.Registry) *hookMetrics {
	m := &hookMetrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_webhook_attempts_total", Help: "Requests to webhook endpoints of shops."}, []string{"type", "result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_webhook_seconds", Help: "Requests to webhook endpoints of shops, from the name to the end of the answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_webhooks_due", Help: "Deliveries to webhook endpoints that are due, of endpoints whose circuit is closed."}),
		oldest:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_webhooks_due_age_seconds", Help: "For how long the oldest of these has been due."}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_webhook_endpoints", Help: "Webhook endpoints that fail, or that their failures disabled."}, []string{"state"}),
	}
	r.MustRegister(m.attempts, m.seconds, m.waiting, m.oldest, m.failing)
	for _, t := range append(hook.Types(), hook.TestEvent) {
		m.attempts.WithLabelValues(string(t), "ok")
		m.attempts.WithLabelValues(string(t), "error")
	}
	return m
}

func (m *hookMetrics) attempted(t hook.Type, a hook.Answer) {
	answer := "ok"
	if !a.OK() {
		answer = "error"
	}
	m.attempts.WithLabelValues(string(t), answer).Inc()
	m.seconds.Observe(a.Took.Seconds())
}

// gauge takes the state of the endpoints.
func (h *Hooks) gauge(ctx context.Context) error {
	s, err := h.store.State(ctx)
	if err != nil {
		return err
	}
	h.metrics.waiting.Set(float64(s.Waiting))
	h.metrics.oldest.Set(s.OldestSeconds)
	h.metrics.failing.WithLabelValues("failing").Set(float64(s.Failing))
	h.metrics.failing.WithLabelValues("disabled").Set(float64(s.Disabled))
	return nil
}
