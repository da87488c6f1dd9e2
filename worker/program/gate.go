package program

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/claim/gate"
	"dropbell/domain/event"
	"dropbell/domain/fault"
)

const (
	// gateSweeps is how many sweeps run at a time, so that building a large
	// gate does not keep the others waiting.
	gateSweeps = 2
	// gateIdle is the pause of a writer that has found nothing.
	gateIdle = 20 * time.Millisecond
	// gateWriters is for how many drops one worker writes at a time. Those of
	// one drop take turns in the database anyway.
	gateWriters = 4
	// gateListEvery is how often a writer looks for new drops.
	gateListEvery = 500 * time.Millisecond
	// drainGateFor bounds how long one drop keeps a writer while others wait.
	drainGateFor = 500 * time.Millisecond
)

// gateWork is this worker's share of the claim gate: keeping shards and
// plans in agreement, and writing what was accepted.
type gateWork struct {
	store  couponsdb.Gates
	stream redisgate.Stream
	keeper *gate.Keeper
	writer *gate.Writer

	drops  map[int64]int // with shards, as of listed; for the writer alone
	listed time.Time

	difference *prometheus.GaugeVec
	coupons    *prometheus.GaugeVec
	builds     *prometheus.CounterVec
	written    *prometheus.CounterVec
}

func (p *program) newGateWork(consumer string) (*gateWork, error) {
	codes, err := p.newCodeMarks()
	if err != nil {
		return nil, err
	}
	g := &gateWork{store: couponsdb.NewGates(p.DB), stream: redisgate.NewStream(p.Redis, consumer),
		difference: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_gate_difference",
			Help: "Coupons that the ledger of a drop behind the gate is off by."}, []string{"template"}),
		coupons: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_gate_coupons",
			Help: "Coupons of a drop behind the gate: available (shelf), being written (writing), issued."}, []string{"template", "place"}),
		builds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_gate_builds_total",
			Help: "Gates built, by what made it necessary."}, []string{"reason"}),
		written: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_gate_written_total",
			Help: "Accepted claims decided by the database."}, []string{"result"}),
	}
	p.metrics.registry.MustRegister(g.difference, g.coupons, g.builds, g.written)
	for _, reason := range []string{gate.ReasonNew, gate.ReasonUnfinished, gate.ReasonLost, gate.ReasonDifference,
		gate.ReasonExcess} {
		g.builds.WithLabelValues(reason)
	}
	for _, result := range []string{"issued", "refused"} {
		g.written.WithLabelValues(result)
	}
	g.writer = &gate.Writer{Stream: g.stream, Recorder: couponsdb.NewGateRecorder(p.DB), Wrote: func(issued, refused int) {
		g.written.WithLabelValues("issued").Add(float64(issued))
		g.written.WithLabelValues("refused").Add(float64(refused))
	}, Used: func(ctx context.Context, keys []string) {
		if err := codes.mark(ctx, keys); err != nil {
			p.Log.Warn("used codes are not marked in Redis; a repeated use is refused by the database instead", "codes", len(keys), "error", err)
		}
	}}
	g.keeper = &gate.Keeper{Store: g.store, Shards: redisgate.NewShards(p.Redis), Writer: g.writer, Now: app.Clock, Seen: g.seen,
		Divide: gate.Divider(p.Config.GateShards),
		Built: func(id int64, reason string) {
			g.builds.WithLabelValues(reason).Inc()
			p.Log.Info("gate built", "template", id, "reason", reason)
		},
		Cleared: func(id int64) { g.forget(id) }}
	return g, nil
}

func (g *gateWork) seen(plan gate.Plan, l gate.Ledger) {
	id := strconv.FormatInt(plan.Template.ID, 10)
	g.difference.WithLabelValues(id).Set(float64(l.Difference))
	for place, n := range map[string]int64{"shelf": l.OnSale, "writing": l.Writing, "issued": l.Issued} {
		g.coupons.WithLabelValues(id, place).Set(float64(n))
	}
}

func (g *gateWork) forget(templateID int64) {
	id := strconv.FormatInt(templateID, 10)
	g.difference.DeleteLabelValues(id)
	g.coupons.DeletePartialMatch(prometheus.Labels{"template": id})
}

// listen lets every change of a template reach its shards at once.
func (g *gateWork) listen(p *program) {
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Handle("gate", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
			if err := g.keeper.Reconcile(ctx, e.TemplateID); fault.KindOf(err) != fault.Unavailable {
				return err
			}
			return nil // the sweep tries again
		}), watermill.Timeout(time.Minute))
	}
}

// start runs the loops.
func (g *gateWork) start(p *program, start func(name string, loop func(context.Context) error)) {
	for range gateSweeps {
		start("gate keeper", p.every(sweepEvery, "gate keeper", g.keeper.Sweep))
	}
	start("gate writer", p.every(gateIdle, "gate writer", g.write))
}

// write writes until nothing waits any more.
func (g *gateWork) write(ctx context.Context) error {
	if time.Since(g.listed) > gateListEvery {
		drops, err := g.store.Active(ctx)
		if err != nil {
			return err
		}
		g.drops, g.listed = drops, time.Now()
	}
	var all sync.WaitGroup
	free := make(chan struct{}, gateWriters)
	errs := make(chan error, len(g.drops))
	for id, shards := range g.drops {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs <- g.drain(ctx, id, shards)
		})
	}
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// drain writes what waits on the shards of one drop, in turns.
func (g *gateWork) drain(ctx context.Context, id int64, shards int) error {
	for end := time.Now().Add(drainGateFor); time.Now().Before(end) && ctx.Err() == nil; {
		waiting, err := g.stream.Waiting(ctx, id, shards)
		if err != nil {
			return err
		}
		done := 0
		for _, shard := range waiting {
			n, err := g.writer.Step(ctx, id, shard)
			if err != nil {
				return err
			}
			done += n
		}
		if done == 0 {
			return nil
		}
	}
	return nil
}
