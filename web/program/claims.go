package program

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/fault"
)

// soldOut tells this process at once that another process has issued the last coupon. Without the
// event it would notice within a second.
func (p *program) soldOut(ctx context.Context, _ string, e event.Coupons) error {
	for _, issue := range e.Issued {
		t, err := p.lookup.Template(ctx, issue.TemplateID)
		if err == nil && issue.Total >= t.Stock && t.StockLeft() > 0 {
			p.lookup.Forget(issue.TemplateID)
		}
	}
	return nil // a failed look-up is not remembered either
}

// counted counts the answers of a gate.
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

// marksFailed logs, once a minute at most, that used codes are refused by the slow path.
func (p *program) marksFailed() func(error) {
	var last atomic.Int64
	return func(err error) {
		now := app.Clock().Unix()
		if before := last.Load(); now-before >= 60 && last.CompareAndSwap(before, now) {
			p.Log.Warn("marks of used codes are not available; going on, the database decides", "error", err)
		}
	}
}
