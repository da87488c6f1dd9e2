package gate

import (
	"context"
	"errors"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// ErrBusy is returned when the epoch of the call is not the present one, or
// another process holds the lease for building. The caller reads the plan again.
var ErrStaleEpoch = fault.New(fault.Unavailable, "overloaded", "this drop's gate is being built; try again in a moment")

// ErrOverAllotted is returned when the shards would be given more than the stock,
// as after two concurrent allotments. Nothing was changed: read the plan again.
var ErrOverAllotted = fault.New(fault.Unavailable, "overloaded", "the stock of this drop is being divided; try again in a moment")

// A UserCount is how many coupons of a template one user has.
type UserCount struct {
	UserID user.ID
	Count  int // coupons issued
}

// An IdempotencyRecord is a decided request; a repetition with the same key gets
// the same claim.
type IdempotencyRecord struct {
	UserID user.ID
	Origin claim.Origin
	Key    string
	Claim  claim.ID
}

// Store is where plans are kept.
type Store interface {
	// Unreconciled returns the templates whose gate may need a step: those
	// decided by the gate that are published and have no retired plan.
	Unreconciled(ctx context.Context, after int64, limit int) ([]int64, error)
	// Plan returns the plan, with zero Shards if there is none yet. It returns
	// [template.ErrNotFound] if there is no such template.
	Plan(ctx context.Context, templateID int64) (Plan, error)
	// Begin takes the lease for building the epoch after the one given (0 =
	// there is no plan yet). It returns [ErrStaleEpoch] if another process holds the
	// lease or has begun that epoch.
	Begin(ctx context.Context, templateID, epoch int64, shards int, reason string, lease time.Duration) (Plan, error)
	// Renew extends the lease for building this epoch; [ErrStaleEpoch] if it is not
	// the present one.
	Renew(ctx context.Context, templateID, epoch int64, lease time.Duration) error
	// StartEpoch fixes the base of the new epoch, which is the number of coupons
	// issued now, and divides the rest. All entries of older epochs must be
	// written before. It returns [ErrStaleEpoch] if the epoch is not the present one.
	StartEpoch(ctx context.Context, templateID, epoch int64) (Plan, error)
	// Activate records that the gate of this epoch is open; [ErrStaleEpoch] as above.
	Activate(ctx context.Context, templateID, epoch int64) error
	// Allot stores how much each shard is to be given in total, never less than
	// before; [ErrStaleEpoch] as above, [ErrOverAllotted] if it is more than the stock.
	Allot(ctx context.Context, templateID, epoch int64, parts []int64) error
	// Retire ends the plan; [ErrStaleEpoch] as above.
	Retire(ctx context.Context, templateID, epoch int64) error
	// UserCounts and IdempotencyRecords read in chunks what a new epoch loads
	// into its shards.
	UserCounts(ctx context.Context, templateID int64, load func([]UserCount) error) error
	IdempotencyRecords(ctx context.Context, templateID int64, load func([]IdempotencyRecord) error) error
	// Refilled publishes that coupons are on sale again.
	Refilled(ctx context.Context, templateID int64) error
}

// Shards decide claims. A call with another epoch than the shard's returns
// [ErrStaleEpoch].
type Shards interface {
	// Machines returns how many machines share the shards.
	Machines(ctx context.Context) int
	Look(ctx context.Context, templateID int64, shards int) ([]Shard, error)
	// Fence closes a shard for all epochs before this one.
	Fence(ctx context.Context, templateID int64, shard int, epoch int64) error
	// Reset empties a fenced shard and gives it allot coupons.
	Reset(ctx context.Context, templateID int64, shard int, epoch, allot int64) error
	LoadUserCounts(ctx context.Context, templateID int64, shards int, epoch int64, list []UserCount) error
	LoadIdempotencyRecords(ctx context.Context, templateID int64, shards int, epoch int64, list []IdempotencyRecord) error
	// SetTerms puts terms in force unless newer ones are. now is the database's
	// clock, by which the shard judges opening and end.
	SetTerms(ctx context.Context, templateID int64, shard int, epoch int64, t Terms, now time.Time) error
	Open(ctx context.Context, templateID int64, shard int, epoch int64) error
	// Fill gives the shard what it lacks of allot, its total in this epoch.
	Fill(ctx context.Context, templateID int64, shard int, epoch, allot int64) error
	// Clear deletes the shards.
	Clear(ctx context.Context, templateID int64, shards int) error
	// FinishMove completes a move of stock towards the shard that another
	// process left unfinished.
	FinishMove(ctx context.Context, templateID int64, shard int, epoch int64) error
}

// confirmations is how many reads in a row must show a difference before the
// gate is rebuilt.
const confirmations = 3

// A Keeper keeps the shards in agreement with the plans. Any number of
// keepers may run; each step is repeatable and fenced by the epoch.
type Keeper struct {
	Store  Store
	Shards Shards
	Writer *Writer
	// Divide says into how many shards a new stock is divided; nil = [ShardCount].
	Divide func(stock int64, machines int) int
	// Now is this machine's clock; it only measures how old a plan is.
	Now func() time.Time
	// Seen, if set, is called with the result of every look; Built after every
	// building; Cleared for every gate that was removed.
	Seen    func(p Plan, l Ledger)
	Built   func(templateID int64, reason string)
	Cleared func(templateID int64)

	mu    sync.Mutex
	gates map[int64]*gateState
}

// gateState is what a keeper remembers of one gate while it looks after it.
type gateState struct {
	busy sync.Mutex
	off  int // looks in a row with a difference
}

func (k *Keeper) gate(id int64) *gateState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gates == nil {
		k.gates = map[int64]*gateState{}
	}
	g := k.gates[id]
	if g == nil {
		g = &gateState{}
		k.gates[id] = g
	}
	return g
}

