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

// ShardReader reads shards. A fault of the kind Unavailable means that the shards do not
// answer.
type ShardReader interface {
	Look(ctx context.Context, templateID int64, shards int) ([]Shard, error)
}

// Accounts sums up where every coupon of a template is, whether a gate or the database
// decides its claims. It counts no rows.
type Accounts struct {
	Plans Plans
	// Shards are the gate's; nil = they cannot be looked at.
	Shards ShardReader
}

// An Account is the ledger of one moment, with what it was made of.
type Account struct {
	Ledger
	// Plan has zero Shards for a template without a gate.
	Plan Plan
	// Shards are empty unless the gate stands and they answered.
	Shards []Shard
	// Away is set if the gate is active and its shards could not be read. How many of the
	// allotted coupons are being written is then unknown.
	Away bool
}

// Seen reports whether the ledger rests on a look at the shards of a gate.
func (a Account) Seen() bool { return len(a.Shards) > 0 && a.Plan.of(a.Shards) }

// Of returns the account of t as of now.
func (w Accounts) Of(ctx context.Context, t template.Template) (Account, error) {
	a := Account{Plan: Plan{Template: t}, Ledger: Ledger{Total: t.Stock, OnSale: t.StockLeft(), Issued: t.Issued}}
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

// Settle returns a count of the coupons, taken a moment after the account, completed by
// the account: coupons that were on a shard or being written. Coupons that the gate
// itself cannot account for show as a difference.
func (a Account) Settle(counted claim.Ledger) claim.Ledger {
	if !a.Seen() {
		return counted
	}
	counted.Writing = a.Writing + a.Issued - (counted.Total - counted.OnSale)
	counted.Total, counted.OnSale = a.Total, a.OnSale+a.Difference
	return counted
}
