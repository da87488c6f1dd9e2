package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// ErrStaleEpoch is returned when the epoch of the call is not the present one,
// or another process holds the lease for building. The caller reads the plan
// again.
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
	// Begin takes the lease for building the gate after the epoch given (0 = there
	// is no plan yet). The new epoch is later than that and than newest, the latest
	// that a shard has. It returns [ErrStaleEpoch] if another process holds the lease
	// or has begun an epoch.
	Begin(ctx context.Context, templateID, epoch, newest int64, shards int, reason string, lease time.Duration) (Plan, error)
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
	// BeginShard takes the lease for building one shard alone. It returns a plan in
	// which that shard's epoch is a new one, later than all others;
	// [ErrStaleEpoch] like Begin.
	BeginShard(ctx context.Context, templateID, epoch int64, shard int, reason string, lease time.Duration) (Plan, error)
	// RenewShard extends that lease; epoch is the shard's.
	RenewShard(ctx context.Context, templateID int64, shard int, epoch int64, lease time.Duration) error
	// StartShard takes off the shard's allotment what its claims of earlier epochs
	// were given since, so that the allotments and what was issued outside of them are the
	// stock again. It returns [ErrOverAllotted] if the shard has not that much.
	StartShard(ctx context.Context, templateID int64, shard int, epoch int64) (Plan, error)
	// FinishShard records that the shard is open and ends the lease.
	FinishShard(ctx context.Context, templateID int64, shard int, epoch int64) error
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
	// Detach ends what is under way between one shard and another that is fenced
	// and lost, and returns what the one knows of their past moves. Moves towards the
	// lost shard that were begun before number never take anything afterwards.
	Detach(ctx context.Context, templateID int64, shard int, epoch int64, lost int, number int64) (Link, error)
	// Resume gives a shard that was reset the counters of its past.
	Resume(ctx context.Context, templateID int64, shard int, epoch int64, past Past) error
	// Remembered reads in chunks the claims that a fenced shard ever accepted and
	// still knows by their keys, written or not.
	Remembered(ctx context.Context, templateID int64, shard int, load func([]Accepted) error) error
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
	// Seen is told of every look, if set; Built of every building of a gate or of one
	// of its shards; Cleared of every gate that was taken down.
	Seen  func(p Plan, l Ledger)
	Built func(templateID int64, reason string)
	// Restored, if set, is told of a gate that proved that the database had lost
	// transactions, and how many coupons were issued for claims that only the gate
	// knew.
	Restored func(templateID, coupons int64)
	Cleared  func(templateID int64)
	// Mine says which gates this process sweeps; nil = all. Released, if set, is
	// told of a gate that it has swept and another process sweeps now.
	Mine     func(templateID int64) bool
	Released func(templateID int64)
	// Unwritten, if set, is told of a gate on whose shards claims wait to be
	// written. It is how a writer hears of claims whose wake-up was lost.
	Unwritten func(templateID int64)

	mu    sync.Mutex
	gates map[int64]*gateState
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
	k.mu.Lock()
	g.called = false
	k.mu.Unlock()
	for range 5 {
		rest, again, err := k.reconcileOnce(ctx, templateID, g)
		if err != nil || !again {
			k.rest(g, rest)
			return err
		}
	}
	return nil
}

