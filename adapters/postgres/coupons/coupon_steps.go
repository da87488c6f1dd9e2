package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/money"
)

// CouponSteps stores coupons, their state changes, and the log of these steps.
type CouponSteps struct{ *pg.DB }

// NewCouponSteps returns the coupons of db.
func NewCouponSteps(db *pg.DB) CouponSteps { return CouponSteps{db} }

var (
	ownedColumns = pg.RowColumns[coupon.Coupon]("c")
	ruleColumns  = pg.RowColumns[coupon.Rule]("t")
)

// casesSQL loads the coupons $1, each with the log of the order in $2 at the same place, in
// one statement, so that both are of the same moment. The first column is the place. Coupon and
// rule are subqueries with a limit, so that the planner cannot reorder their joins, and a range
// of one id in the order of ids, so that it takes no other index than the primary key. A plan
// that was made while the tables were empty would otherwise read all coupons or a whole index.
var casesSQL = `
select a.i, ` + caseColumns + `
from unnest($1::bigint[], $2::text[]) with ordinality a (id, order_id, i), ` + casesOfPairs

var caseColumns = ownedColumns + `, ` + ruleColumns + `, t.shop_number, clock_timestamp(), o.steps, o.outcomes, o.amounts, o.eligible`

// casesOfPairs joins the rows a (id, order_id) with their coupons, templates and logs.
const casesOfPairs = `
    lateral (select * from coupons where id between a.id and a.id order by id limit 1) c,
    lateral (select * from templates where id between c.template_id and c.template_id order by id limit 1) t,
    lateral (select coalesce(array_agg(o.step), '{}') as steps, coalesce(array_agg(o.outcome), '{}') as outcomes,
        coalesce(array_agg(o.order_amount), '{}') as amounts, coalesce(array_agg(o.eligible), '{}') as eligible
        from coupon_operations o where o.coupon_id = c.id and o.order_id = a.order_id and a.order_id <> '') o`

// Case loads a coupon with one order's history; see [coupon.Store].
func (s CouponSteps) Case(ctx context.Context, id int64, order string) (c coupon.Case, err error) {
	found := make([]*coupon.Case, 1)
	err = s.PlannedOnce(ctx, casesSQL, []any{[]int64{id}, []string{order}}, func(rows pgx.Rows) error { return readCases(rows, found) })
	if err != nil {
		return c, pg.Translate(err)
	}
	if found[0] == nil {
		return c, coupon.ErrNotFound
	}
	return *found[0], nil
}

// readCases reads the rows of [casesSQL] into their places. The place of a coupon that does
// not exist stays nil.
func readCases(rows pgx.Rows, into []*coupon.Case) error {
	defer rows.Close()
	for rows.Next() {
		var place int
		c := &coupon.Case{}
		if err := scanCase(rows, c, &place); err != nil {
			return err
		}
		into[place-1] = c
	}
	return rows.Err()
}

// scanCase reads the columns before, and then those of a case, from the row.
func scanCase(rows pgx.Rows, c *coupon.Case, before ...any) error {
	var steps, outcomes []string
	var amounts, eligible []int64
	fields := append(before, pg.RowPlaces(&c.Coupon)...)
	fields = append(fields, pg.RowPlaces(&c.Rule)...)
	if err := rows.Scan(append(fields, &c.ShopNumber, &c.Now, &steps, &outcomes, &amounts, &eligible)...); err != nil {
		return err
	}
	for i, step := range steps {
		if outcomes[i] != coupon.Done {
			c.Refusals = append(c.Refusals, coupon.Refusal{Step: coupon.Step(step), Outcome: outcomes[i]})
			continue
		}
		c.History = append(c.History, coupon.Operation{CouponID: c.Coupon.ID, Step: coupon.Step(step), Outcome: coupon.Done,
			OrderAmount: money.Amount(amounts[i]), Eligible: money.Amount(eligible[i])})
	}
	return nil
}

// Save stores the move of staff or a job; see [coupon.AdminStore].
func (s CouponSteps) Save(ctx context.Context, m coupon.Move) (c coupon.Coupon, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if m.ToStock {
			if _, err := tx.Exec(ctx, lockForReturn, m.From.TemplateID); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, movesSQL, movesArgs(ctx, []coupon.Move{m}, nil))
		if err != nil {
			return err
		}
		moved := []coupon.Coupon{m.To}
		done, err := readMoved(rows, moved)
		if c = moved[0]; err == nil && !done[0] {
			err = coupon.ErrRaced
		}
		if err != nil {
			return err
		}
		if m.UndoesRefund {
			if _, err := tx.Exec(ctx, `update coupon_operations set outcome = 'undone' where coupon_id = $1 and order_id = $2 and step = 'refund' and outcome = 'done'`,
				m.From.ID, m.To.OrderID); err != nil {
				return err
			}
		}
		if m.ToStock {
			if err := returnToStock(ctx, tx, m.From.TemplateID, 1); err != nil {
				return err
			}
		}
		if m.Entry == nil {
			return nil
		}
		return pg.InsertAudit(ctx, tx, *m.Entry)
	})
	if pg.Violates(err, "coupon_operations_coupon_id_order_id_step_outcome_key") {
		return c, coupon.ErrRaced
	}
	return c, pg.Translate(err)
}

// freedSQL is the state of coupon c once no order holds it.
const freedSQL = `case when c.expires_at <= clock_timestamp() then 'expired' else 'unused' end`

