package coupons

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
)

// changeJSON is the text of an [event.Coupon]: the step o of coupon c. Joined texts that become
// one jsonb value take a third of the time of a jsonb value for each change. Step and states
// are words without quotes.
const changeJSON = `concat('{"coupon_id":"', c.id, '","template_id":"', c.template_id, '","user_id":"', c.user_id, '","order_id":', to_json(o.order_id),
        ',"step":"', o.step, '","from":"', o.from_state, '","to":"', o.to_state, '","discount":', o.discount, ',"order_amount":', o.order_amount,
        case when o.step = 'lock' then ',"locked_until":' || to_json(c.locked_until) end, ',"operation_id":"', o.id, '","at":', to_json(o.at), '}')`

// movesSQL returns the id and the new columns of each coupon that was moved. A coupon whose
// version is not the version in @versions is left as it is and not returned. For all coupons
// together it stores the log and one event of the changes of state, of which there are at most
// [event.MaxCouponChanges]. Coupons in @returning are noted for their return to the stock. A new lock
// (@locking) requires a valid coupon; if the statement waited for a concurrent step, the clock
// is read again after the wait. It also logs refused steps, each once. The condition on @ids
// keeps a plan from reading the whole table: all joins are hash joins, for the rows of the
// parameters, and the table may have been empty when the plan was made.
const movesSQL = `
with m as (
    select * from unnest(@ids::bigint[], @versions::bigint[], @states::text[], @orders::text[], @discounts::bigint[], @locking::bigint[], @to_stock::bool[], @jobs::bigint[])
        as m (id, version, state, order_id, discount, locking, to_stock, job)
), c as (
    update coupons c set state = m.state, order_id = m.order_id, discount = m.discount, version = c.version + 1, updated_at = clock_timestamp(),
        locked_at = case when m.state <> 'locked' and m.state <> 'used' then null when m.locking > 0 then statement_timestamp() else c.locked_at end,
        locked_until = case when m.state <> 'locked' then null
            when m.locking > 0 then statement_timestamp() + m.locking * interval '1 microsecond' else c.locked_until end,
        used_at = case when m.state <> 'used' then null else coalesce(c.used_at, clock_timestamp()) end,
        returned = c.returned or m.to_stock
    from m where c.id = any(@ids::bigint[]) and c.id = m.id and c.version = m.version and (m.locking = 0 or c.expires_at > clock_timestamp())
    returning c.id, c.template_id, c.user_id, c.version, c.updated_at, c.locked_at, c.locked_until, c.used_at, c.returned, nullif(m.job, 0) as job
), o as (
    insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, eligible, discount, actor, reason, job_id)
    select c.id, o.order_id, o.step, 'done', o.from_state, o.to_state, o.order_amount, o.eligible, o.discount, o.actor, o.reason, c.job
    from unnest(@op_coupons::bigint[], @op_orders::text[], @op_steps::text[], @op_from::text[], @op_to::text[], @op_amounts::bigint[], @op_eligible::bigint[],
        @op_discounts::bigint[], @op_actors::text[], @op_reasons::text[])
        with ordinality as o (coupon_id, order_id, step, from_state, to_state, order_amount, eligible, discount, actor, reason, i) join c on c.id = o.coupon_id
    order by o.i
    returning id, coupon_id, order_id, step, from_state, to_state, order_amount, discount, at
), noted as (
    insert into coupon_returns (coupon_id, template_id, due_at, refunded) select c.id, c.template_id, clock_timestamp(), true from c
    where c.id = any(@returning::bigint[]) on conflict (coupon_id) do update set due_at = excluded.due_at, refunded = true
), refused as (
    insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, actor)
    select * from unnest(@no_coupons::bigint[], @no_orders::text[], @no_steps::text[], @no_outcomes::text[], @no_from::text[], @no_to::text[], @no_actors::text[])
    on conflict do nothing
), announced as (
    insert into outbox (topic, payload, trace)
    select @topic, ('{"changes":[' || string_agg(` + changeJSON + `, ',' order by o.id) || ']}')::jsonb, @trace
    from o join c on c.id = o.coupon_id where o.from_state <> o.to_state having count(*) > 0
)
select id, version, updated_at, locked_at, locked_until, used_at, returned from c`

