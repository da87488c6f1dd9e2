package program

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
)

// callsEvery is how often a worker stores the results of its providers' calls.
const callsEvery = 5 * time.Second

// providerCalls counts the calls of providers between two reports.
type providerCalls struct {
	mu     sync.Mutex
	worker string
	counts [delivery.Channels]deliverydb.ProviderCalls
}

func (p *providerCalls) count(c delivery.Channel, took time.Duration, results []delivery.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.counts[c]
	n.Channel = c
	n.Calls++
	n.Messages += int64(len(results))
	n.Total += took
	n.Slowest = max(n.Slowest, took)
	for _, r := range results {
		if r.Status != delivery.Delivered {
			n.Failed++
			n.Error = r.Detail
		}
	}
}

// take returns what was counted and begins anew.
func (p *providerCalls) take() (worker string, list []deliverydb.ProviderCalls) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worker == "" {
		p.worker = uuid.NewString()
	}
	for i, n := range p.counts {
		if n.Calls > 0 {
			list = append(list, n)
		}
		p.counts[i] = deliverydb.ProviderCalls{}
	}
	return p.worker, list
}

// recordCalls stores the counts; those it cannot store are lost, since they
// would be shown for a minute only.
func (p *program) recordCalls(ctx context.Context) error {
	worker, list := p.providers.take()
	return deliverydb.NewChannels(p.DB).RecordCalls(ctx, worker, list)
}
