package program

import (
	"context"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

const (
	// tellFor is how long a change of a template waits for its shards.
	tellFor = time.Second
	// buildFor bounds the building of a gate that was begun meanwhile.
	buildFor = 10 * time.Second
)

// appliedStore applies a change of a template to its gate before Save returns: publishing fills the
// shards, raising the stock adds to them. If this fails, the change succeeds all the same: if Redis
// does not answer, a worker applies the change as soon as Redis answers.
type appliedStore struct {
	template.Store
	keeper *gate.Keeper
	gate   *redisgate.Gate
}

func (t appliedStore) Save(ctx context.Context, c template.Change) (template.Template, error) {
	saved, err := t.Store.Save(ctx, c)
	if err == nil && saved.ClaimMode == template.Gate {
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Left half built, a gate would have to wait for another builder.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildFor)
			defer cancel()
			_ = t.keeper.ApplyNow(ctx, saved.ID)
			t.gate.Forget(saved.ID) // other processes get the event
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

type gateLedgers struct {
	rows      couponsdb.Ledgers
	templates dropsdb.Templates
	gate      gate.Accounts
}

// WaitsCounted counts the users of the template's waitlist.
func (l gateLedgers) WaitsCounted(ctx context.Context, templateID int64) (waitlist.Sheet, int64, error) {
	return l.rows.WaitsCounted(ctx, templateID)
}

// Ledger recounts the template's coupons. For an active gate it includes the counts of the shards
// and of coupons being written. If the shards do not answer, it returns [claim.ErrOverloaded],
// because the count would prove nothing.
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
		return counted, claim.ErrOverloaded.Because("the shards of this drop do not answer")
	}
	return seen.Settle(counted), err
}