// reconcileOnce does the first thing that the gate needs. It returns whether to look
// again at once, and else how long the gate may rest; after an error, not at all.
func (k *Keeper) reconcileOnce(ctx context.Context, templateID int64, g *gateState) (rest time.Duration, again bool, err error) {
	asked := k.Now()
	plan, err := k.Store.Plan(ctx, templateID)
	if err != nil {
		return 0, false, err
	}
	if plan.Shards == 0 && !plan.wanted() || plan.State == Retired {
		k.forget(templateID)
		return 0, false, nil
	}
	read := k.Now()
	shards, err := k.Shards.Look(ctx, templateID, plan.Shards)
	if err != nil {
		return 0, false, err
	}
	took := k.Now().Sub(asked) // from before the database's clock was read
	if err := k.finishMoves(ctx, plan, shards); err != nil {
		return 0, false, err
	}
	var need Need
	lagging := plan.lags(shards)
	if len(lagging) > 0 {
		// The database is read after the shards, so that a claim it does not know is
		// one that it has lost.
		if plan, err = k.Store.Plan(ctx, templateID); err != nil {
			return 0, false, err
		}
		lagging, read = plan.lags(shards), k.Now()
	}
	ledger := plan.Ledger(shards)
	switch need = plan.Next(shards); {
	case len(lagging) > 0:
		need = plan.recovery(lagging, shards)
	case g.confirmed(ledger) && need.Step != Build && need.Step != BuildShard:
		need = plan.repair(shards)
	case need.Step == Rest && plan.ClockSkewed(shards, took):
		need.Step = SetTerms
	}
	if k.Seen != nil && k.mine(templateID) {
		k.Seen(plan, ledger)
	}
	k.reportUnwritten(templateID, shards)
	still := quiet(g.last, shards) && ledger.Difference == 0
	g.last = shards
	switch need.Step {
	case Build:
		return 0, true, k.build(ctx, plan, newest(shards), need.Reason)
	case BuildShard:
		return 0, true, k.buildShard(ctx, plan, need.Shard, need.Reason)
	case SetTerms:
		return 0, true, k.setTerms(ctx, plan, plan.Now.Add(k.Now().Sub(read)))
	case Fill:
		return 0, true, k.fill(ctx, plan)
	case Clear:
		return 0, false, k.clear(ctx, plan)
	}
	return plan.restFor(still), false, nil
}

func (k *Keeper) reportUnwritten(templateID int64, shards []Shard) {
	if k.Unwritten != nil && slices.ContainsFunc(shards, func(s Shard) bool { return s.Waiting > 0 }) {
		k.Unwritten(templateID)
	}
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
		if s.Begun > s.Done && plan.State == Active && plan.standing(s) {
			if err := k.Shards.FinishMove(ctx, plan.Template.ID, s.Number, s.Epoch); err != nil && !errors.Is(err, ErrStaleEpoch) {
				return err
			}
		}
	}
	return nil
}

func (k *Keeper) setTerms(ctx context.Context, plan Plan, now time.Time) error {
	terms := TermsOf(plan.Template)
	return plan.each(func(s int) error { return k.Shards.SetTerms(ctx, plan.Template.ID, s, plan.Parts[s].Epoch, terms, now) })
}

// fill allots the stock that no shard has. The total allotment of each shard is stored
// first, so that a repeated or concurrent fill gives nothing twice.
func (k *Keeper) fill(ctx context.Context, plan Plan) error {
	parts := plan.Share()
	if err := k.Store.Allot(ctx, plan.Template.ID, plan.Epoch, parts); err != nil {
		return err
	}
	err := plan.each(func(s int) error { return k.Shards.Fill(ctx, plan.Template.ID, s, plan.Parts[s].Epoch, parts[s]) })
	return errors.Join(err, k.Store.Refilled(ctx, plan.Template.ID))
}

// ApplyNow applies a change of the template at once: it builds a gate that does
// not exist yet, puts the newest terms in force, and allots new stock. The
// program that made the change calls it; the next sweep completes the steps that it
// leaves undone.
func (k *Keeper) ApplyNow(ctx context.Context, templateID int64) error {
	plan, err := k.Store.Plan(ctx, templateID)
	if err != nil {
		return err
	}
	switch {
	case plan.Shards == 0 && plan.wanted():
		return k.build(ctx, plan, 0, ReasonNew)
	case plan.State != Active:
		return nil
	}
	if err := k.setTerms(ctx, plan, plan.Now); err != nil || plan.ended() || plan.Template.Stock <= plan.Base+plan.Allot() {
		return err
	}
	return k.fill(ctx, plan)
}

// each does something with every shard, also after it failed with one, which
// another process may be building.
func (p Plan) each(do func(shard int) error) error {
	var errs []error
	for shard := range p.Shards {
		if err := do(shard); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
