package drops

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
)

// SilentBatches finds ready batches that no worker has taken, and batches whose worker no
// longer renews its lease; see [delivery.Store].
type SilentBatches interface {
	TakeBack(ctx context.Context) (int, error)
	Overdue(ctx context.Context, grace time.Duration) ([]delivery.Channel, error)
}

// Slots stores slots and cuts their batches.
type Slots struct {
	*pg.DB
	SilentBatches
	// Doors finds the users of slots that are for some doors only.
	Doors reminder.DoorJudge
}

// NewSlots returns the slot store of db; batches finds abandoned batches. Drops with doors need [Slots.Doors] too.
func NewSlots(db *pg.DB, batches SilentBatches) Slots { return Slots{DB: db, SilentBatches: batches} }

// sentBefore is the condition that slot s leaves out users whom slot o has reached. Either o
// is an earlier round of s, or o belongs to another opening and the template reminds once
// ([template.Template.RemindOnce]).
const sentBefore = `o.template_id = s.template_id and o.slot = s.slot and (o.opens_at = s.opens_at and o.round < s.round
	or o.opens_at <> s.opens_at and o.fired_at is not null
		and (select m.remind_once from templates m where m.id = s.template_id))`

// BeginFiring claims the slot; see [reminder.FiringStore]. The claim waits until the slots of
// [sentBefore] have ended, because only then their reached users are known.
func (s Slots) BeginFiring(ctx context.Context, slotID int64, lasting time.Duration) (reminder.Cut, error) {
	cut := reminder.Cut{Token: uuid.NewString()}
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		var first bool
		err := tx.QueryRow(ctx, `
			update slots s set state = 'firing', fired_at = coalesce(s.fired_at, clock_timestamp()), cut_token = $2,
				cut_lease_until = clock_timestamp() + $3
			from slots old
			where s.id = $1 and old.id = s.id
			  and (s.state = 'waiting' and s.due_at <= clock_timestamp()
			      and not exists (select from slots o where `+sentBefore+` and o.state in ('firing', 'sending'))
			    or s.state = 'firing' and s.cut_lease_until < clock_timestamp())
			returning `+pg.SlotColumns+`, old.state = 'waiting'`, slotID, cut.Token, lasting).
			Scan(append(pg.SlotFields(&cut.Slot), &first)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return stillWaiting(ctx, tx, slotID, &cut)
		}
		if err != nil || !first {
			return err
		}
		return pg.Announce(ctx, tx, event.SlotFired, slotEvent(cut.Slot, *cut.FiredAt))
	})
	if err != nil || cut.Wait > 0 {
		return cut, err
	}
	return cut, s.prepare(ctx, &cut)
}

// stillWaiting determines why a slot could not be claimed. A slot that has become due since
// the claim is tried again at once; otherwise it would be left to the sweep.
func stillWaiting(ctx context.Context, tx pgx.Tx, slotID int64, cut *reminder.Cut) error {
	var behind bool
	err := tx.QueryRow(ctx, `select s.due_at - clock_timestamp(),
			exists (select from slots o where `+sentBefore+` and o.state in ('firing', 'sending'))
		from slots s where s.id = $1 and s.state = 'waiting'`, slotID).Scan(&cut.Wait, &behind)
	if errors.Is(err, pgx.ErrNoRows) {
		return reminder.ErrNotFirable
	}
	cut.Wait = max(cut.Wait, time.Millisecond)
	if behind {
		cut.Wait = max(cut.Wait, roundPause)
	}
	return err
}

// roundPause is the interval at which a round checks whether the previous round has ended.
const roundPause = 200 * time.Millisecond

func slotEvent(s reminder.Slot, at time.Time) event.Slot {
	return event.Slot{SlotID: s.ID, TemplateID: s.TemplateID, Slot: int(s.Slot), DueAt: s.DueAt, At: at}
}

// EndFiring records that every batch is stored. While a stopped slot was being cut, its users
// may have reserved again for the new opening. So the number of its recipients is taken from
// its batches only, as is that of a slot for some doors: a second cut may judge users differently.
func (s Slots) EndFiring(ctx context.Context, cut reminder.Cut, reserved [delivery.Channels]int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update slots set state = 'sending', cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
			where id = $1 and cut_token = $2 and state = 'firing'`, cut.ID, cut.Token)
		if err != nil || tag.RowsAffected() == 0 {
			return err // another worker ended it
		}
		_, err = tx.Exec(ctx, `
			insert into slot_results (slot_id, channel, reserved, expected)
			select s.id, c.n - 1, case when s.stop_reason is null and s.doors = 0 then c.found else
				coalesce((select sum(due_count) from batches b where b.kind = 'reminder' and b.owner_id = s.id and b.channel = c.n - 1), 0) end,
				`+expectedRate+`
			from slots s, unnest($2::bigint[]) with ordinality as c (found, n) where s.id = $1
			on conflict do nothing`, cut.ID, reserved[:], assumedRates())
		return err
	})
}

// SlotsWait asks for slots that are due, or that have not ended.
const SlotsWait pg.Question = `
(select 1 from slots where state = 'waiting' and due_at <= statement_timestamp() order by due_at limit 1)
union all
(select 1 from slots where state in ('firing', 'sending') order by id limit 1)`

// DueSlots returns slots whose timer did not fire them, and abandoned slots.
func (s Slots) DueSlots(ctx context.Context, grace time.Duration, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		(select id from slots where state = 'waiting' and due_at <= statement_timestamp() - $1::interval order by due_at limit $2)
		union all
		(select id from slots where state = 'firing' and cut_lease_until < statement_timestamp() limit $2)`, grace, limit)
}

