package console

import (
	"context"

	"dropbell/domain/fault"
	"dropbell/domain/stock"
	"dropbell/domain/template"
	"dropbell/views/pages"
)

// Shelves looks at the stock of drops behind the claim gate.
type Shelves interface {
	// Plan returns the plan of the template's gate, with zero Shards if it has none.
	Plan(ctx context.Context, templateID int64) (stock.Plan, error)
	// Look returns its shelves; a fault of kind Unavailable if they do not answer.
	Look(ctx context.Context, templateID int64, shards int) ([]stock.Shelf, error)
}

// stockShards is nil for a template that has no gate.
func (c *Console) stockShards(ctx context.Context, t template.Template) (*pages.StockShards, error) {
	if c.Shelves == nil || t.ClaimMode != template.Gate {
		return nil, nil
	}
	plan, err := c.Shelves.Plan(ctx, t.ID)
	if err != nil || plan.Shards == 0 {
		return nil, err
	}
	p := &pages.StockShards{State: plan.State, Reason: plan.Reason, BuiltAt: plan.BuiltAt, Zone: t.Zone()}
	if plan.State != stock.Standing {
		return p, nil
	}
	p.Shelves, err = c.Shelves.Look(ctx, t.ID, plan.Shards)
	if fault.KindOf(err) == fault.Unavailable {
		p.Away = true
		return p, nil
	}
	p.Ledger = plan.Ledger(p.Shelves)
	return p, err
}