// freeMovesSQL is [movesSQL] for the coupons that no other transaction has locked. The other
// coupons are left as they are and not returned.
var freeMovesSQL = strings.Replace(strings.Replace(movesSQL, `
), c as (`, `
), free as (
    select c.id from m join coupons c on c.id = m.id where c.id = any(@ids::bigint[]) and c.version = m.version order by c.id for no key update of c skip locked
), c as (`, 1), `c.id = m.id and c.version`, `c.id = m.id and c.id in (select id from free) and c.version`, 1)

// movesArgs are the arguments of [movesSQL].
func movesArgs(ctx context.Context, moves []coupon.Move, refused []coupon.Operation) pgx.StrictNamedArgs {
	n := len(moves)
	ids, versions, locking, jobs, discounts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	states, orders, toStock := make([]string, n), make([]string, n), make([]bool, n)
	var ops []coupon.Operation
	returning := []int64{}
	for i, m := range moves {
		if m.Returns {
			returning = append(returning, m.From.ID)
		}
		ids[i], versions[i], locking[i], jobs[i] = m.From.ID, m.From.Version, m.LockFor.Microseconds(), m.Job
		states[i], orders[i], discounts[i], toStock[i] = string(m.To.State), m.To.OrderID, int64(m.To.Discount), m.ToStock
		ops = append(ops, m.Ops...)
	}
	args := operationArgs(ops)
	args["ids"], args["versions"], args["states"], args["orders"], args["discounts"] = ids, versions, states, orders, discounts
	args["returning"] = returning
	args["locking"], args["to_stock"], args["jobs"] = locking, toStock, jobs
	args["topic"], args["trace"] = event.CouponsChanged, pg.TraceOf(ctx)
	addRefused(args, refused)
	return args
}

// operationArgs are the arguments for the log of steps that are done.
func operationArgs(ops []coupon.Operation) pgx.StrictNamedArgs {
	n := len(ops)
	coupons, orders, steps, from, to := make([]int64, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	amounts, eligible, discounts := make([]int64, n), make([]int64, n), make([]int64, n)
	actors, reasons := make([]string, n), make([]string, n)
	for i, o := range ops {
		coupons[i], orders[i], steps[i], from[i], to[i] = o.CouponID, o.OrderID, string(o.Step), string(o.From), string(o.To)
		amounts[i], eligible[i], discounts[i] = int64(o.OrderAmount), int64(o.Eligible), int64(o.Discount)
		actors[i], reasons[i] = o.By, o.Reason
	}
	return pgx.StrictNamedArgs{"op_coupons": coupons, "op_orders": orders, "op_steps": steps, "op_from": from, "op_to": to, "op_amounts": amounts,
		"op_eligible": eligible, "op_discounts": discounts, "op_actors": actors, "op_reasons": reasons}
}

// addRefused adds the arguments for the log of refused steps.
func addRefused(args pgx.StrictNamedArgs, ops []coupon.Operation) {
	n := len(ops)
	coupons, orders, steps, outcomes := make([]int64, n), make([]string, n), make([]string, n), make([]string, n)
	from, to, actors := make([]string, n), make([]string, n), make([]string, n)
	for i, o := range ops {
		coupons[i], orders[i], steps[i], outcomes[i] = o.CouponID, o.OrderID, string(o.Step), o.Outcome
		from[i], to[i], actors[i] = string(o.From), string(o.To), o.By
	}
	args["no_coupons"], args["no_orders"], args["no_steps"], args["no_outcomes"] = coupons, orders, steps, outcomes
	args["no_from"], args["no_to"], args["no_actors"] = from, to, actors
}

// readMoved reads the rows of [movesSQL] into the coupons as they were to be. done says which
// of them were moved.
func readMoved(rows pgx.Rows, coupons []coupon.Coupon) (done []bool, err error) {
	defer rows.Close()
	places := make(map[int64]int, len(coupons))
	for i, c := range coupons {
		places[c.ID] = i
	}
	done = make([]bool, len(coupons))
	for rows.Next() {
		var id, version int64
		var updated time.Time
		var locked, until, used *time.Time
		var returned bool
		if err := rows.Scan(&id, &version, &updated, &locked, &until, &used, &returned); err != nil {
			return nil, err
		}
		i := places[id]
		c := &coupons[i]
		c.Version, c.UpdatedAt, c.LockedAt, c.LockedUntil, c.UsedAt, c.Returned, done[i] = version, updated, locked, until, used, returned, true
	}
	return done, rows.Err()
}
