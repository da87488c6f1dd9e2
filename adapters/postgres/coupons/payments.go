package coupons

import (
	"context"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/killpoint"
)

// Payments takes the steps of payment. Steps that arrive together are one group: one statement
// reads all coupons with their histories, and one stores all decisions. A group has at most one
// step of each coupon; further steps of the coupon wait for the next group.
type Payments struct {
	CouponSteps
	groups *pg.Committer[int64, payment, attempt]
	// heldUntil is until when groups skip coupons that other transactions have locked, in
	// nanoseconds of the Unix epoch. Before, they wait for such coupons for a moment.
	heldUntil atomic.Int64
}

// payment is one request of a group: a step of a coupon, or of an order with several coupons.
type payment struct {
	coupon.Request
	order *cart.Request
}

// key is equal for requests that cannot share a group. It is not positive for orders.
func (p payment) key() int64 {
	if p.order == nil {
		return p.CouponID
	}
	h := fnv.New64a()
	h.Write([]byte(p.order.OrderID))
	return -int64(h.Sum64() >> 1)
}

// attempt is the result of one request of a group.
type attempt struct {
	coupon.Taken
	order cart.Taken
	err   error
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

// NewPayments starts the groups; close it. Groups have at most 250 steps, or fewer if g says
// so.
func NewPayments(db *pg.DB, g pg.Grouping) *Payments {
	s := &Payments{CouponSteps: NewCouponSteps(db)}
	if g.MaxGroup == 0 || g.MaxGroup > paymentGroup {
		g.MaxGroup = paymentGroup
	}
	cfg := g.Config(db)
	cfg.Name = "payment"
	s.groups = pg.NewCommitter(cfg, payment.key, s.takePayments)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Payments) Close() { s.groups.Close() }

// Take decides the request together with the other requests that arrive; see [coupon.Store].
func (s *Payments) Take(ctx context.Context, r coupon.Request) (coupon.Taken, error) {
	a, err := s.take(ctx, payment{Request: r})
	return a.Taken, err
}

// TakeOrder decides the request together with the other requests that arrive; see [cart.OrderStore].
func (s *Payments) TakeOrder(ctx context.Context, r cart.Request) (cart.Taken, error) {
	a, err := s.take(ctx, payment{order: &r})
	return a.order, err
}

// do takes the request in a group, or by itself if it may return coupons to the stock: then it locks
// templates first.
func (s *Payments) do(ctx context.Context, p payment) (attempt, error) {
	if p.order == nil || !p.order.ToStock {
		return s.groups.Do(ctx, p)
	}
	list, err := s.takeWithOrders(ctx, []payment{p})
	if err != nil {
		return attempt{}, pg.Translate(err)
	}
	return list[0], nil
}

func (s *Payments) take(ctx context.Context, p payment) (attempt, error) {
	for turn := range coupon.Turns {
		if err := waitForTurn(ctx, turn); err != nil {
			return attempt{}, err
		}
		a, err := s.do(ctx, p)
		if err != nil {
			return attempt{}, err
		}
		if !a.raced {
			return a, a.err
		}
	}
	return attempt{}, coupon.ErrBusy
}

// takePayments takes a group of requests.
func (s *Payments) takePayments(ctx context.Context, group []payment) ([]attempt, error) {
	steps := make([]coupon.Request, len(group))
	for i, p := range group {
		if p.order != nil {
			return s.takeWithOrders(ctx, group)
		}
		steps[i] = p.Request
	}
	return s.takeGroup(ctx, steps)
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
	var moved []coupon.Coupon
	var done []bool
	err = s.patiently(ctx, func(ctx context.Context, skips bool) error {
		moved, done, err = s.store(ctx, moves, refused, skips)
		return err
	})
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
// were stored: a coupon that changed meanwhile, or is locked, is not moved. skips says that coupons
// that another transaction has locked are not waited for.
func (s *Payments) store(ctx context.Context, moves []coupon.Move, refused []coupon.Operation, skips bool) (moved []coupon.Coupon, done []bool, err error) {
	sql := movesSQL
	if skips {
		sql = freeMovesSQL
	}
	moved = make([]coupon.Coupon, len(moves))
	for i, m := range moves {
		moved[i] = m.To
	}
	err = killpoint.Around("coupons.step", func() error {
		return s.PlannedByHash(ctx, sql, []any{movesArgs(ctx, moves, refused)}, func(rows pgx.Rows) (err error) {
			done, err = readMoved(rows, moved)
			return err
		})
	})
	return moved, done, err
}

// patiently calls write, which waits for locked coupons for a moment. Then, and for some time after that, it
// calls write with skips set.
func (s *Payments) patiently(ctx context.Context, write func(ctx context.Context, skips bool) error) error {
	if time.Now().UnixNano() >= s.heldUntil.Load() {
		if err := write(pg.WaitingFor(ctx, rivalWait), false); !pg.LockTimedOut(err) {
			return err
		}
		s.heldUntil.Store(time.Now().Add(heldFor).UnixNano())
	}
	return write(pg.WaitingFor(ctx, rivalWait), true)
}
