package senders

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
)

// calls counts the calls of providers between two reports.
type calls struct {
	mu     sync.Mutex
	worker string
	counts map[counted]*deliverydb.ProviderCalls
}

// counted is a provider of a channel.
type counted struct {
	channel delivery.Channel
	id      int64 // 0 = the environment's
}

// count counts one call with the answers to the messages that were handed over.
func (p *calls) count(c delivery.Channel, id int64, took time.Duration, given []delivery.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.counts[counted{c, id}]
	if n == nil {
		n = &deliverydb.ProviderCalls{Channel: c, Provider: id}
		if p.counts == nil {
			p.counts = map[counted]*deliverydb.ProviderCalls{}
		}
		p.counts[counted{c, id}] = n
	}
	n.Calls++
	n.Messages += int64(len(given))
	n.Total += took
	n.Slowest = max(n.Slowest, took)
	for _, r := range given {
		if r.Status != delivery.Delivered {
			n.Failed++
			n.Error = r.Detail
		}
	}
}

// take returns what was counted and begins anew.
func (p *calls) take() (worker string, list []deliverydb.ProviderCalls) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worker == "" {
		p.worker = uuid.NewString()
	}
	for _, n := range p.counts {
		list = append(list, *n)
	}
	clear(p.counts)
	return p.worker, list
}

// RecordCalls stores the counts. Counts that cannot be stored are dropped: they would be shown
// for a minute only.
func (p *Senders) RecordCalls(ctx context.Context) error {
	worker, list := p.calls.take()
	return p.Stores.Channels.RecordCalls(ctx, worker, list)
}
