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
var ErrStaleEpoch = fault.Distinct(fault.New(fault.Unavailable, "overloaded", "this drop's gate is being built; try again in a moment"))

// ErrOverAllotted is returned when the shards would be given more than the stock, as after
// two concurrent allotments. Nothing was changed; the caller reads the plan again.
var ErrOverAllotted = fault.Distinct(fault.New(fault.Unavailable, "overloaded", "the stock of this drop is being divided; try again in a moment"))

// ErrMoved is returned when a shard has moved to another server since the clock was
// measured. The caller measures again.
var ErrMoved = fault.Distinct(fault.New(fault.Unavailable, "overloaded", "this drop's gate has moved to another server; try again in a moment"))

// errSlowClocks is returned when no measurement of the clocks was fast enough to be believed.
var errSlowClocks = fault.Distinct(fault.New(fault.Unavailable, "overloaded", "the clocks of this drop's gate cannot be compared right now; try again in a moment"))

// A UserCount is how many coupons of a template one user has.
type UserCount struct {
	UserID user.ID
	Count  int // coupons issued
	// Household is the household for which the user's coupons count, 0 = none. HouseholdCount has the coupons of
	// all its users. An entry without UserID is about a household alone.
	Household      int64
	HouseholdCount int
}

// An IdempotencyRecord is a decided request; a repetition with the same key gets
// the same claim.
type IdempotencyRecord struct {
	UserID user.ID
	Origin claim.Origin
	Key    string
	Claim  claim.ID
	// Household is that of the user, 0 = none.
	Household int64
}

