package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/money"
	"dropbell/killpoint"
)

// CouponSteps stores coupons, their state changes, and the log of these steps.
type CouponSteps struct{ *pg.DB }

// NewCouponSteps returns the coupons of db.
func NewCouponSteps(db *pg.DB) CouponSteps { return CouponSteps{db} }

var (
	ownedColumns = pg.RowColumns[coupon.Coupon]("c")
	ruleColumns  = pg.RowColumns[coupon.Rule]("t")
)

// caseSQL loads coupon $1 with the history of order $2 in one statement, so that
// both are of the same moment.
var caseSQL = `
select ` + ownedColumns + `, ` + ruleColumns + `, t.shop_number, clock_timestamp(), o.steps, o.amounts, o.eligible
from coupons c join templates t on t.id = c.template_id,
    lateral (select coalesce(array_agg(o.step), '{}') as steps, coalesce(array_agg(o.order_amount), '{}') as amounts,
        coalesce(array_agg(o.eligible), '{}') as eligible
        from coupon_operations o where o.coupon_id = c.id and o.order_id = $2 and $2 <> '' and o.outcome = 'done') o
where c.id = $1`

// Case loads a coupon with one order's history; see [coupon.Store].
func (s CouponSteps) Case(ctx context.Context, id int64, order string) (c coupon.Case, err error) {
	var steps []string
	var amounts, eligible []int64
	fields := append(pg.RowPlaces(&c.Coupon), pg.RowPlaces(&c.Rule)...)
	err = s.Pool.QueryRow(ctx, caseSQL, id, order).Scan(append(fields, &c.ShopNumber, &c.Now, &steps, &amounts, &eligible)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, coupon.ErrNotFound
	}
	for i, step := range steps {
		c.History = append(c.History, coupon.Operation{CouponID: id, OrderID: order, Step: coupon.Step(step), Outcome: coupon.Done,
			OrderAmount: money.Amount(amounts[i]), Eligible: money.Amount(eligible[i])})
	}
	return c, pg.Translate(err)
}

// moveSQL returns the coupon after the step, or no row if the coupon's version is
// not @version. It stores the coupon, the log, and one event for each change of
// state. A new lock (@locking) requires a valid coupon; if the statement waited
// for a concurrent step, the clock is read again after the wait.
var moveSQL = `
with c as (
    update coupons c set state = @state, order_id = @order, discount = @discount, version = version + 1, updated_at = clock_timestamp(),
        locked_at = case when @state <> 'locked' and @state <> 'used' then null when @locking then statement_timestamp() else locked_at end,
        locked_until = case when @state <> 'locked' then null when @locking then statement_timestamp() + @lock_for::interval else locked_until end,
        used_at = case when @state <> 'used' then null else coalesce(used_at, clock_timestamp()) end,
        returned = returned or @to_stock
    where c.id = @id and c.version = @version and (not @locking or c.expires_at > clock_timestamp())
    returning c.*
), o as (
    insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, eligible, discount, actor, reason, job_id)
    select c.id, o.order_id, o.step, 'done', o.from_state, o.to_state, o.order_amount, o.eligible, o.discount, o.actor, o.reason, nullif(@job::bigint, 0)
    from c, unnest(@orders::text[], @steps::text[], @from_states::text[], @to_states::text[], @amounts::bigint[], @eligible::bigint[],
        @discounts::bigint[], @actors::text[], @reasons::text[])
        with ordinality as o (order_id, step, from_state, to_state, order_amount, eligible, discount, actor, reason, i) order by o.i
    returning id, order_id, step, from_state, to_state, order_amount, discount, at
), announced as (
    insert into outbox (topic, payload, trace)
    select @topic, jsonb_strip_nulls(jsonb_build_object('coupon_id', c.id::text, 'template_id', c.template_id::text, 'user_id', c.user_id::text,
        'order_id', o.order_id, 'step', o.step, 'from', o.from_state, 'to', o.to_state, 'discount', o.discount,
        'order_amount', nullif(o.order_amount, 0), 'locked_until', case when o.step = 'lock' then c.locked_until end, 'operation_id', o.id::text, 'at', o.at)), @trace
    from c, o where o.from_state <> o.to_state
)
select ` + ownedColumns + ` from c`

