package program

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics is what a worker measures. Names are in docs/operations.md.
type metrics struct {
	registry   *prometheus.Registry
	tasks      *prometheus.HistogramVec
	events     *prometheus.HistogramVec
	deadEvents *prometheus.CounterVec
	failures   *prometheus.CounterVec
	queues     *prometheus.GaugeVec
	lag        *prometheus.GaugeVec
	outbox     prometheus.Gauge
	outboxAge  prometheus.Gauge
	eventAhead prometheus.Gauge
	unsettled  prometheus.Gauge
	again      prometheus.Counter
	corrected  prometheus.Counter
	queueAge   *prometheus.GaugeVec
	jobs       *prometheus.GaugeVec
}

func newMetrics(r *prometheus.Registry) *metrics {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &metrics{
		registry:   r,
		tasks:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_task_seconds", Help: "Execution of queued tasks."}, []string{"task", "result"}),
		events:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_event_seconds", Help: "Handling of events, per attempt."}, []string{"handler", "topic", "result"}),
		deadEvents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_dead_events_total", Help: "Events given up by a handler."}, []string{"handler", "topic"}),
		failures:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_job_failures_total", Help: "Failed runs of background jobs."}, []string{"loop"}),
		queues:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_tasks", Help: "Tasks per queue and state."}, []string{"queue", "state"}),
		lag:        prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_event_lag", Help: "Events a group has not handled."}, []string{"topic", "handler"}),
		outbox:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_events", Help: "Events waiting for the relay."}),
		eventAhead: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_event_tables_ahead_seconds", Help: "How far ahead there are tables for the ids of handled events, in whole days."}),
		unsettled:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_events_unsettled", Help: "Events that were relayed and that no look has found handled by every handler."}),
		again:      prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_republished_total", Help: "Events that were published again because Redis may have forgotten them."}),
		corrected:  prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_corrected_total", Help: "Events for shops that correct what was told before the database lost it."}),
		outboxAge:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_age_seconds", Help: "Age of the oldest waiting event."}),
		queueAge:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_age_seconds", Help: "How long the oldest due task has waited for a worker."}, []string{"queue"}),
		jobs:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_background_jobs", Help: "Jobs in the background that are not over."}, []string{"state"}),
	}
	r.MustRegister(m.tasks, m.events, m.deadEvents, m.failures, m.queues, m.lag, m.outbox, m.outboxAge, m.eventAhead, m.unsettled, m.again, m.corrected,
		m.queueAge, m.jobs)
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
