package coupons

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/claim/gate"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/worker/shell"
)

const (
	// gateSweeps is how many sweeps run at the same time, so that building a large gate does not
	// delay the sweeps of other gates.
	gateSweeps = 2
	// gateWriters is for how many drops one worker writes at the same time. Writes of one drop
	// are serialized by the database anyway.
	gateWriters = 4
	// gateRescuers is for how many drops one worker restores lost shards at the same time, as
	// soon as a claim finds a shard missing.
	gateRescuers = 2
	// drainGateFor bounds how long one drop keeps a writer while others wait.
	drainGateFor = 500 * time.Millisecond
	// retryGate is the delay before a retry after a failure.
	retryGate = 200 * time.Millisecond
)

// gateWork is this worker's share of the claim gate: it keeps shards and plans in agreement, and
// writes accepted claims to the database. For an idle gate it only checks its own shards every
// few seconds.
type gateWork struct {
	log     *slog.Logger
	store   couponsdb.Gates
	stream  redisgate.Stream
	members redisgate.Members
	keeper  *gate.Keeper
	writer  *gate.Writer

	unwritten, missing *callQueue
	share              atomic.Pointer[[]string] // names of the live keepers; nil = not known yet
	server             string                   // the process of Redis that answered last

	difference *prometheus.GaugeVec
	coupons    *prometheus.GaugeVec
	builds     *prometheus.CounterVec
	written    *prometheus.CounterVec
	recovered  prometheus.Counter
	early      prometheus.Counter
	skewed     prometheus.Counter
}

// GateDeps are the dependencies of the work on the claim gate. newGateWork sets the callbacks of
// Keeper and Writer.
type GateDeps struct {
	Store   couponsdb.Gates
	Stream  redisgate.Stream
	Members redisgate.Members
	Keeper  *gate.Keeper
	Writer  *gate.Writer
	Codes   CodeMarks
	// Listen hears of claims that wait, until ctx ends.
	Listen func(ctx context.Context, calls redisgate.Calls) error
}

func newGateWork(d Deps) *gateWork {
	g := &gateWork{log: d.Log, store: d.Gate.Store, stream: d.Gate.Stream, members: d.Gate.Members, keeper: d.Gate.Keeper, writer: d.Gate.Writer,
		unwritten: newCallQueue(), missing: newCallQueue(),
		difference: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_gate_difference",
			Help: "Coupons that the ledger of a drop behind the gate is off by."}, []string{"template"}),
		coupons: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_gate_coupons",
			Help: "Coupons of a drop behind the gate: available (shelf), being written (writing), issued."}, []string{"template", "place"}),
		builds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_gate_builds_total",
			Help: "Gates built, by what made it necessary."}, []string{"reason"}),
		written: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_gate_written_total",
			Help: "Accepted claims decided by the database."}, []string{"result"}),
		recovered: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_gate_recovered_total",
			Help: "Coupons issued for claims that a gate had accepted and the database had lost."}),
		early: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_gate_early_total",
			Help: "Claims that a gate had accepted before the opening by the database's clock; they were refused."}),
		skewed: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_gate_clocks_set_total",
			Help: "How often the clock of a gate was set again, because it was off or its shards had moved to another server."}),
	}
	d.Registry.MustRegister(g.difference, g.coupons, g.builds, g.written, g.recovered, g.early, g.skewed)
	for _, reason := range []string{gate.ReasonNew, gate.ReasonUnfinished, gate.ReasonLost, gate.ReasonDifference,
		gate.ReasonExcess, gate.ReasonRestored} {
		g.builds.WithLabelValues(reason)
	}
	for _, result := range []string{"issued", "refused"} {
		g.written.WithLabelValues(result)
	}
	g.writer.Wrote = func(issued, refused int) {
		g.written.WithLabelValues("issued").Add(float64(issued))
		g.written.WithLabelValues("refused").Add(float64(refused))
	}
	g.writer.Early = func(id int64, claims int) {
		g.early.Add(float64(claims))
		d.Log.Error("a gate accepted claims before the opening: the clock of its Redis was wrong. They are refused", "template", id, "claims", claims)
	}
	g.writer.Used = func(ctx context.Context, keys []string) {
		if err := d.Gate.Codes.mark(ctx, keys); err != nil {
			d.Log.Warn("used codes are not marked in Redis; a repeated use is refused by the database instead", "codes", len(keys), "error", err)
		}
	}
	k := g.keeper
	k.Seen, k.Cleared, k.Released, k.Mine, k.Unwritten = g.seen, g.forget, g.forget, g.mine, g.unwritten.add
	k.Built = func(id int64, reason string) {
		g.builds.WithLabelValues(reason).Inc()
		d.Log.Info("gate built", "template", id, "reason", reason)
	}
	k.Skewed = func(id int64, by time.Duration) {
		g.skewed.Inc()
		d.Log.Warn("the clock of a gate is set again: its Redis failed over, was restarted, or had its clock set", "template", id, "off", by)
	}
	k.Restored = func(id, coupons int64) {
		g.recovered.Add(float64(coupons))
		d.Log.Error("a gate knew of claims that the database does not have: was PostgreSQL restored, or did it fail over and lose transactions? "+
			"The gate was built anew and these claims were decided once more", "template", id, "coupons", coupons)
	}
	return g
}

