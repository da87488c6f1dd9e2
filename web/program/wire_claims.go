package program

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// claimDesk is how this process lets users claim.
type claimDesk struct {
	durable *postgres.Claims
	service *claim.Service
	// gate is what every claim goes through, however it was asked for.
	gate claim.Gate
	// others decides instead of the durable gate, by the template's mode.
	others map[template.ClaimMode]claim.Gate
	total  *prometheus.CounterVec
}

// wireClaims puts the gates together. It needs the lookup.
func (p *program) wireClaims() {
	d := &p.claims
	d.total = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_claims_total",
		Help: "Claims answered, by result."}, []string{"result"})
	memory := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_claims_from_memory_total",
		Help: "Refusals that cost no store a request."})
	p.registry.MustRegister(d.total, memory)
	d.durable = postgres.NewClaims(p.db, postgres.Grouping{Observe: p.claimGroupMetrics(), Timeout: p.cfg.RequestTimeout})
	p.closers = append(p.closers, func() error { d.durable.Close(); return nil })
	p.gate = p.newGate(d.durable)
	d.others = map[template.ClaimMode]claim.Gate{template.Gate: p.gate}
	doorman := &claim.Doorman{Gate: d.durable, Others: d.others, Templates: p.lookup, Record: d.durable, Now: clock,
		Answered: func(error) { memory.Inc() }}
	d.gate = count(doorman, d.total)
	d.service = &claim.Service{Gate: d.gate, Finders: []claim.Finder{d.durable, p.gate}, Owned: d.durable, Random: rand.Uint64}
	for _, result := range []error{nil, claim.ErrSoldOut, claim.ErrLimit, claim.ErrNotStarted, claim.ErrEnded, template.ErrNotOpen,
		template.ErrNotFound, claim.ErrIdempotency, claim.ErrOverloaded} {
		d.total.WithLabelValues(claimResult(claim.Issued, result)) // an increase from nothing is none
	}
}

// soldOut makes this process see at once that another has given the last
// coupon away; it would notice within a second by itself.
func (p *program) soldOut(ctx context.Context, e event.Coupons) error {
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
	p.registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}
