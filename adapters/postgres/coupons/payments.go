package coupons

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/killpoint"
)

// Payments takes the steps of payment. Steps that arrive together are one group: one statement
// reads all coupons with their histories, and one stores all decisions. A group has at most one
// step of each coupon; further steps of the coupon wait for the next group.
type Payments struct {
	CouponSteps
	groups *pg.Committer[int64, coupon.Request, attempt]
	// heldUntil is until when groups skip coupons that other transactions have locked, in
	// nanoseconds of the Unix epoch. Before, they wait for such coupons for a moment.
	heldUntil atomic.Int64
}

// attempt is the result of one request of a group.
type attempt struct {
	coupon.Taken
	err error
	// raced says that the coupon changed between the read and the write, or is locked: the
	// request is decided again.
	raced bool
}

const (
	// paymentGroup is the most requests of a group. Each has at most two lines of the log, so
	// that a group is one event.
	paymentGroup = 250
	// rivalWait is how long a group waits for a coupon that another transaction has locked. A
	// rival step of payment holds its coupons for some milliseconds.
	rivalWait = 50 * time.Millisecond
	// heldFor is how long groups skip locked coupons after a group waited in vain.
	heldFor = 3 * time.Second
	// promptTurns is how often a request is decided again at once. Later it pauses before, up
	// to longestTurn: its coupon is locked for longer.
	promptTurns = 3
	longestTurn = 10 * time.Millisecond
)

// NewPayments starts the groups; close it. Groups have at most 250 steps unless g says
// otherwise.
func NewPayments(db *pg.DB, g pg.Grouping) *Payments {
	s := &Payments{CouponSteps: NewCouponSteps(db)}
	if g.MaxGroup == 0 {
		g.MaxGroup = paymentGroup
	}
	cfg := g.Config(db)
	cfg.Name = "payment"
	s.groups = pg.NewCommitter(cfg, func(r coupon.Request) int64 { return r.CouponID }, s.takeGroup)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Payments) Close() { s.groups.Close() }

// Take decides the request together with the other requests that arrive; see [coupon.Store].
func (s *Payments) Take(ctx context.Context, r coupon.Request) (coupon.Taken, error) {
	for turn := range coupon.Turns {
		if err := waitForTurn(ctx, turn); err != nil {
			return coupon.Taken{}, err
		}
		a, err := s.groups.Do(ctx, r)
		if err != nil {
			return coupon.Taken{}, err
		}
		if !a.raced {
			return a.Taken, a.err
		}
	}
	return coupon.Taken{}, coupon.ErrBusy
}

// waitForTurn pauses before a late turn of a request. Nothing of the request is stored yet.
func waitForTurn(ctx context.Context, turn int) error {
	if turn < promptTurns {
		return nil
	}
	late := time.NewTimer(min(time.Duration(turn)*time.Millisecond, longestTurn))
	defer late.Stop()
	select {
	case <-late.C:
		return nil
	case <-ctx.Done():
		return coupon.ErrBusy
	}
}

// takeGroup reads the coupons of the group, decides its requests and stores the decisions.
func (s *Payments) takeGroup(ctx context.Context, group []coupon.Request) ([]attempt, error) {
	cases, err := s.cases(ctx, group)
	if err != nil {
		return nil, err
	}
	attempts := make([]attempt, len(group))
	var moves []coupon.Move
	var refused []coupon.Operation
	var movers []int // the place in the group of each move
	for i, r := range group {
		a := &attempts[i]
		if cases[i] == nil {
			a.err = coupon.ErrNotFound
			continue
		}
		a.Case = *cases[i]
		d := r.Decide(a.Case)
		a.Err = d.Err
		switch {
		case d.Refused != nil:
			a.Stored = d.Refused.Outcome
			refused = append(refused, *d.Refused)
		case d.Err == nil && len(d.Move.Ops) > 0:
			a.Stored = coupon.Done
			moves, movers = append(moves, d.Move), append(movers, i)
		}
	}
	if len(moves) == 0 && len(refused) == 0 {
		return attempts, nil
	}
	moved, done, err := s.store(ctx, moves, refused)
	if len(group) == 1 && pg.Violates(err, "coupon_operations_coupon_id_order_id_step_outcome_key") {
		attempts[0].raced = true
		return attempts, nil
	}
	if err != nil {
		return nil, err
	}
	for n, i := range movers {
		attempts[i].Case.Coupon, attempts[i].raced = moved[n], !done[n]
	}
	return attempts, nil
}

func (s *Payments) cases(ctx context.Context, group []coupon.Request) ([]*coupon.Case, error) {
	ids, orders := make([]int64, len(group)), make([]string, len(group))
	for i, r := range group {
		ids[i], orders[i] = r.CouponID, r.OrderID
	}
	cases := make([]*coupon.Case, len(group))
	err := s.PlannedOnce(pg.WaitingFor(ctx, pg.LockWait), casesSQL, []any{ids, orders}, func(rows pgx.Rows) error { return readCases(rows, cases) })
	return cases, err
}

// store stores the decisions and returns the coupons after their moves. done says which moves
// were stored: a coupon that changed meanwhile, or is locked, is not moved.
func (s *Payments) store(ctx context.Context, moves []coupon.Move, refused []coupon.Operation) (moved []coupon.Coupon, done []bool, err error) {
	write := func(ctx context.Context, sql string) error {
		moved = make([]coupon.Coupon, len(moves))
		for i, m := range moves {
			moved[i] = m.To
		}
		return killpoint.Around("coupons.step", func() error {
			return s.PlannedForGroups(ctx, sql, []any{movesArgs(ctx, moves, refused)}, func(rows pgx.Rows) (err error) {
				done, err = readMoved(rows, moved)
				return err
			})
		})
	}
	if time.Now().UnixNano() >= s.heldUntil.Load() {
		if err = write(pg.WaitingFor(ctx, rivalWait), movesSQL); !pg.LockTimedOut(err) {
			return moved, done, err
		}
		s.heldUntil.Store(time.Now().Add(heldFor).UnixNano())
	}
	err = write(pg.WaitingFor(ctx, rivalWait), freeMovesSQL)
	return moved, done, err
}