func (g *gateWork) seen(plan gate.Plan, l gate.Ledger) {
	id := strconv.FormatInt(plan.Template.ID, 10)
	g.difference.WithLabelValues(id).Set(float64(l.Difference))
	for place, n := range map[string]int64{"shelf": l.OnSale, "held": l.Held, "writing": l.Writing, "issued": l.Issued} {
		g.coupons.WithLabelValues(id, place).Set(float64(n))
	}
}

func (g *gateWork) forget(templateID int64) {
	id := strconv.FormatInt(templateID, 10)
	g.difference.DeleteLabelValues(id)
	g.coupons.DeletePartialMatch(prometheus.Labels{"template": id})
}

// handlers let every change of a template reach its shards at once.
func (g *gateWork) handlers() (list []shell.Handler) {
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		list = append(list, shell.On("gate", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
			if err := g.keeper.Reconcile(ctx, e.TemplateID); fault.KindOf(err) != fault.Unavailable && !errors.Is(err, template.ErrNotFound) {
				return err
			}
			return nil // the sweep tries again; a draft may have been deleted since
		}), watermill.Timeout(time.Minute)))
	}
	return list
}

func (g *gateWork) loops(listen func(context.Context, redisgate.Calls) error) []shell.Loop {
	list := []shell.Loop{
		{Role: shell.Gate, Name: "gate members", Every: redisgate.MemberEvery, Do: g.beat},
		{Role: shell.Gate, Name: "gate calls", Every: retryGate, Do: g.listenToCalls(listen)},
	}
	for range gateRescuers {
		list = append(list, shell.Loop{Role: shell.Gate, Name: "gate keeper", Do: g.rescue})
	}
	for range gateWriters {
		list = append(list, shell.Loop{Role: shell.Gate, Name: "gate writer", Do: g.write})
	}
	return list
}

// beat renews this worker's membership among the keepers and reads the names of the other
// keepers. When another process of Redis answers than before, beat queues all of this worker's
// gates to be checked at once: a replica that took over may lack the last accepted claims and
// may have another clock.
func (g *gateWork) beat(ctx context.Context) error {
	names, server, err := g.members.Beat(ctx)
	if err != nil {
		return err
	}
	g.share.Store(&names)
	if server != g.server && g.server != "" {
		g.log.Info("another process of Redis answers; all gates are looked at", "before", g.server, "now", server)
		for _, id := range g.keeper.Kept() {
			g.missing.add(id)
		}
	}
	g.server = server
	return nil
}

// mine reports whether this worker sweeps the gate. Until the names of the other keepers are
// known, this worker sweeps all gates.
func (g *gateWork) mine(templateID int64) bool {
	names := g.share.Load()
	return names == nil || gate.KeeperOf(templateID, *names) == g.members.Name()
}

// listenToCalls hears of claims that wait, until the program ends.
func (g *gateWork) listenToCalls(listen func(context.Context, redisgate.Calls) error) func(context.Context) error {
	return func(ctx context.Context) error {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = g.members.Leave(ctx) // if it fails, the other keepers notice
		}()
		return listen(ctx, redisgate.Calls{Deaf: g.keeper.CallAll, Missing: g.missing.add,
			Unwritten: func(id int64) {
				g.unwritten.add(id)
				g.keeper.Call(id)
			}})
	}
}

// rescue waits until a claim finds a shard missing, and reconciles its gate.
func (g *gateWork) rescue(ctx context.Context) error {
	id, ok := g.missing.next(ctx)
	if !ok {
		return nil
	}
	defer g.missing.done(id, false) // the claims that wait call again
	return g.keeper.Rescue(ctx, id)
}

// write waits for a drop with unwritten claims and writes them until none is left or the drop's
// turn ends.
func (g *gateWork) write(ctx context.Context) error {
	id, ok := g.unwritten.next(ctx)
	if !ok {
		return nil
	}
	more, err := g.drain(ctx, id)
	if err != nil {
		time.AfterFunc(retryGate, func() { g.unwritten.add(id) })
	}
	g.unwritten.done(id, more)
	return err
}

// drain writes the claims that wait on the shards of one drop, for at most [drainGateFor]. It
// returns true if that time ended while claims may still wait.
func (g *gateWork) drain(ctx context.Context, id int64) (more bool, err error) {
	shards, err := g.store.Shards(ctx, id)
	if err != nil || shards == 0 {
		return false, err
	}
	for end := time.Now().Add(drainGateFor); time.Now().Before(end); {
		waiting, err := g.stream.Waiting(ctx, id, shards)
		if err != nil {
			return false, err
		}
		done := 0
		for _, shard := range waiting {
			n, err := g.writer.Step(ctx, id, shard)
			if err != nil {
				return false, err
			}
			done += n
		}
		if done == 0 {
			return false, nil
		}
	}
	return ctx.Err() == nil, nil
}
