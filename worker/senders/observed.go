package senders

import (
	"context"
	"time"

	"dropbell/domain/delivery"
)

// classes name the provider's answers in metrics.
var classes = [...]string{delivery.Transient: "transient", delivery.Delivered: "delivered",
	delivery.Throttled: "throttled", delivery.Permanent: "permanent"}

// observed returns the sender with every call traced and, except for the app inbox, measured:
// only a provider can be slow or fail. id is the provider's number; 0 = the environment's
// provider.
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

// ownAnswers returns the answers of the sender's own provider. Answers of configured push
// services are left out: [countedService] counts them.
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

// Send calls Send of the embedded sender and measures the call. Messages that the sender held
// back are not counted: their delay is planned, and no provider was called.
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
