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

// ErrBusy is returned when another process is building the gate, or has
// built it anew in the meantime.
var ErrBusy = fault.New(fault.Unavailable, "overloaded", "this drop's gate is being built; try again in a moment")

// A Holding is what one user already has of a template.
type Holding struct {
	UserID user.ID
	Count  int // coupons issued
}

// A Promise is a request that was decided before and must be answered alike.
type Promise struct {
	UserID user.ID
	Origin claim.Origin
	Key    string
	Claim  claim.ID
}

// Store is where plans are kept.
type Store interface {
	// Gates returns the templates whose gate may need something: those
	// decided by the gate that are published and have no retired plan.
	Gates(ctx context.Context, after int64, limit int) ([]int64, error)
	// Plan returns the plan, with zero Shards if there is none yet. It returns
	// [template.ErrNotFound] if there is no such template.
	Plan(ctx context.Context, templateID int64) (Plan, error)
	// Begin takes the building of the gate for itself for lease, as the epoch
	// after the one given (0 = there is no plan yet). It returns [ErrBusy] if
	// somebody else is building or was faster.
	Begin(ctx context.Context, templateID, epoch int64, shards int, reason string, lease time.Duration) (Plan, error)
	// Renew prolongs the lease of whoever is building this epoch; [ErrBusy] if
	// it is no longer the present one.
	Renew(ctx context.Context, templateID, epoch int64, lease time.Duration) error
	// Found fixes what the new epoch starts from: what is issued now is its
	// base and the rest is divided. All old entries must be written before. It
	// returns [ErrBusy] if the epoch is no longer the present one.
	Found(ctx context.Context, templateID, epoch int64) (Plan, error)
	// Stand says that the gate of this epoch is open; [ErrBusy] as above.
	Stand(ctx context.Context, templateID, epoch int64) error
	// Allot keeps what each shelf is to be given in all, never less than
	// before; [ErrBusy] as above, also if it is more than there is.
	Allot(ctx context.Context, templateID, epoch int64, parts []int64) error
	// Retire ends the plan; [ErrBusy] as above.
	Retire(ctx context.Context, templateID, epoch int64) error
	// Holdings and Promises read what the shelves need to know, in chunks.
	Holdings(ctx context.Context, templateID int64, load func([]Holding) error) error
	Promises(ctx context.Context, templateID int64, load func([]Promise) error) error
	// Refilled announces that there is something for sale again.
	Refilled(ctx context.Context, templateID int64) error
}

// Shelves is where claims are decided. What carries an epoch is refused with
// [ErrBusy] by a shelf of another one.
type Shelves interface {
	// Machines returns how many machines share the shelves.
	Machines(ctx context.Context) int
	Look(ctx context.Context, templateID int64, shards int) ([]Shelf, error)
	// Seal closes a shelf for all epochs before this one.
	Seal(ctx context.Context, templateID int64, shard int, epoch int64) error
	// Reset empties a sealed shelf and fills it.
	Reset(ctx context.Context, templateID int64, shard int, epoch, allot int64) error
	LoadHoldings(ctx context.Context, templateID int64, shards int, epoch int64, list []Holding) error
	LoadPromises(ctx context.Context, templateID int64, shards int, epoch int64, list []Promise) error
	// Tell puts terms in force, unless newer ones are. now is the clock by
	// which the window is judged.
	Tell(ctx context.Context, templateID int64, shard int, epoch int64, t Terms, now time.Time) error
	Open(ctx context.Context, templateID int64, shard int, epoch int64) error
	// Fill gives the shelf what is missing to allot in all.
	Fill(ctx context.Context, templateID int64, shard int, epoch, allot int64) error
	// Clear takes the shelves down.
	Clear(ctx context.Context, templateID int64, shards int) error
	// Help finishes a move towards the shelf that somebody left half done.
	Help(ctx context.Context, templateID int64, shard int, epoch int64) error
}

// confirmations is how many looks in a row must show a difference before the
// gate is built anew because of it.
const confirmations = 3

// A Keeper keeps the shelves in agreement with the plans. Any number of
// keepers may run; each step is repeatable and fenced by the epoch.
type Keeper struct {
	Store   Store
	Shelves Shelves
	Writer  *Writer
	// Divide says into how many shelves a new stock is divided; nil = [Shards].
	Divide func(stock int64, machines int) int
	// Now is this machine's clock; it only measures how old a plan is.
	Now func() time.Time
	// Seen is told of every look, if set; Built of every building; Cleared of
	// every gate that was taken down.
	Seen    func(p Plan, l Ledger)
	Built   func(templateID int64, reason string)
	Cleared func(templateID int64)

	mu    sync.Mutex
	gates map[int64]*tended
}

