package console

import (
	"context"
	"time"

	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/views/pages"
)

// Paces knows how fast the claim gate gives coupons away.
type Paces interface {
	// Pace returns claims accepted in each of the last seconds that are over at
	// now, the oldest first; a fault of kind Unavailable if nobody answers.
	Pace(ctx context.Context, templateID int64, shards int, now time.Time, seconds int) ([]int64, error)
}

// stockShards is nil for a template that has no gate.
func (c *Console) stockShards(ctx context.Context, t template.Template) (*pages.StockShards, error) {
	if t.ClaimMode != template.Gate {
		return nil, nil
	}
	a, err := c.Stock.Of(ctx, t)
	if err != nil || a.Plan.Shards == 0 {
		return nil, err
	}
	return shardsOf(a, t.Zone()), nil
}

func shardsOf(a gate.Account, zone *time.Location) *pages.StockShards {
	return &pages.StockShards{State: a.Plan.State, Reason: a.Plan.Reason, BuiltAt: a.Plan.BuiltAt, Zone: zone, Away: a.Away,
		Ledger: a.Ledger, Shelves: a.Shelves}
}
