package program

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// claimServices is how this process lets users claim.
type claimServices struct {
	app.Claims
	service *claim.Service
	// counted is the gate that every claim goes through, however it was asked for.
	counted claim.Gate
	total   *prometheus.CounterVec
}

// wireClaims opens the gates and the templates that they look up.
func (p *program) wireClaims() (err error) {
	d := &p.claims
	d.total = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_claims_total",
		Help: "Claims answered, by result."}, []string{"result"})
	memory := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_claims_from_memory_total",
		Help: "Refusals that cost no store a request."})
	p.Registry.MustRegister(d.total, memory)
	if p.lookup, err = lookup.New(dropsdb.NewTemplates(p.DB), app.Clock); err != nil {
		return err
	}
	d.Claims = p.NewClaims(p.lookup, postgres.Grouping{Observe: p.claimGroupMetrics(), Timeout: p.Config.RequestTimeout},
		redisgate.Options{Observe: p.gateGroupMetrics()})
	prefilter := &claim.Prefilter{Gate: d.Durable, Others: d.Others(), Templates: p.lookup, Record: d.Durable, Now: app.Clock,
		Answered: func(error) { memory.Inc() }}
	d.counted = count(prefilter, d.total)
	d.service = &claim.Service{Gate: d.counted, Finders: []claim.Finder{d.Durable, d.Gate}, Owned: d.Durable, Random: rand.Uint64}
	for _, result := range []error{nil, claim.ErrSoldOut, claim.ErrLimit, claim.ErrNotStarted, claim.ErrEnded, template.ErrNotOpen,
		template.ErrNotFound, claim.ErrIdempotency, claim.ErrOverloaded} {
		d.total.WithLabelValues(claimResult(claim.Issued, result)) // an increase from nothing is none
	}
	return nil
}

// soldOut makes this process see at once that another has given the last
// coupon away; it would notice within a second by itself.
func (p *program) soldOut(ctx context.Context, _ string, e event.Coupons) error {
	for _, issue := range e.Issued {
		t, err := p.lookup.Template(ctx, issue.TemplateID)
		if err == nil && issue.Total >= t.Stock && t.StockLeft() > 0 {
			p.lookup.Forget(issue.TemplateID)
		}
	}
	return nil // what cannot be looked up now is not remembered either
}

// counted counts what a gate answers.
type counted struct {
	gate  claim.Gate
	total *prometheus.CounterVec
	// issued spares the hot path the label lookup.
	issued prometheus.Counter
}

func count(gate claim.Gate, total *prometheus.CounterVec) *counted {
	return &counted{gate, total, total.WithLabelValues(string(claim.Issued))}
}

// Claim is part of [claim.Gate].
func (g *counted) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	c, err := g.gate.Claim(ctx, r)
	g.note(c.State, err)
	return c, err
}

func (g *counted) note(s claim.State, err error) {
	if err == nil && s == claim.Issued {
		g.issued.Inc()
		return
	}
	g.total.WithLabelValues(claimResult(s, err)).Inc()
}

// claimResult is the state of the claim or the code of its refusal.
func claimResult(s claim.State, err error) string {
	if err == nil {
		return string(s)
	}
	if code := fault.CodeOf(err); code != "" {
		return code
	}
	return "error"
}

// claimGroupMetrics measures groups of claims.
func (p *program) claimGroupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_claim_group_size",
		Help: "Claims decided by one transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_claim_group_seconds",
		Help: "Time to decide and commit one group of claims.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}