// tended is what a keeper remembers of one gate while it looks after it.
type tended struct {
	busy sync.Mutex
	off  int // looks in a row with a difference
}

func (k *Keeper) gate(id int64) *tended {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gates == nil {
		k.gates = map[int64]*tended{}
	}
	g := k.gates[id]
	if g == nil {
		g = &tended{}
		k.gates[id] = g
	}
	return g
}

func (k *Keeper) forget(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gates, id)
}

// Sweep tends every gate once that nobody tends right now. It goes on after a
// failure of one and returns all of them. Building a large gate may take
// minutes; another sweep at the same time leaves that one out.
func (k *Keeper) Sweep(ctx context.Context) error {
	const page = 200
	var errs []error
	for after := int64(0); ; {
		ids, err := k.Store.Gates(ctx, after, page)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, id := range ids {
			after = id
			g := k.gate(id)
			if !g.busy.TryLock() {
				continue
			}
			if err := k.tend(ctx, id, g); err != nil && !errors.Is(err, ErrBusy) {
				errs = append(errs, err)
			}
			g.busy.Unlock()
		}
		if len(ids) < page || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

// Tend does what one gate needs until it needs nothing more. Templates that
// need no gate are left alone.
func (k *Keeper) Tend(ctx context.Context, templateID int64) error {
	g := k.gate(templateID)
	g.busy.Lock()
	defer g.busy.Unlock()
	return k.tend(ctx, templateID, g)
}

func (k *Keeper) tend(ctx context.Context, templateID int64, g *tended) error {
	for range 5 {
		again, err := k.tendOnce(ctx, templateID, g)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

func (k *Keeper) tendOnce(ctx context.Context, templateID int64, g *tended) (again bool, err error) {
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
	shelves, err := k.Shelves.Look(ctx, templateID, plan.Shards)
	if err != nil {
		return false, err
	}
	took := k.Now().Sub(asked) // from before the database's clock was read
	if err := k.help(ctx, plan, shelves); err != nil {
		return false, err
	}
	ledger := plan.Ledger(shelves)
	step, reason := plan.Next(shelves)
	if step == Rest && plan.Astray(shelves, took) {
		step = Tell
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
	case Tell:
		return true, k.tell(ctx, plan, plan.Now.Add(k.Now().Sub(read)))
	case Fill:
		return true, k.fill(ctx, plan)
	case Clear:
		return false, k.clear(ctx, plan)
	}
	return false, nil
}

// confirmed reports whether enough looks in a row have shown a difference.
func (g *tended) confirmed(l Ledger) bool {
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

// help finishes moves whose mover may be dead. Helping a living one does no harm.
func (k *Keeper) help(ctx context.Context, plan Plan, shelves []Shelf) error {
	for _, s := range shelves {
		if s.Begun > s.Done && s.Epoch == plan.Epoch && s.Open {
			if err := k.Shelves.Help(ctx, plan.Template.ID, s.Number, plan.Epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Keeper) tell(ctx context.Context, plan Plan, now time.Time) error {
	terms := TermsOf(plan.Template)
	return plan.each(func(s int) error { return k.Shelves.Tell(ctx, plan.Template.ID, s, plan.Epoch, terms, now) })
}

// fill hands out what no shelf has. What each is to have in all is kept
// first, so that doing it twice, or by two, gives nothing twice.
func (k *Keeper) fill(ctx context.Context, plan Plan) error {
	parts := plan.Share()
	if err := k.Store.Allot(ctx, plan.Template.ID, plan.Epoch, parts); err != nil {
		return err
	}
	for shard, allot := range parts {
		if err := k.Shelves.Fill(ctx, plan.Template.ID, shard, plan.Epoch, allot); err != nil {
			return err
		}
	}
	return k.Store.Refilled(ctx, plan.Template.ID)
}

// Prompt does at once what a change of the template asks for: it builds a gate
// that never was, puts the newest terms in force, and hands out new stock. It
// is for whoever has made the change; what it leaves or fails to do, the next
// sweep does.
func (k *Keeper) Prompt(ctx context.Context, templateID int64) error {
	plan, err := k.Store.Plan(ctx, templateID)
	if err != nil {
		return err
	}
	switch {
	case plan.Shards == 0 && plan.wanted():
		return k.build(ctx, plan, ReasonNew)
	case plan.State != Standing:
		return nil
	}
	if err := k.tell(ctx, plan, plan.Now); err != nil || plan.ended() || plan.Template.Stock <= plan.Base+plan.Allot() {
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
