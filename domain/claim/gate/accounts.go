package gate

import (
	"context"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// Plans is where plans are read.
type Plans interface {
	Plan(ctx context.Context, templateID int64) (Plan, error)
}

// ShardReader reads shards. A fault of kind Unavailable means that the shards do
// not answer.
type ShardReader interface {
	Look(ctx context.Context, templateID int64, shards int) ([]Shard, error)
}

// Accounts tells where every coupon of a template is, for templates with and
// without a gate. It reads counters and counts no rows.
type Accounts struct {
	Plans Plans
	// Shards reads the shards of the gate; nil = the shards cannot be read.
	Shards ShardReader
}

// An Account is the ledger of one moment, with the plan and the shards it was computed
// from.
type Account struct {
	Ledger
	// Plan has zero Shards for a template without a gate.
	Plan Plan
	// Shards are empty unless the gate is active and its shards answered.
	Shards []Shard
	// Away is set if the gate is active and its shards could not be read. How many
	// accepted claims wait to be written is unknown then.
	Away bool
}

// Seen reports whether the ledger rests on a look at the shards of a gate.
func (a Account) Seen() bool { return len(a.Shards) > 0 && a.Plan.of(a.Shards) }

// Of returns the account of t as of now.
func (w Accounts) Of(ctx context.Context, t template.Template) (Account, error) {
	a := Account{Plan: Plan{Template: t}, Ledger: Ledger{Total: t.Stock, OnSale: t.StockLeft(), Held: t.Held, Issued: t.Issued}}
	if t.ClaimMode != template.Gate {
		return a, nil
	}
	plan, err := w.Plans.Plan(ctx, t.ID)
	if err != nil || plan.Shards == 0 {
		return a, err
	}
	a.Plan, a.Ledger = plan, plan.Ledger(nil)
	if plan.State != Active {
		return a, nil
	}
	if w.Shards == nil {
		a.Away = true
		return a, nil
	}
	shards, err := w.Shards.Look(ctx, t.ID, plan.Shards)
	if fault.KindOf(err) == fault.Unavailable {
		a.Away = true
		return a, nil
	}
	a.Shards, a.Ledger = shards, plan.Ledger(shards)
	return a, err
}

// Settle corrects counted, a count of rows taken a moment after this account, with the
// numbers of the gate. Writing becomes the number of claims accepted by the time of
// this account, less the coupons issued by the time of the count. Coupons that the gate
// cannot account for show as a difference.
func (a Account) Settle(counted claim.Ledger) claim.Ledger {
	if !a.Seen() {
		return counted
	}
	counted.Writing = a.Writing + a.Issued - (counted.Total - counted.OnSale - counted.Held)
	counted.Total, counted.OnSale, counted.Held = a.Total, a.OnSale+a.Difference, a.Held
	return counted
}
