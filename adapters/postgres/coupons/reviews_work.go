package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/review"
	"dropbell/domain/staff"
)

// reviewChunk is how many coupons of a group are changed by one transaction.
const reviewChunk = 200

// Work carries out a part of one decision. It reports false if none waits. Each part is one
// transaction: after a crash the next worker continues with the coupons that are left.
func (s Reviews) Work(ctx context.Context) (worked bool, err error) {
	var id int64
	var state review.State
	var actor, reason string
	err = s.Pool.QueryRow(ctx, `select id, state, actor, reason from reviews where state in ('suspending', 'returning', 'restoring') order by id limit 1`).
		Scan(&id, &state, &actor, &reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	if state == review.Returning {
		return true, s.takeBackSome(ctx, id, actor, reason)
	}
	return true, s.Tx(ctx, func(tx pgx.Tx) error { return s.workSome(ctx, tx, id, state, actor, reason) })
}

// workSome suspends or reinstates the next coupons of a group.
func (s Reviews) workSome(ctx context.Context, tx pgx.Tx, id int64, state review.State, actor, reason string) error {
	var now review.State
	if err := tx.QueryRow(ctx, `select state from reviews where id = $1 for no key update`, id).Scan(&now); err != nil || now != state {
		return err // another worker has done it
	}
	from, to, move := "found", "suspended", coupon.Case.Suspend
	if state == review.Restoring {
		from, to, move = "suspended", "restored", coupon.Case.Reinstate
	}
	cases, err := lockedCases(ctx, tx, id, from, reviewChunk)
	if err != nil {
		return err
	}
	if len(cases) == 0 {
		return endWork(ctx, tx, id, state)
	}
	var moves []coupon.Move
	var kept []int64
	for _, c := range cases {
		if m, ok := move(c); ok {
			moves = append(moves, m.Because(actor, reason))
			continue
		}
		kept = append(kept, c.Coupon.ID)
	}
	done, err := moveAll(ctx, tx, moves)
	if err != nil {
		return err
	}
	return noteMembers(ctx, tx, id, done, to, kept)
}

// lockedCases returns the next coupons of the group in the state, locked in the order of their ids. A
// coupon that no longer exists is left out and noted as kept.
func lockedCases(ctx context.Context, tx pgx.Tx, id int64, state string, limit int) (list []coupon.Case, err error) {
	ids, err := idsOf(ctx, tx, `select coupon_id from review_coupons where review_id = $1 and state = $2 order by coupon_id limit $3`, id, state, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `select from coupons where id = any($1) order by id for no key update`, ids); err != nil {
		return nil, err
	}
	found := make([]*coupon.Case, len(ids))
	rows, err := tx.Query(ctx, casesSQL, ids, make([]string, len(ids)))
	if err != nil {
		return nil, err
	}
	if err := readCases(rows, found); err != nil {
		return nil, err
	}
	for i, c := range found {
		if c == nil {
			c = &coupon.Case{Coupon: coupon.Coupon{ID: ids[i]}} // removed: in no state
		}
		list = append(list, *c)
	}
	return list, nil
}

// idsOf returns the ids that a statement selects.
func idsOf(ctx context.Context, db pg.Reader, sql string, args ...any) ([]int64, error) {
	return pgx.CollectRows(pg.Rows(ctx, db, sql, args...), pgx.RowTo[int64])
}

// moveAll stores the moves of coupons that are locked, and returns the ids of the coupons.
func moveAll(ctx context.Context, tx pgx.Tx, moves []coupon.Move) (done []int64, err error) {
	if len(moves) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, movesSQL, movesArgs(ctx, moves, nil))
	if err != nil {
		return nil, err
	}
	moved := make([]coupon.Coupon, len(moves))
	for i, m := range moves {
		moved[i] = m.To
	}
	stored, err := readMoved(rows, moved)
	if err != nil {
		return nil, err
	}
	for i, ok := range stored {
		if !ok {
			return nil, coupon.ErrRaced
		}
		done = append(done, moves[i].To.ID)
	}
	return done, nil
}

