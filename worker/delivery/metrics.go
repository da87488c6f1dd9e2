package delivery

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// metrics are the metrics of deliveries. Names are in docs/operations.md.
type metrics struct {
	Deps
	lateness *prometheus.HistogramVec
	sent     *prometheus.CounterVec
	backlog  *prometheus.GaugeVec
	oldest   *prometheus.GaugeVec
	timed    *prometheus.GaugeVec
	breaker  *prometheus.GaugeVec
	paused   *prometheus.GaugeVec
	dead     *prometheus.GaugeVec
	mails    *prometheus.CounterVec
}

func newMetrics(d Deps) *metrics {
	perChannel := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"channel"})
	}
	m := &metrics{
		Deps: d,
		lateness: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_lateness_seconds",
			Help: "From due to recorded, per recipient.", Buckets: []float64{.05, .1, .25, .5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300}}, []string{"channel"}),
		sent:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_sent_total", Help: "Messages handed over."}, []string{"channel"}),
		backlog: perChannel("dropbell_backlog_recipients", "Recipients of fired batches without an outcome."),
		oldest:  perChannel("dropbell_backlog_age_seconds", "How long ago the oldest unfinished batch was due."),
		timed:   perChannel("dropbell_backlog_timed_age_seconds", "How long ago the oldest unfinished batch was due, campaigns apart."),
		breaker: perChannel("dropbell_breaker_state", "Circuit of a channel's provider: 0 closed, 1 half-open, 2 open."),
		paused:  perChannel("dropbell_channel_paused", "1 while an operator has paused the channel."),
		dead:    perChannel("dropbell_dead_letters", "Dead letters that wait for a decision."),
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_bounce_mails_total",
			Help: "Mails of the bounce mailbox, by what became of them."}, []string{"fate"}),
	}
	d.Registry.MustRegister(m.lateness, m.sent, m.backlog, m.oldest, m.timed, m.breaker, m.paused, m.dead, m.mails)
	// Counters are visible from 0, so that alerts see the first increase.
	for _, c := range delivery.AllChannels() {
		m.sent.WithLabelValues(c.String())
	}
	for _, f := range []feedback.Fate{feedback.Reported, feedback.Ignored, feedback.Foreign, feedback.Unreadable} {
		m.mails.WithLabelValues(string(f))
	}
	return m
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

// circuits are the values of dropbell_breaker_state.
var circuits = map[string]float64{redis.StateClosed: 0, redis.StateHalfOpen: 1, redis.StateOpen: 2}

func (m *metrics) gaugeChannels(ctx context.Context) error {
	settings, err := m.Channels.Settings(ctx)
	if err != nil {
		return err
	}
	for c, s := range settings {
		paused := 0.0
		if s.Paused {
			paused = 1
		}
		m.paused.WithLabelValues(delivery.Channel(c).String()).Set(paused)
	}
	states, err := m.Alerts.Circuits(ctx)
	for _, s := range states {
		m.breaker.WithLabelValues(s.Channel.String()).Set(circuits[s.State])
	}
	return err
}

func (m *metrics) gaugeBacklogs(ctx context.Context) error {
	backlogs, err := m.Channels.Backlogs(ctx)
	m.backlog.Reset()
	m.oldest.Reset()
	m.timed.Reset()
	for _, b := range backlogs {
		m.backlog.WithLabelValues(b.Channel.String()).Set(float64(b.People))
		m.oldest.WithLabelValues(b.Channel.String()).Set(b.Oldest.Seconds())
		m.timed.WithLabelValues(b.Channel.String()).Set(b.OldestTimed.Seconds())
	}
	return err
}

func (m *metrics) countDead(ctx context.Context) error {
	groups, err := m.Letters.DeadLetterGroups(ctx, delivery.DeadLetterFilter{})
	if err != nil {
		return err
	}
	var sums [delivery.Channels]int64
	for _, g := range groups {
		sums[g.Channel] += g.Dead
	}
	for i, n := range sums {
		m.dead.WithLabelValues(delivery.Channel(i).String()).Set(float64(n))
	}
	return nil
}