// Store is where plans are kept.
type Store interface {
	// Unreconciled returns the templates whose gate may need a step: those
	// decided by the gate that are published and have no retired plan.
	Unreconciled(ctx context.Context, after int64, limit int) ([]int64, error)
	// Plan returns the plan, with zero Shards if there is none yet. It returns
	// [template.ErrNotFound] if there is no such template.
	Plan(ctx context.Context, templateID int64) (Plan, error)
	// Begin takes the lease for building the gate and begins a new epoch, later than the plan's and than
	// newest, the latest epoch of a shard. It returns [ErrStaleEpoch] if another process holds the lease, or
	// has begun or ended a building since the plan was read: the shards were looked at too early then.
	Begin(ctx context.Context, plan Plan, newest int64, shards int, reason string, lease time.Duration) (Plan, error)
	// Renew makes the lease for building this epoch end after lease, at once if lease
	// is 0, and stores that the gate will be open in about ready. It returns
	// [ErrStaleEpoch] if the epoch is not the present one.
	Renew(ctx context.Context, templateID, epoch int64, lease, ready time.Duration) error
	// StartEpoch sets the base of the new epoch to the number of coupons issued now,
	// and divides the remaining stock among the shards. All entries of older epochs
	// must be written before. It returns [ErrStaleEpoch] if the epoch is not the
	// present one.
	StartEpoch(ctx context.Context, templateID, epoch int64) (Plan, error)
	// Activate records that the gate of this epoch is open; [ErrStaleEpoch] as above.
	Activate(ctx context.Context, templateID, epoch int64) error
	// Allot stores the total allotment of each shard, never less than before. It
	// returns [ErrStaleEpoch] as above, and [ErrOverAllotted] if the sum is more than
	// the stock.
	Allot(ctx context.Context, templateID, epoch int64, parts []int64) error
	// BeginShards takes the lease for building some shards while the other shards go
	// on. It returns a plan in which these shards have a new epoch, later than all
	// other epochs. It returns [ErrStaleEpoch] like Begin.
	BeginShards(ctx context.Context, plan Plan, shards []int, reason string, lease time.Duration) (Plan, error)
	// RenewShards is Renew for these shards; epoch is theirs.
	RenewShards(ctx context.Context, templateID int64, shards []int, epoch int64, lease, ready time.Duration) error
	// StartShards subtracts from the shards' allotments the coupons issued since to claims
	// of their earlier epochs. The allotments and the coupons issued outside of them then
	// add up to the stock again. It returns [ErrOverAllotted] if the allotments are
	// smaller than that.
	StartShards(ctx context.Context, templateID int64, shards []int, epoch int64) (Plan, error)
	// FinishShards records that the shards are open and ends the lease.
	FinishShards(ctx context.Context, templateID int64, shards []int, epoch int64) error
	// Retire ends the plan; [ErrStaleEpoch] as above.
	Retire(ctx context.Context, templateID, epoch int64) error
	// UserCounts, CouponRecords and RefusedRecords read the contents of shards, a page
	// at a time: the number of coupons of each user, the requests that led to a
	// coupon, and the requests that were refused when they were written. They return
	// the page after the cursor after, and the cursor of the next page, 0 if this page
	// is the last.
	UserCounts(ctx context.Context, templateID, after int64) (list []UserCount, next int64, err error)
	CouponRecords(ctx context.Context, templateID, after int64) (list []IdempotencyRecord, next int64, err error)
	RefusedRecords(ctx context.Context, templateID, after int64) (list []IdempotencyRecord, next int64, err error)
	// Clock reads the database's clock.
	Clock(ctx context.Context) (time.Time, error)
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
	// LoadUserCounts and LoadIdempotencyRecords add the counts and records of users
	// that the shards do not know yet. epochs has the epoch of each shard of the
	// gate.
	LoadUserCounts(ctx context.Context, templateID int64, epochs []int64, list []UserCount) error
	LoadIdempotencyRecords(ctx context.Context, templateID int64, epochs []int64, list []IdempotencyRecord) error
	// Clocks reads the clocks of the servers that have these shards.
	Clocks(ctx context.Context, templateID int64, shards []int) ([]ServerClock, error)
	// SetTerms puts terms in force unless newer terms are in force. by, unless nil, is
	// how far the clock of the shard's server is ahead of the database's; the shard
	// computes the database's time with it. It returns [ErrMoved] if by is about the
	// clock of another server.
	SetTerms(ctx context.Context, templateID int64, shard int, epoch int64, t Terms, by *Offset) error
	// Open lets a shard decide claims. A shard that is not whole has the database asked about
	// each user whom it does not know; all records of refused claims must have been loaded.
	Open(ctx context.Context, templateID int64, shard int, epoch int64, whole bool) error
	// Fill raises the shard's total allotment in this epoch to allot, which takes the openings of shares doors
	// into account; see [Shard].
	Fill(ctx context.Context, templateID int64, shard int, epoch, allot int64, shares int) error
	// Clear deletes the shards.
	Clear(ctx context.Context, templateID int64, shards int) error
	// Detach ends the moves under way between a shard and a lost shard, which is
	// fenced, and returns the shard's link to the lost shard. A move towards the lost
	// shard with a number below number takes no stock afterwards.
	Detach(ctx context.Context, templateID int64, shard int, epoch int64, lost int, number int64) (Link, error)
	// Resume gives a shard that was reset the counters of its past.
	Resume(ctx context.Context, templateID int64, shard int, epoch int64, past Past) error
	// Remembered reads in chunks the claims, written or not, that a fenced shard
	// ever accepted and still knows by their keys.
	Remembered(ctx context.Context, templateID int64, shard int, load func([]Accepted) error) error
	// FinishMove completes a move of stock towards the shard that another process
	// did not finish.
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
	// Seen, if set, is called after every look; Built after every building of a gate
	// or of one of its shards; Cleared after a gate was taken down.
	Seen  func(p Plan, l Ledger)
	Built func(templateID int64, reason string)
	// Restored, if set, is called when a gate proved that the database had lost
	// transactions. coupons is the number of coupons issued for claims that only
	// the gate knew.
	Restored func(templateID, coupons int64)
	Cleared  func(templateID int64)
	// Skewed, if set, is called when the clock of a shard differs from the database's
	// clock, as after a failover to another server. by is the largest difference.
	Skewed func(templateID int64, by time.Duration)
	// Mine reports whether this process sweeps a gate; nil = all gates. Released,
	// if set, is called when another process now sweeps a gate that this process
	// swept before.
	Mine     func(templateID int64) bool
	Released func(templateID int64)
	// Unwritten, if set, is called for a gate on whose shards claims wait to be
	// written. It informs a writer about claims whose wake-up was lost.
	Unwritten func(templateID int64)

	mu    sync.Mutex
	gates map[int64]*gateState
}