func (k *Keeper) forget(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gates, id)
}

// Sweep reconciles once every gate that no other keeper is reconciling. It
// continues after the failure of one and returns all errors. Building a large
// gate may take minutes; a concurrent sweep skips that gate.
func (k *Keeper) Sweep(ctx context.Context) error {
	const page = 200
	var errs []error
	for after := int64(0); ; {
		ids, err := k.Store.Unreconciled(ctx, after, page)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, id := range ids {
			after = id
			g := k.gate(id)
			if !g.busy.TryLock() {
				continue
			}
			if err := k.reconcile(ctx, id, g); err != nil && !errors.Is(err, ErrStaleEpoch) && !errors.Is(err, ErrOverAllotted) {
				errs = append(errs, err)
			}
			g.busy.Unlock()
		}
		if len(ids) < page || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

// Reconcile does what one gate needs until it needs nothing more. Templates that
// need no gate are left alone.
func (k *Keeper) Reconcile(ctx context.Context, templateID int64) error {
	g := k.gate(templateID)
	g.busy.Lock()
	defer g.busy.Unlock()
	return k.reconcile(ctx, templateID, g)
}

func (k *Keeper) reconcile(ctx context.Context, templateID int64, g *gateState) error {
	for range 5 {
		again, err := k.reconcileOnce(ctx, templateID, g)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

func (k *Keeper) reconcileOnce(ctx context.Context, templateID int64, g *gateState) (again bool, err error) {
	asked := k.Now()
	plan, err := k.Store.Plan(ctx, templateID)
	if err != nil {
		return false, err
	}
	if plan.Shards == 0 && !plan.wanted() || plan.State == Retired {
		k.forget(templateID)
		return false, nil
	}
	read := k.Now()
	shards, err := k.Shards.Look(ctx, templateID, plan.Shards)
	if err != nil {
		return false, err
	}
	took := k.Now().Sub(asked) // from before the database's clock was read
	if err := k.finishMoves(ctx, plan, shards); err != nil {
		return false, err
	}
	ledger := plan.Ledger(shards)
	step, reason := plan.Next(shards)
	if step == Rest && plan.ClockSkewed(shards, took) {
		step = SetTerms
	}
	if g.confirmed(ledger) && step != Build {
		step, reason = Build, ReasonDifference
	}
	if k.Seen != nil {
		k.Seen(plan, ledger)
	}
	switch step {
	case Build:
		return true, k.build(ctx, plan, reason)
	case SetTerms:
		return true, k.setTerms(ctx, plan, plan.Now.Add(k.Now().Sub(read)))
	case Fill:
		return true, k.fill(ctx, plan)
	case Clear:
		return false, k.clear(ctx, plan)
	}
	return false, nil
}

// confirmed reports whether enough looks in a row have shown a difference.
func (g *gateState) confirmed(l Ledger) bool {
	if l.Difference == 0 {
		g.off = 0
		return false
	}
	if g.off++; g.off < confirmations {
		return false
	}
	g.off = 0
	return true
}

// finishMoves finishes moves whose process may be dead. Finishing the move of a
// living process does no harm: each step of a move happens once.
func (k *Keeper) finishMoves(ctx context.Context, plan Plan, shards []Shard) error {
	for _, s := range shards {
		if s.Begun > s.Done && s.Epoch == plan.Epoch && s.Open {
			if err := k.Shards.FinishMove(ctx, plan.Template.ID, s.Number, plan.Epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Keeper) setTerms(ctx context.Context, plan Plan, now time.Time) error {
	terms := TermsOf(plan.Template)
	return plan.each(func(s int) error { return k.Shards.SetTerms(ctx, plan.Template.ID, s, plan.Epoch, terms, now) })
}

// fill hands out what no shard has. What each is to have in all is kept
// first, so that doing it twice, or by two, gives nothing twice.
func (k *Keeper) fill(ctx context.Context, plan Plan) error {
	parts := plan.Share()
	if err := k.Store.Allot(ctx, plan.Template.ID, plan.Epoch, parts); err != nil {
		return err
	}
	for shard, allot := range parts {
		if err := k.Shards.Fill(ctx, plan.Template.ID, shard, plan.Epoch, allot); err != nil {
			return err
		}
	}
	return k.Store.Refilled(ctx, plan.Template.ID)
}

// ApplyNow applies a change of the template at once: it builds a gate that does
// not exist yet, puts the newest terms in force, and allots new stock. The
// program that made the change calls it; the next sweep does whatever it leaves
// undone.
func (k *Keeper) ApplyNow(ctx context.Context, templateID int64) error {
	plan, err := k.Store.Plan(ctx, templateID)
	if err != nil {
		return err
	}
	switch {
	case plan.Shards == 0 && plan.wanted():
		return k.build(ctx, plan, ReasonNew)
	case plan.State != Active:
		return nil
	}
	if err := k.setTerms(ctx, plan, plan.Now); err != nil || plan.ended() || plan.Template.Stock <= plan.Base+plan.Allot() {
		return err
	}
	return k.fill(ctx, plan)
}

func (p Plan) each(do func(shard int) error) error {
	for shard := range p.Shards {
		if err := do(shard); err != nil {
			return err
		}
	}
	return nil
}
