package program

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"dropbell/domain/delivery"
)

// metrics is what a worker measures. Names are in docs/operations.md.
type metrics struct {
	registry   *prometheus.Registry
	lateness   *prometheus.HistogramVec
	sent       *prometheus.CounterVec
	tasks      *prometheus.HistogramVec
	events     *prometheus.HistogramVec
	deadEvents *prometheus.CounterVec
	failures   *prometheus.CounterVec
	backlog    *prometheus.GaugeVec
	oldest     *prometheus.GaugeVec
	timed      *prometheus.GaugeVec
	queues     *prometheus.GaugeVec
	lag        *prometheus.GaugeVec
	outbox     prometheus.Gauge
	outboxAge  prometheus.Gauge
	eventAhead prometheus.Gauge
	unsettled  prometheus.Gauge
	again      prometheus.Counter
	corrected  prometheus.Counter
	queueAge   *prometheus.GaugeVec
	calls      *prometheus.HistogramVec
	answers    *prometheus.CounterVec
	pushes     *prometheus.CounterVec
	breaker    *prometheus.GaugeVec
	paused     *prometheus.GaugeVec
	jobs       *prometheus.GaugeVec
}

func newMetrics(r *prometheus.Registry) *metrics {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &metrics{
		registry: r,
		lateness: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_lateness_seconds",
			Help: "From due to recorded, per recipient.", Buckets: []float64{.05, .1, .25, .5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300}}, []string{"channel"}),
		sent:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_sent_total", Help: "Messages handed over."}, []string{"channel"}),
		tasks:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_task_seconds", Help: "Execution of queued tasks."}, []string{"task", "result"}),
		events:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_event_seconds", Help: "Handling of events, per attempt."}, []string{"handler", "topic", "result"}),
		deadEvents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_dead_events_total", Help: "Events given up by a handler."}, []string{"handler", "topic"}),
		failures:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_job_failures_total", Help: "Failed runs of background jobs."}, []string{"loop"}),
		backlog:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_backlog_recipients", Help: "Recipients of fired batches without an outcome."}, []string{"channel"}),
		oldest:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_backlog_age_seconds", Help: "How long ago the oldest unfinished batch was due."}, []string{"channel"}),
		timed:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_backlog_timed_age_seconds", Help: "How long ago the oldest unfinished batch was due, campaigns apart."}, []string{"channel"}),
		queues:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_tasks", Help: "Tasks per queue and state."}, []string{"queue", "state"}),
		lag:        prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_event_lag", Help: "Events a group has not handled."}, []string{"topic", "handler"}),
		outbox:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_events", Help: "Events waiting for the relay."}),
		eventAhead: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_event_tables_ahead_seconds", Help: "How far ahead there are tables for the ids of handled events, in whole days."}),
		unsettled:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_events_unsettled", Help: "Events that were relayed and that no look has found handled by every handler."}),
		again:      prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_republished_total", Help: "Events that were published again because Redis may have forgotten them."}),
		corrected:  prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_corrected_total", Help: "Events for shops that correct what was told before the database lost it."}),
		outboxAge:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_age_seconds", Help: "Age of the oldest waiting event."}),
		queueAge:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_age_seconds", Help: "How long the oldest due task has waited for a worker."}, []string{"queue"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_provider_call_seconds", Help: "Calls of a channel's provider, a chunk of messages each.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}}, []string{"channel"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_provider_answers_total", Help: "Answers of a channel's provider, one per message."}, []string{"channel", "class"}),
		pushes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_push_answers_total", Help: "Answers of push services, one per device."}, []string{"service", "class"}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_breaker_state", Help: "Circuit of a channel's provider: 0 closed, 1 half-open, 2 open."}, []string{"channel"}),
		paused:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_channel_paused", Help: "1 while an operator has paused the channel."}, []string{"channel"}),
		jobs:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_background_jobs", Help: "Jobs in the background that are not over."}, []string{"state"}),
	}
	r.MustRegister(m.lateness, m.sent, m.tasks, m.events, m.deadEvents, m.failures, m.backlog, m.oldest, m.timed, m.queues, m.lag, m.outbox, m.outboxAge, m.eventAhead, m.unsettled, m.again, m.corrected,
		m.queueAge, m.calls, m.answers, m.pushes, m.breaker, m.paused, m.jobs)
	m.startAtZero()
	return m
}

// startAtZero makes counters visible before the first event: an increase from
// nothing to one is none.
func (m *metrics) startAtZero() {
	for _, c := range delivery.AllChannels() {
		m.sent.WithLabelValues(c.String())
		for _, class := range classes {
			m.answers.WithLabelValues(c.String(), class)
		}
	}
}

// pushAnswered counts a push service's answer about one device. A message that was kept back
// has none.
func (m *metrics) pushAnswered(service string, answer delivery.Result) {
	if answer.Held {
		return
	}
	m.pushes.WithLabelValues(service, classes[answer.Status]).Inc()
}

func (m *metrics) delivered(c delivery.Channel, sent int, late time.Duration) {
	m.sent.WithLabelValues(c.String()).Add(float64(sent))
	if late < 0 {
		return
	}
	observer := m.lateness.WithLabelValues(c.String())
	for range sent { // each recipient counts, a batch is up to a thousand
		observer.Observe(late.Seconds())
	}
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
