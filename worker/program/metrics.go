package program

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the metrics that a worker keeps of the rooms' work. Names are in
// docs/operations.md.
type metrics struct {
	tasks      *prometheus.HistogramVec
	events     *prometheus.HistogramVec
	deadEvents *prometheus.CounterVec
	failures   *prometheus.CounterVec
}

func newMetrics(r *prometheus.Registry) *metrics {
	m := &metrics{
		tasks:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_task_seconds", Help: "Execution of queued tasks."}, []string{"task", "result"}),
		events:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_event_seconds", Help: "Handling of events, per attempt."}, []string{"handler", "topic", "result"}),
		deadEvents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_dead_events_total", Help: "Events given up by a handler."}, []string{"handler", "topic"}),
		failures:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_job_failures_total", Help: "Failed runs of background jobs."}, []string{"loop"}),
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.tasks, m.events, m.deadEvents, m.failures)
	return m
}

func (m *metrics) handled(handler, topic string, took time.Duration, err error) {
	m.events.WithLabelValues(handler, topic, result(err)).Observe(took.Seconds())
}

func (m *metrics) deadMessage(handler, topic string) {
	m.deadEvents.WithLabelValues(handler, topic).Inc()
}

func (m *metrics) taskDone(name string, took time.Duration, err error) {
	m.tasks.WithLabelValues(name, result(err)).Observe(took.Seconds())
}

func (m *metrics) jobFailed(name string) { m.failures.WithLabelValues(name).Inc() }

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
