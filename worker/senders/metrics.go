package senders

import (
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/delivery"
)

// metrics are the metrics of providers. Names are in docs/operations.md.
type metrics struct {
	calls   *prometheus.HistogramVec
	answers *prometheus.CounterVec
	pushes  *prometheus.CounterVec
}

func newMetrics(r *prometheus.Registry) *metrics {
	m := &metrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dropbell_provider_call_seconds", Help: "Calls of a channel's provider, a chunk of messages each.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20}}, []string{"channel"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_provider_answers_total", Help: "Answers of a channel's provider, one per message."}, []string{"channel", "class"}),
		pushes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_push_answers_total", Help: "Answers of push services, one per device."}, []string{"service", "class"}),
	}
	r.MustRegister(m.calls, m.answers, m.pushes)
	for _, c := range delivery.AllChannels() { // alerts see the increase from 0
		for _, class := range classes {
			m.answers.WithLabelValues(c.String(), class)
		}
	}
	return m
}

// pushAnswered counts the answer of a push service about one device. A message that was held
// back has no answer and is not counted.
func (m *metrics) pushAnswered(service string, answer delivery.Result) {
	if answer.Held {
		return
	}
	m.pushes.WithLabelValues(service, classes[answer.Status]).Inc()
}