// noteMembers notes what happened to coupons of a group, and counts it. Of a coupon that was kept
// nothing can be said but that: an order may have used it.
func noteMembers(ctx context.Context, tx pgx.Tx, id int64, done []int64, state string, kept []int64) error {
	if _, err := tx.Exec(ctx, `update review_coupons set state = case when coupon_id = any($3) then $4 else 'kept' end
		where review_id = $1 and coupon_id = any($2)`, id, append(append([]int64{}, done...), kept...), done, state); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update reviews r set suspended = n.suspended, returned = n.returned, restored = n.restored, kept = n.kept, appeals = n.appeals
		from (select count(*) filter (where state = 'suspended') as suspended, count(*) filter (where state = 'returned') as returned,
			count(*) filter (where state = 'restored') as restored, count(*) filter (where state = 'kept') as kept,
			count(*) filter (where appealed_at is not null and answer = '') as appeals from review_coupons where review_id = $1) n where r.id = $1`, id)
	return err
}

func endWork(ctx context.Context, tx pgx.Tx, id int64, state review.State) error {
	_, err := tx.Exec(ctx, `update reviews set state = $2 where id = $1`, id, string(state.Done()))
	return err
}

// takeBackSome revokes the next suspended coupons of a group and returns them to the stock, each as a
// member of the staff would: the stock's own path decides whom they go to.
func (s Reviews) takeBackSome(ctx context.Context, id int64, actor, reason string) error {
	ids, err := idsOf(ctx, s.Pool, `select coupon_id from review_coupons where review_id = $1 and state = 'suspended' order by coupon_id limit $2`, id, reviewChunk)
	if err != nil {
		return pg.Translate(err)
	}
	if len(ids) == 0 {
		return s.Tx(ctx, func(tx pgx.Tx) error {
			var now review.State
			if err := tx.QueryRow(ctx, `select state from reviews where id = $1 for no key update`, id).Scan(&now); err != nil || now != review.Returning {
				return err
			}
			return endWork(ctx, tx, id, review.Returning)
		})
	}
	var returned, kept []int64
	for _, couponID := range ids {
		back, err := s.takeBack(ctx, couponID, actor, reason)
		if errors.Is(err, coupon.ErrRaced) {
			continue // it is decided again
		}
		if err != nil {
			return err
		}
		if back {
			returned = append(returned, couponID)
		} else {
			kept = append(kept, couponID)
		}
	}
	// After a crash before this, the coupons are found revoked and are noted then.
	return s.Tx(ctx, func(tx pgx.Tx) error { return noteMembers(ctx, tx, id, returned, "returned", kept) })
}

// takeBack revokes one suspended coupon. It reports false for a coupon that is in another state.
func (s Reviews) takeBack(ctx context.Context, id int64, actor, reason string) (bool, error) {
	c, err := s.steps.Case(ctx, id, "")
	if errors.Is(err, coupon.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, ok := c.TakeBack()
	if !ok { // revoked by the worker that crashed after it, or decided otherwise
		return c.Coupon.State == coupon.Revoked && c.Coupon.Returned, nil
	}
	_, err = s.steps.Save(ctx, m.Because(actor, reason))
	return err == nil, err
}

// EndExpired ends the review of up to limit suspended coupons that have expired: nothing is left to
// decide about them. It returns their number.
func (s Reviews) EndExpired(ctx context.Context, limit int) (n int, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		ids, err := idsOf(ctx, tx, `select id from coupons where state = 'suspended' and expires_at <= statement_timestamp()
			order by expires_at, id limit $1 for no key update skip locked`, limit)
		if err != nil || len(ids) == 0 {
			return err
		}
		found := make([]*coupon.Case, len(ids))
		rows, err := tx.Query(ctx, casesSQL, ids, make([]string, len(ids)))
		if err != nil {
			return err
		}
		if err := readCases(rows, found); err != nil {
			return err
		}
		var moves []coupon.Move
		for _, c := range found {
			if c == nil {
				continue
			}
			if m, ok := c.Reinstate(); ok {
				moves = append(moves, m.Because(staff.System().Label, ""))
			}
		}
		done, err := moveAll(ctx, tx, moves)
		n = len(done)
		if err != nil || n == 0 {
			return err
		}
		groups, err := idsOf(ctx, tx, `select distinct review_id from review_coupons where coupon_id = any($1) order by 1`, done)
		for _, id := range groups {
			if err := noteMembers(ctx, tx, id, nil, "", done); err != nil {
				return err
			}
		}
		return err
	})
	return n, pg.Translate(err)
}
