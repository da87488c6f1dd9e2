package program

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/event"
	"dropbell/domain/template"
)

// gateGroupMetrics measures the script calls of the claim gate.
func (p *program) gateGroupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_size",
		Help: "Claims decided by one script call of the claim gate.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_seconds",
		Help: "Time of one script call of the claim gate.", Buckets: prometheus.ExponentialBuckets(.00025, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// listenGate makes the gate look again at what it believed to be gone.
func (p *program) listenGate() {
	p.bus.Listen("gate", event.GateRefilled, app.Decoded(func(_ context.Context, _ string, e event.Gate) error {
		p.claims.Gate.Forget(e.TemplateID)
		return nil
	}))
}

const (
	// tellFor is how long a change of a template waits for its shards.
	tellFor = time.Second
	// buildFor bounds the building of a gate that was begun meanwhile.
	buildFor = 10 * time.Second
)

// teller puts a change of a template in force at its gate before staff are
// told that it is stored: publishing fills the shards, raising the stock adds
// to them. It cannot fail a change: should Redis not answer, a worker does it
// as soon as it can.
type teller struct {
	template.Store
	keeper *gate.Keeper
	gate   *redisgate.Gate
}

func (p *program) telling(s template.Store) template.Store {
	gates := postgres.NewGates(p.DB)
	// What is on the streams is only looked through; no group is taken.
	writer := &gate.Writer{Stream: redisgate.NewStream(p.Redis, "web"), Recorder: postgres.NewGateRecorder(p.DB)}
	return teller{s, &gate.Keeper{Store: gates, Shards: redisgate.NewShards(p.Redis), Writer: writer, Now: app.Clock,
		Divide: gate.Divider(p.Config.GateShelves)}, p.claims.Gate}
}

func (t teller) Save(ctx context.Context, c template.Change) (template.Template, error) {
	saved, err := t.Store.Save(ctx, c)
	if err == nil && saved.ClaimMode == template.Gate {
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Left half built, a gate would have to wait for somebody else.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildFor)
			defer cancel()
			_ = t.keeper.ApplyNow(ctx, saved.ID)
			t.gate.Forget(saved.ID) // other processes hear of it
		}()
		late := time.NewTimer(tellFor)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
		}
	}
	return saved, err
}

// whereabouts tells where the coupons of any template are.
func (p *program) whereabouts() gate.Accounts {
	return gate.Accounts{Plans: postgres.NewGates(p.DB), Shards: redisgate.NewShards(p.Redis)}
}

// ledgers accounts for stock, behind the gate too.
func (p *program) ledgers() gateLedgers {
	return gateLedgers{postgres.NewLedgers(p.DB), dropsdb.NewTemplates(p.DB), p.whereabouts()}
}

type gateLedgers struct {
	rows      postgres.Ledgers
	templates dropsdb.Templates
	gate      gate.Accounts
}

// Ledger recounts the template's coupons. Of a gate that stands it says what
// is on the shards and what is being written; if they do not answer it
// returns [claim.ErrOverloaded], since nothing would be proven.
func (l gateLedgers) Ledger(ctx context.Context, templateID int64) (claim.Ledger, error) {
	counted, err := l.rows.Ledger(ctx, templateID)
	if err != nil {
		return counted, err
	}
	t, err := l.templates.Template(ctx, templateID)
	if err != nil {
		return counted, err
	}
	seen, err := l.gate.Of(ctx, t)
	if seen.Away {
		return counted, claim.ErrOverloaded.Because("the shelves of this drop do not answer")
	}
	return seen.Settle(counted), err
}
