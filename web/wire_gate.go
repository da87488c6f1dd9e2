package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/stock"
	"dropbell/domain/template"
)

// gateFacts are what the gate asks the database; templates come from the
// cache of this process.
type gateFacts struct {
	postgres.Gates
	*lookup.Templates
}

// newGate builds the claim gate; later decides what staff give away once a
// drop's shelves have been taken down.
func (p *program) newGate(later claim.Gate) *redis.Gate {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_size",
		Help: "Claims decided by one script call of the claim gate.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_seconds",
		Help: "Time of one script call of the claim gate.", Buckets: prometheus.ExponentialBuckets(.00025, 2, 14)})
	p.registry.MustRegister(size, took)
	return redis.NewGate(p.redis, gateFacts{postgres.NewGates(p.db), p.lookup}, redis.GateOptions{Later: later, Now: clock,
		Observe: func(n int, d time.Duration) {
			size.Observe(float64(n))
			took.Observe(d.Seconds())
		}})
}

// listenGate makes the gate look again at what it believed to be gone.
func (p *program) listenGate() {
	p.bus.Listen("gate", event.GateRefilled, decoded(func(_ context.Context, e event.Gate) error {
		p.gate.Forget(e.TemplateID)
		return nil
	}))
}

// tellFor is how long a change of a template waits for its shelves.
const tellFor = time.Second

// teller puts a change of a template in force at its gate before staff are
// told that it is stored. It cannot fail a change: should Redis not answer, a
// worker does it as soon as it can.
type teller struct {
	template.Store
	keeper *stock.Keeper
}

func (p *program) telling(s template.Store) template.Store {
	return teller{s, &stock.Keeper{Store: postgres.NewGates(p.db), Shelves: redis.NewShelves(p.redis), Now: clock}}
}

func (t teller) Save(ctx context.Context, c template.Change) (template.Template, error) {
	saved, err := t.Store.Save(ctx, c)
	if err == nil && saved.ClaimMode == template.Gate {
		ctx, cancel := context.WithTimeout(ctx, tellFor)
		defer cancel()
		_ = t.keeper.Tell(ctx, saved.ID)
	}
	return saved, err
}

// shelfLooker shows the console what the database and the shelves know of a gate.
type shelfLooker struct {
	postgres.Gates
	redis.Shelves
}

// ledgers accounts for stock, behind the gate too.
func (p *program) ledgers() gateLedgers {
	return gateLedgers{postgres.NewLedgers(p.db), shelfLooker{postgres.NewGates(p.db), redis.NewShelves(p.redis)}}
}

type gateLedgers struct {
	rows postgres.Ledgers
	gate shelfLooker
}

// Ledger recounts the template's coupons. Behind a gate that stands it says
// what is on the shelves and what is being written: written as of the count,
// which is a moment older than the look. What the gate itself cannot account
// for shows as a difference.
func (l gateLedgers) Ledger(ctx context.Context, templateID int64) (claim.Ledger, error) {
	counted, err := l.rows.Ledger(ctx, templateID)
	if err != nil {
		return counted, err
	}
	plan, err := l.gate.Plan(ctx, templateID)
	if err != nil || plan.State != stock.Standing {
		return counted, err
	}
	shelves, err := l.gate.Look(ctx, templateID, plan.Shards)
	if err != nil {
		return counted, err
	}
	seen := plan.Ledger(shelves)
	counted.Writing = seen.Writing + seen.Issued - (counted.Total - counted.Shelf)
	counted.Shelf = seen.Shelf - (seen.Total - counted.Total) + seen.Difference
	return counted, nil
}