// Unfinished returns the slots among slotIDs that still have work to do.
func (s Slots) Unfinished(ctx context.Context, slotIDs []int64) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select id from slots where id = any($1) and state in ('firing', 'sending')`, slotIDs)
}

// finishGroup is how many slots are finished in one transaction.
const finishGroup = 250

// FinishSlots finishes slots whose batches are all done and writes their counters.
func (s Slots) FinishSlots(ctx context.Context) (finished int, err error) {
	for {
		n, err := s.finishSome(ctx)
		if finished += n; err != nil || n < finishGroup {
			return finished, err
		}
	}
}

// finishSome finishes a group of slots. After the slots are locked, a second statement checks
// their batches again, and so sees a committed replay of dead letters. Thousands of small
// slots may end within seconds, before table statistics are updated. With old statistics the
// planner would read all batches for each slot, so the transaction forces indexes.
func (s Slots) finishSome(ctx context.Context) (finished int, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		// The condition reads the index of unfinished batches once, not once for each slot, and
		// only at the instants $1 for which reminders are being sent. Slots of later instants,
		// which have begun meanwhile, are left to the next call.
		const settled = ` and s.id not in (select b.owner_id from batches b where b.kind = 'reminder' and b.state <> 'done' and b.due_at = any($1))`
		if err := pg.ByIndex(ctx, tx); err != nil {
			return err
		}
		var instants []time.Time
		if err := tx.QueryRow(ctx, `select array(select distinct `+pg.SlotDueAt+` from slots s where s.state = 'sending')`).Scan(&instants); err != nil || len(instants) == 0 {
			return err
		}
		ids, err := pg.LockIDs(ctx, tx, `select id from slots s where s.state = 'sending' and `+pg.SlotDueAt+` = any($1)`+settled+` order by id limit $2 for update skip locked`, instants, finishGroup)
		if err != nil || len(ids) == 0 {
			return err
		}
		rows := pg.Rows(ctx, tx, `update slots s set state = 'finished', finished_at = clock_timestamp()
			where s.id = any($2)`+settled+` returning `+pg.SlotColumns, instants, ids)
		done, err := pgx.CollectRows(rows, pg.ScanSlot)
		if err != nil || len(done) == 0 {
			return err
		}
		finished = len(done)
		return recordFinished(ctx, tx, done)
	})
	return finished, err
}

// recordResultsSQL writes the results of the slots $1. It reads their batches once, for all
// slots together. With a lookup for each slot and channel, the planner would use the wrong
// index if the last statistics are of an evening with one large drop.
const recordResultsSQL = `
with mine as materialized (
	select owner_id, channel, sent_count, skipped_count, expired_count, dead_count, finished_at, late
	from batches where kind = 'reminder' and owner_id = any($1)
), spans as (
	select owner_id, channel, null::int as span, sent_count, skipped_count, expired_count, dead_count, finished_at, 0 as n from mine
	union all
	select owner_id, channel, span, 0, 0, 0, 0, null, late[span] from mine, generate_subscripts(late, 1) as span where late[span] > 0
), sums as materialized (
	select owner_id, channel, sum(sent) as sent, sum(skipped) as skipped, sum(expired) as expired, sum(dead) as dead, max(done_at) as done_at,
		jsonb_object_agg(span, n) filter (where span is not null) as late
	from (select owner_id, channel, span, sum(sent_count) as sent, sum(skipped_count) as skipped, sum(expired_count) as expired, sum(dead_count) as dead,
			max(finished_at) as done_at, sum(n) as n from spans group by 1, 2, 3) s
	group by 1, 2
)
update slot_results r set sent = b.sent, skipped = b.skipped, expired = b.expired, dead = b.dead, done_at = b.done_at, late = b.late
from sums b where r.slot_id = any($1) and r.slot_id = b.owner_id and r.channel = b.channel`

func recordFinished(ctx context.Context, tx pgx.Tx, done []reminder.Slot) error {
	ids, events := make([]int64, len(done)), make([]any, len(done))
	for i, sl := range done {
		ids[i], events[i] = sl.ID, slotEvent(sl, *sl.FinishedAt)
	}
	if err := recordRates(ctx, tx, ids); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, recordResultsSQL, ids); err != nil {
		return err
	}
	return pg.AnnounceAll(ctx, tx, event.SlotFinished, events)
}