// EndLocks ends up to limit locks that have run out and returns their number.
// Concurrent calls are allowed.
func (s CouponSteps) EndLocks(ctx context.Context, limit int) (n int, err error) {
	err = s.Pool.QueryRow(ctx, `
		with due as (
			select id, order_id, discount from coupons where state = 'locked' and locked_until <= statement_timestamp()
			order by locked_until limit $1 for update skip locked
		), c as (
			update coupons c set state = `+freedSQL+`, order_id = '', discount = 0, locked_at = null, locked_until = null,
				version = version + 1, updated_at = clock_timestamp()
			from due where c.id = due.id returning c.id, c.template_id, c.user_id, c.state, due.order_id as ended, due.discount as off
		), o as (
			insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, discount, actor)
			select id, ended, 'timeout', 'done', 'locked', state, off, 'system' from c
			returning id, coupon_id, at
		), changed as (
			select (row_number() over (order by o.id) - 1) / $3::int as part, o.id, jsonb_build_object('coupon_id', c.id::text, 'template_id', c.template_id::text,
				'user_id', c.user_id::text, 'order_id', c.ended, 'step', 'timeout', 'from', 'locked', 'to', c.state, 'discount', c.off,
				'operation_id', o.id::text, 'at', o.at) as change
			from c join o on o.coupon_id = c.id
		), announced as (
			insert into outbox (topic, payload)
			select $2, jsonb_build_object('changes', jsonb_agg(change order by id)) from changed group by part
		)
		select count(*) from c`, limit, event.CouponsChanged, event.MaxCouponChanges).Scan(&n)
	return n, pg.Translate(err)
}

// CouponsWait asks for locked coupons, and for unused coupons that have expired.
const CouponsWait pg.Question = `
(select 1 from coupons where state = 'locked' order by locked_until limit 1)
union all
(select 1 from coupons where state = 'unused' and expires_at <= statement_timestamp() order by expires_at, id limit 1)`

// An ExpiryCursor is the position of a sweep: after the coupon with this expiry
// time and id. The zero value is the beginning.
type ExpiryCursor struct {
	At time.Time
	ID int64
}

// Expire stores the expiry of up to limit unused coupons after the cursor, with
// one event for all of them. It returns their number and the cursor of the last
// coupon, or after if there was none. Concurrent calls are allowed: each skips
// coupons that another transaction has locked. Skipped coupons stay behind the
// cursor until a sweep starts from the beginning.
func (s CouponSteps) Expire(ctx context.Context, after ExpiryCursor, limit int) (n int, last ExpiryCursor, err error) {
	last = after
	var at *time.Time
	var id *int64
	err = s.Pool.QueryRow(ctx, `
		with due as (
			select id, expires_at from coupons where state = 'unused' and expires_at <= statement_timestamp() and (expires_at, id) > ($3, $4)
			order by expires_at, id limit $1 for update skip locked
		), c as (
			update coupons c set state = 'expired', version = version + 1, updated_at = clock_timestamp()
			from due where c.id = due.id returning c.id, c.template_id, c.user_id
		), o as (
			insert into coupon_operations (coupon_id, step, outcome, from_state, to_state, actor)
			select id, 'expire', 'done', 'unused', 'expired', 'system' from c on conflict do nothing returning coupon_id, id
		), listed as ( -- for shops that want to be told of each
			insert into outbox (topic, payload)
			select $5, jsonb_build_object('template_id', c.template_id::text, 'at', clock_timestamp(), 'items',
				jsonb_agg(jsonb_build_object('coupon_id', c.id::text, 'user_id', c.user_id::text, 'operation_id', o.id::text) order by c.id))
			from c join o on o.coupon_id = c.id join templates t on t.id = c.template_id
			where exists (select from hook_wants w where w.shop_number = t.shop_number
				and (cardinality(w.types) = 0 or '`+string(hook.CouponExpired)+`' = any(w.types)))
			group by c.template_id
		), sums as (
			select template_id, count(*) as n from c group by 1
		), announced as (
			insert into outbox (topic, payload)
			select $2, jsonb_build_object('at', clock_timestamp(), 'expired',
				jsonb_agg(jsonb_build_object('template_id', template_id::text, 'coupons', n) order by template_id))
			from sums having count(*) > 0
		), latest as (
			select expires_at, id from due order by expires_at desc, id desc limit 1
		)
		select (select count(*) from c), (select expires_at from latest), (select id from latest)`, limit, event.CouponsExpired, after.At, after.ID, event.ExpiredListed).
		Scan(&n, &at, &id)
	if at != nil {
		last = ExpiryCursor{*at, *id}
	}
	return n, last, pg.Translate(err)
}

// Overdue returns the number of coupons after the cursor, at most limit, that
// have expired and are still stored as unused. late is the time since the first
// of these coupons expired.
func (s CouponSteps) Overdue(ctx context.Context, after ExpiryCursor, limit int) (n int64, late time.Duration, err error) {
	var seconds float64
	err = s.Pool.QueryRow(ctx, `
		select count(*), coalesce(extract(epoch from clock_timestamp() - min(expires_at)), 0)::float8
		from (select expires_at from coupons where state = 'unused' and expires_at <= statement_timestamp() and (expires_at, id) > ($2, $3)
			order by expires_at, id limit $1) o`, limit, after.At, after.ID).Scan(&n, &seconds)
	return n, time.Duration(seconds * float64(time.Second)), pg.Translate(err)
}

// LockLateness returns for how long the oldest open lock is overdue, or 0. A
// lateness that grows shows a sweep that does not keep up.
func (s CouponSteps) LockLateness(ctx context.Context) (late time.Duration, err error) {
	var seconds float64
	err = s.Pool.QueryRow(ctx, `select coalesce(greatest(extract(epoch from clock_timestamp() - min(locked_until)), 0), 0)::float8
		from coupons where state = 'locked'`).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), pg.Translate(err)
}
