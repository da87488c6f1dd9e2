package drops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Reservations stores reservations. Reservations and cancellations are committed in groups;
// see committer.
type Reservations struct {
	*pg.DB
	reserve *pg.Committer[user.ID, reminder.Change, reminder.Decision]
	cancel  *pg.Committer[rowKey, reminder.Change, reminder.Decision]
	// repeats is the number of next groups with idempotency keys that look up their keys
	// first; a negative number means none.
	repeats atomic.Int64
	// Listed reports whether any shop's server wants to be told of each reservation or
	// cancellation; nil = no server does. Set Listed before the first call.
	Listed func(ctx context.Context, cancelled bool) bool
}

type rowKey struct {
	template int64
	user     user.ID
}

// NewReservations starts the committers.
func NewReservations(db *pg.DB, g pg.Grouping) *Reservations {
	r := &Reservations{DB: db}
	cfg := g.Config(db)
	cfg.Gather, cfg.Enough = 4*time.Millisecond, 64 // a fraction of what storing a group takes
	cfg.LockWait, cfg.Locked, cfg.Name = pg.LockWait, r.lockedOf, "reservation"
	template := func(c reminder.Change) int64 { return c.TemplateID }
	// Two requests with the same idempotency key have the same user too.
	r.reserve = pg.NewFairCommitter(cfg, func(c reminder.Change) user.ID { return c.UserID }, template, r.reserveAll)
	r.cancel = pg.NewFairCommitter(cfg, func(c reminder.Change) rowKey { return rowKey{c.TemplateID, c.UserID} }, template, r.cancelAll)
	return r
}

// lockedSQL returns the templates among $1 for which reservations would have to wait, because
// another session has changed or locked a slot. The statement itself does not wait.
const lockedSQL = `
with open as materialized (
    select id, template_id from slots where template_id = any($1) and state in ('waiting', 'cancelled') and due_at > clock_timestamp()
), free as materialized (
    select id from slots where id = any(array(select id from open)) for share skip locked
)
select distinct template_id from open where id not in (select id from free)`

func (r *Reservations) lockedOf(ctx context.Context, templates []int64) ([]int64, error) {
	return pgx.CollectRows(pg.Rows(ctx, r.Pool, lockedSQL, templates), pgx.RowTo[int64])
}

// Close answers everything that was accepted and stops.
func (r *Reservations) Close() {
	r.reserve.Close()
	r.cancel.Close()
}

// Reserve adds all of c.Bits or nothing; see [reminder.Store].
func (r *Reservations) Reserve(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	return r.reserve.Do(ctx, c)
}

// Cancel removes all of c.Bits or nothing; see [reminder.Store].
func (r *Reservations) Cancel(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	return r.cancel.Do(ctx, c)
}

// cancelSQL removes a group of reminders. Bits 0 cancels all reminders that are still open.
// Bits with [openBit] cancel only the reminders among bits that are still open. If a template
// was closed before its slots were due, reminders can still be cancelled until the slots' due
// times.
//
// cancelListedSQL also writes an event that names the users, as [reserveListedSQL] does; $7 is
// the event's topic.
var (
	cancelSQL       = cancelRows + cancelAnswers
	cancelListedSQL = cancelRows + `, numbered as (
    select template_id, user_id, bits, nextval('hook_sequence') as sequence from removable
), listed as (
    insert into outbox (topic, payload, trace)
    select $7, jsonb_build_object('template_id', template_id::text, 'cancelled', true, 'items', jsonb_agg(jsonb_build_object(
            'user_id', user_id::text, 'bits', bits::text, 'sequence', sequence::text, 'at', clock_timestamp()))), $6
    from (select n.* from numbered n join templates t on t.id = n.template_id
        where exists (select from hook_wants w where w.shop_number = t.shop_number
            and (cardinality(w.types) = 0 or '` + string(hook.ReservationCancelled) + `' = any(w.types)))) l
    group by template_id
)` + cancelAnswers
)

var cancelRows = `
with asked as (
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) with ordinality as a (template_id, user_id, bits, n)
), locked as (
    select template_id, slot from slots
    where template_id = any(array(select distinct template_id from asked)) and state in ('waiting', 'cancelled')
      and due_at > clock_timestamp()
    order by id for share
), still_open as (
    select template_id, bit_or($4::bigint << (slot - 1)) as mask from locked group by template_id
), rows as (
    -- locks in key order, and the newest version of each row
    select r.template_id, r.user_id, r.slots
    from (select template_id, user_id from asked order by template_id, user_id) a cross join lateral
        (select * from reservations r where r.template_id = a.template_id and r.user_id = a.user_id limit 1 for update) r
), removable as (
    select a.n, rows.template_id, rows.user_id, rows.slots,
        case when a.bits = 0 then rows.slots & coalesce(o.mask, 0)
             when a.bits >= ` + openBitSQL + ` then rows.slots & a.bits & coalesce(o.mask, 0) else a.bits end as bits
    from rows join asked a using (template_id, user_id) left join still_open o using (template_id)
    where case when a.bits = 0 then rows.slots & coalesce(o.mask, 0) <> 0
               when a.bits >= ` + openBitSQL + ` then rows.slots & a.bits & coalesce(o.mask, 0) <> 0
               else rows.slots & a.bits = a.bits and a.bits & ~coalesce(o.mask, 0) = 0 end
), deleted as (
    delete from reservations r using removable x
    where r.template_id = x.template_id and r.user_id = x.user_id and x.slots = x.bits
    returning r.template_id, r.user_id
), left_behind as (
    -- what was sent before stays in the inbox, and the timeline knows of it
    insert into former_reservations (user_id, template_id) select user_id, template_id from deleted order by template_id, user_id
    on conflict (user_id, template_id) do update set at = excluded.at
), reduced as (
    -- with a push reminder goes the consent to its message
    update reservations r set slots = r.slots & ~x.bits, standing = null, updated_at = now(),
        consents = nullif(r.consents & ~` + slotsOfSQL("x.bits", delivery.WebPush) + `::int, 0)::smallint
    from removable x
    where r.template_id = x.template_id and r.user_id = x.user_id and x.slots <> x.bits
    returning r.template_id, r.user_id, r.slots
), announced as (
    insert into outbox (topic, payload, trace)
    select $5, jsonb_build_object('at', now(), 'removed', jsonb_agg(jsonb_build_object(
               'template_id', template_id::text, 'bits', bits::text, 'users', users))), $6
    from (select template_id, bits, count(*) as users from removable group by 1, 2) g
    having count(*) > 0
)`