// Reconcile takes the steps that one gate needs until it needs no more. Templates
// that need no gate are left alone.
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

// reconcileOnce takes the first step that the gate needs. again says that the gate
// must be looked at again at once. Otherwise rest is how long the gate may rest, 0
// after an error.
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
		// The database is read after the shards: a claim that it does not know then
		// is a claim that it has lost.
		if plan, err = k.Store.Plan(ctx, templateID); err != nil {
			return 0, false, err
		}
		lagging = plan.lags(shards)
	}
	ledger := plan.Ledger(shards)
	switch need = plan.Next(shards); {
	case len(lagging) > 0:
		need = plan.recovery(lagging, shards)
	case g.confirmed(ledger) && need.Step != Build && need.Step != BuildShards:
		need = plan.repair(shards)
	case need.Step == Rest || need.Step == Load:
		if plan.ClockSkewed(shards, took) {
			need.Step = SetTerms
			if k.Skewed != nil {
				k.Skewed(templateID, plan.skew(shards))
			}
		}
	}
	if k.Seen != nil && k.mine(templateID) {
		k.Seen(plan, ledger)
	}
	k.reportUnwritten(templateID, shards)
	still := quiet(g.last, shards) && ledger.Difference == 0
	g.last = shards
	switch need.Step {
	case Build:
		return 0, true, k.build(ctx, plan, newest(shards), waiting(shards), need.Reason)
	case BuildShards:
		return 0, true, k.buildShards(ctx, plan, need.Shards, waiting(shards), need.Reason)
	case SetTerms:
		return 0, true, k.setTerms(ctx, plan, plan.all())
	case Load:
		return 0, true, k.load(ctx, plan, shards, g)
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

// finishMoves completes moves whose process may be dead. Completing the move of a living
// process does no harm: each step of a move happens once.
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

// fill allots the stock that no shard has. The new total allotment of each shard is stored
// first, so that a repeated or concurrent fill gives no coupon twice.
func (k *Keeper) fill(ctx context.Context, plan Plan) error {
	parts, shares := plan.Share(), plan.Template.SharesOpen(plan.Now)
	if err := k.Store.Allot(ctx, plan.Template.ID, plan.Epoch, parts); err != nil {
		return err
	}
	err := each(plan.all(), func(s int) error {
		return k.Shards.Fill(ctx, plan.Template.ID, s, plan.Parts[s].Epoch, parts[s], shares)
	})
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
		return k.build(ctx, plan, 0, 0, ReasonNew)
	case plan.State != Active:
		return nil
	}
	if err := k.setTerms(ctx, plan, plan.all()); err != nil || plan.ended() || plan.Sellable() <= plan.Base+plan.Allot() {
		return err
	}
	return k.fill(ctx, plan)
}

// shardsAtOnce is how many shards are handled at a time: a shard whose server does
// not answer must not hold up the other shards.
const shardsAtOnce = 16

// each calls do for each of these shards, several at a time. It continues after do
// failed for one shard, which another process may be building.
func each(shards []int, do func(shard int) error) error {
	errs, free := make([]error, len(shards)), make(chan struct{}, shardsAtOnce)
	var all sync.WaitGroup
	for i, shard := range shards {
		free <- struct{}{}
		all.Go(func() {
			errs[i] = do(shard)
			<-free
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// all returns the numbers of all shards.
func (p Plan) all() []int {
	list := make([]int, p.Shards)
	for i := range list {
		list[i] = i
	}
	return list
}

// epochs returns the epoch of each shard.
func (p Plan) epochs() []int64 {
	list := make([]int64, p.Shards)
	for i, part := range p.Parts {
		list[i] = part.Epoch
	}
	return list
}

// waiting returns how many groups of claims wait to be written on these shards.
func waiting(shards []Shard) (entries int64) {
	for _, s := range shards {
		entries += s.Waiting
	}
	return entries
}
