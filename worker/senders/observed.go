package senders

import (
	"context"
	"time"

	"dropbell/domain/delivery"
)

// classes name the provider's answers in metrics.
var classes = [...]string{delivery.Transient: "transient", delivery.Delivered: "delivered",
	delivery.Throttled: "throttled", delivery.Permanent: "permanent"}

// observed returns the sender of a provider with every call traced, and measured where
// a provider can be slow or fail. id is the provider's, 0 = the environment's.
func (p *Senders) observed(s delivery.Sender, id int64) delivery.Sender {
	if s.Channel() != delivery.App {
		s = measured{s, p.metrics, p.calls, id}
	}
	return p.Tracing.Sender(s)
}

// measured is a sender whose calls and answers are counted.
type measured struct {
	delivery.Sender
	metrics *metrics
	calls   *calls
	id      int64
}

// ownAnswers returns what the provider of the sender has answered: those of configured
// services of push are counted by [countedService].
func ownAnswers(results []delivery.Result) (own []delivery.Result) {
	for _, r := range results {
		switch {
		case r.Beside != nil && !r.Beside.Held:
			own = append(own, *r.Beside)
		case !r.Held && (!r.Judged || r.Via == 0):
			own = append(own, r)
		}
	}
	return own
}

// Send is that of the sender below. Messages that it kept back are not counted: their pace is
// planned, and no provider was asked.
func (m measured) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	started := time.Now()
	results := m.Sender.Send(ctx, messages)
	given, _ := delivery.Handed(results)
	if len(given) == 0 {
		return results
	}
	channel := m.Channel().String()
	took := time.Since(started)
	m.metrics.calls.WithLabelValues(channel).Observe(took.Seconds())
	if own := ownAnswers(results); len(own) > 0 {
		m.calls.count(m.Channel(), m.id, took, own)
	}
	var counts [len(classes)]int
	for _, r := range given {
		counts[r.Status]++
	}
	for status, n := range counts {
		m.metrics.answers.WithLabelValues(channel, classes[status]).Add(float64(n))
	}
	return results
}