const cancelAnswers = `
select a.n, case when x.n is not null then coalesce(d.slots, 0) end, false, coalesce(o.mask, 0), coalesce(rows.slots, 0), false
from asked a
left join removable x using (n)
left join reduced d on d.template_id = a.template_id and d.user_id = a.user_id
left join still_open o on o.template_id = a.template_id
left join rows on rows.template_id = a.template_id and rows.user_id = a.user_id`

func (r *Reservations) cancelAll(ctx context.Context, group []reminder.Change) ([]reminder.Decision, error) {
	sql, more := cancelSQL, []any(nil)
	if r.Listed != nil && r.Listed(ctx, true) {
		sql, more = cancelListedSQL, []any{event.ReservationsListed}
	}
	if slices.ContainsFunc(group, behindDoor) {
		sql, more = withDoors(sql, fmt.Sprintf("$%d", 7+len(more))), append(more, places(group))
	}
	return r.cancelWith(ctx, sql, group, more...)
}

// cancelWith runs one of the statements as a transaction of its own. more are the
// parameters after the six parameters that all of them have.
func (r *Reservations) cancelWith(ctx context.Context, sql string, group []reminder.Change, more ...any) ([]reminder.Decision, error) {
	if err := killpoint.Before("reservations.change"); err != nil {
		return nil, err
	}
	templates, users, bits := columns(group)
	args := append([]any{templates, users, bits, reminder.EveryChannel, event.ReservationsChanged, pg.TraceOf(ctx)}, more...)
	decisions := make([]reminder.Decision, len(group))
	if err := r.PlannedForGroups(ctx, sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			var n int64
			d, err := scanDecision(rows, &n)
			if err != nil {
				return err
			}
			decisions[n-1] = d
		}
		return rows.Err()
	}); err != nil {
		return nil, err
	}
	return decisions, killpoint.After("reservations.change")
}

// scanDecision reads a row of any of the statements; of receives the row's owner.
func scanDecision(rows pgx.Rows, of any) (d reminder.Decision, err error) {
	var after *int64
	var open, before int64
	if err := rows.Scan(of, &after, &d.Created, &open, &before, &d.Opened); err != nil {
		return d, err
	}
	d.Open, d.Before = reminder.StoredBitmap(open), reminder.StoredBitmap(before)
	if after != nil {
		d.Applied, d.After = true, reminder.StoredBitmap(*after)
	}
	return d, nil
}

func columns(group []reminder.Change) (templates, users, bits []int64) {
	templates, users, bits = make([]int64, len(group)), make([]int64, len(group)), make([]int64, len(group))
	for i, c := range group {
		templates[i], users[i], bits[i] = c.TemplateID, int64(c.UserID), c.Bits.Int64()
		if c.Possible {
			bits[i] |= openBit
		}
	}
	return templates, users, bits
}

const reservationColumns = `template_id, user_id, slots, coalesce(consents, 0), created_at, updated_at`

func scanReservation(row pgx.CollectableRow) (reminder.Reservation, error) {
	var r reminder.Reservation
	var slots int64
	var consents int64
	err := row.Scan(&r.TemplateID, &r.UserID, &slots, &consents, &r.CreatedAt, &r.UpdatedAt)
	r.Slots, r.Consents = reminder.StoredBitmap(slots), reminder.StoredConsents(consents)
	return r, err
}

// Reservation returns the user's reservation, or [reminder.ErrNotReserved].
func (r *Reservations) Reservation(ctx context.Context, templateID int64, by user.ID) (reminder.Reservation, error) {
	rows := pg.Rows(ctx, r.Pool, `select `+reservationColumns+` from reservations where template_id = $1 and user_id = $2`, templateID, by)
	found, err := pgx.CollectExactlyOneRow(rows, scanReservation)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, reminder.ErrNotReserved.Because("nothing is reserved for this template; list the reservations to see what is")
	}
	return found, pg.Translate(err)
}

// Reservations lists a user's reservations, newest template first.
func (r *Reservations) Reservations(ctx context.Context, by user.ID, before int64, limit int) ([]reminder.Reservation, error) {
	return pg.Collect(ctx, r.Pool, scanReservation, `select `+reservationColumns+` from reservations
		where user_id = $1 and ($2::bigint = 0 or template_id < $2) order by template_id desc limit $3`, by, before, limit)
}