// Save stores the move; see [coupon.Store].
func (s CouponSteps) Save(ctx context.Context, m coupon.Move) (c coupon.Coupon, err error) {
	args := operationArgs(m.Ops)
	args["id"], args["version"], args["locking"], args["lock_for"] = m.From.ID, m.From.Version, m.LockFor > 0, m.LockFor
	args["state"], args["order"], args["discount"] = m.To.State, m.To.OrderID, m.To.Discount
	args["to_stock"], args["job"] = m.ToStock, m.Job
	args["topic"], args["trace"] = event.CouponChanged, pg.TraceOf(ctx)
	if m.Entry == nil && !m.ToStock { // one statement is a transaction
		err = s.Apart(ctx, pg.Room{Of: "payment", ID: m.From.TemplateID}, func() error {
			return killpoint.Around("coupons.step", func() error { return s.BrieflyOne(ctx, moveSQL, []any{args}, pg.RowPlaces(&c)...) })
		})
	} else {
		err = s.Tx(ctx, func(tx pgx.Tx) error {
			if m.ToStock {
				if _, err := tx.Exec(ctx, lockForReturn, m.From.TemplateID); err != nil {
					return err
				}
			}
			if err := tx.QueryRow(ctx, moveSQL, args).Scan(pg.RowPlaces(&c)...); err != nil {
				return err
			}
			if m.UndoesRefund {
				if _, err := tx.Exec(ctx, `update coupon_operations set outcome = 'undone' where coupon_id = $1 and order_id = $2 and step = 'refund' and outcome = 'done'`,
					m.From.ID, m.To.OrderID); err != nil {
					return err
				}
			}
			if m.ToStock {
				if err := returnToStock(ctx, tx, m.From.TemplateID); err != nil {
					return err
				}
			}
			if m.Entry == nil {
				return nil
			}
			return pg.InsertAudit(ctx, tx, *m.Entry)
		})
	}
	if errors.Is(err, pgx.ErrNoRows) || pg.Violates(err, "coupon_operations_coupon_id_order_id_step_outcome_key") {
		return c, coupon.ErrRaced
	}
	return c, pg.Translate(err)
}

// operationArgs are the parameters for the log, as arrays with one element for
// each operation.
func operationArgs(ops []coupon.Operation) pgx.StrictNamedArgs {
	n := len(ops)
	orders, steps, from, to := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	amounts, eligible, discounts := make([]int64, n), make([]int64, n), make([]int64, n)
	actors, reasons := make([]string, n), make([]string, n)
	for i, o := range ops {
		orders[i], steps[i], from[i], to[i] = o.OrderID, string(o.Step), string(o.From), string(o.To)
		amounts[i], eligible[i], discounts[i] = int64(o.OrderAmount), int64(o.Eligible), int64(o.Discount)
		actors[i], reasons[i] = o.By, o.Reason
	}
	return pgx.StrictNamedArgs{"orders": orders, "steps": steps, "from_states": from, "to_states": to, "amounts": amounts,
		"eligible": eligible, "discounts": discounts, "actors": actors, "reasons": reasons}
}

// refusedSQL returns nothing.
const refusedSQL = `
insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, actor)
values (@coupon, @order, @step, @outcome, @from_state, @to_state, @actor) on conflict do nothing`

// Refused logs a refused step once; see [coupon.Store].
func (s CouponSteps) Refused(ctx context.Context, o coupon.Operation) error {
	err := s.Briefly(ctx, refusedSQL, []any{pgx.StrictNamedArgs{"coupon": o.CouponID, "order": o.OrderID, "step": o.Step,
		"outcome": o.Outcome, "from_state": o.From, "to_state": o.To, "actor": o.By}}, func(pgx.Rows) error { return nil })
	return pg.Translate(err)
}

// freedSQL is the state of coupon c once no order holds it.
const freedSQL = `case when c.expires_at <= clock_timestamp() then 'expired' else 'unused' end`

// EndLocks ends up to limit locks that have run out and returns their number.
// Concurrent calls are allowed.
func (s CouponSteps) EndLocks(ctx context.Context, limit int) (int, error) {
	tag, err := s.Pool.Exec(ctx, `
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
		)
		insert into outbox (topic, payload)
		select $2, jsonb_build_object('coupon_id', c.id::text, 'template_id', c.template_id::text, 'user_id', c.user_id::text,
			'order_id', c.ended, 'step', 'timeout', 'from', 'locked', 'to', c.state, 'discount', c.off, 'operation_id', o.id::text, 'at', o.at)
		from c join o on o.coupon_id = c.id`, limit, event.CouponChanged)
	return int(tag.RowsAffected()), pg.Translate(err)
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
