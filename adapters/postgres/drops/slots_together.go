package drops

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
)

// beginTogetherSQL claims slots for @token. For each slot it returns whether the slot was
// waiting, and the approximate number of its reminders. Slots are taken in the order of their
// due times until @most reminders or @limit slots are together. A slot is skipped if a group
// of reservations that is being committed, or another worker, has locked its row; the slot's
// own timer waits for the lock. Several workers that claim at the same time each find their
// share among @candidates.
//
// Slots to which [sentBefore] may apply are left to BeginFiring. statement_timestamp is used
// instead of clock_timestamp, because only statement_timestamp can be used to search an index.
const beginTogetherSQL = `
with due as (
    select s.id, s.template_id, s.slot, s.due_at, s.state from slots s
    -- an array, so that the slots are looked up by their ids
    where s.id = any(array(
            (select id from slots where state = 'waiting' and due_at <= statement_timestamp() order by due_at limit @candidates)
            union all
            (select id from slots where state = 'firing' and cut_lease_until < statement_timestamp() limit @candidates)))
        and (s.state = 'waiting' and s.due_at <= statement_timestamp() or s.state = 'firing' and s.cut_lease_until < statement_timestamp())
        and s.round = 0 and s.id <> @first
    order by s.due_at, s.id limit @limit for update skip locked
), sized as (
    select d.*, b.booked, sum(b.booked) over (order by d.due_at, d.id) as together
    from due d join templates t on t.id = d.template_id
        cross join lateral (select coalesce(sum(booked), 0)::bigint as booked from bookings where template_id = d.template_id and slot = d.slot) b
    where not t.remind_once and b.booked <= @small
), taken as materialized (
    select * from sized where together <= @most
), fired as (
    update slots set state = 'firing', fired_at = coalesce(fired_at, clock_timestamp()), cut_token = @token,
        cut_lease_until = clock_timestamp() + @lasting::interval
    -- an array here too: a planner that takes the table for empty would join all slots with what is taken
    where id = any(array(select id from taken)) returning *
)
select ` + pg.SlotColumns + `, d.state = 'waiting', d.booked from fired s join taken d on d.id = s.id
order by d.due_at, d.id`

// BeginTogether claims further slots; see [reminder.TogetherStore].
func (s Slots) BeginTogether(ctx context.Context, c reminder.Cut, lasting time.Duration) (cuts []reminder.Cut, err error) {
	var abandoned []int64
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.ByIndex(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, beginTogetherSQL, pgx.StrictNamedArgs{"first": c.ID, "token": c.Token, "lasting": lasting,
			"limit": reminder.GroupSlots - 1, "candidates": 4 * reminder.GroupSlots, "small": reminder.SmallSlot, "most": reminder.GroupReminders - c.Expected})
		if err != nil {
			return err
		}
		cuts, abandoned = nil, nil
		var fired []any
		cut, first := reminder.Cut{Token: c.Token}, false
		if _, err := pgx.ForEachRow(rows, append(pg.SlotFields(&cut.Slot), &first, &cut.Expected), func() error {
			cuts = append(cuts, cut)
			if first {
				fired = append(fired, slotEvent(cut.Slot, *cut.FiredAt))
			} else {
				abandoned = append(abandoned, cut.ID)
			}
			return nil
		}); err != nil {
			return err
		}
		return pg.AnnounceAll(ctx, tx, event.SlotFired, fired)
	})
	if err == nil && len(abandoned) > 0 {
		err = s.coverTogether(ctx, cuts, abandoned)
	}
	if err != nil {
		return nil, err // the claimed firings are abandoned again
	}
	return cuts, nil
}

// coverTogether finds the ranges of abandoned slots that existing batches cover.
func (s Slots) coverTogether(ctx context.Context, cuts []reminder.Cut, abandoned []int64) error {
	at := make(map[int64]int, len(cuts))
	for i, c := range cuts {
		at[c.ID] = i
	}
	rows := pg.Rows(ctx, s.Pool, `select owner_id, channel, from_user, to_user from batches
		where kind = 'reminder' and owner_id = any($1) order by owner_id, channel, from_user`, abandoned)
	var owner int64
	var c delivery.Channel
	var r delivery.Range
	_, err := pgx.ForEachRow(rows, []any{&owner, &c, &r.From, &r.To}, func() error {
		covered := &cuts[at[owner]].Covered
		covered[c] = append(covered[c], r)
		return nil
	})
	return pg.Translate(err)
}

// readTogetherSQL returns the users who are due: index of the cut, user and channels.
// Reservations of drops that fill at the same time share pages, so each page is read once for
// all templates. Without offset 0 PostgreSQL would look up the reservations template by
// template and read each page several times.
const readTogetherSQL = `
select o.i - 1, r.user_id, (r.slots >> o.slot) & $3
from unnest($1::bigint[], $2::int[]) with ordinality as o (template_id, slot, i)
    join (select template_id, user_id, slots from reservations where template_id = any($1) offset 0) r
        on r.template_id = o.template_id and r.slots & ($3::bigint << o.slot) <> 0`

// ReadTogether reads the users who are due in each of the cuts; see [reminder.TogetherStore].
func (s Slots) ReadTogether(ctx context.Context, cuts []reminder.Cut) ([]reminder.Due, error) {
	templates, slots := make([]int64, len(cuts)), make([]int32, len(cuts))
	for i, c := range cuts {
		templates[i], slots[i] = c.TemplateID, int32(c.Slot.Slot)-1
	}
	due := make([]reminder.Due, len(cuts))
	if err := pg.ReadUsersOf(ctx, s.DB, due, readTogetherSQL, templates, slots, reminder.EveryChannel); err != nil {
		return nil, err
	}
	for i, c := range cuts {
		if err := ofDoors(ctx, s.Doors, c.TemplateID, c.Doors, &due[i]); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// storeTogetherSQL returns slot, channel, first user and id of each new batch. It returns no
// rows for slots whose lease for cutting was lost. The ids of the slots to lock are an array:
// with "in (select …)" PostgreSQL might run the locking subquery once for each slot.
const storeTogetherSQL = `
with mine as (
    update slots set cut_lease_until = clock_timestamp() + interval '10 seconds'
    where id = any(array(select id from slots where id = any(@slots::bigint[]) order by id for update)) and cut_token = @token and state = 'firing'
    returning id, template_id, due_at - round * interval '1 microsecond' as due_at, planned_at, opens_at, stop_reason
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, planned_at,
    worthless_after, stop_reason, next_run_at)
select 'reminder', m.id, m.template_id, b.channel, b.from_user, b.to_user, b.n, b.due, m.due_at, m.planned_at,
    m.opens_at, m.stop_reason, clock_timestamp()
from unnest(@owners::bigint[], @channels::smallint[], @from_users::bigint[], @to_users::bigint[], @due_counts::int[], @dues::bytea[])
    with ordinality as b (owner, channel, from_user, to_user, n, due, i) join mine m on m.id = b.owner
order by b.i
returning owner_id, channel, from_user, id`

// StoreTogether stores batches of several slots; see [reminder.TogetherStore].
func (s Slots) StoreTogether(ctx context.Context, cuts []reminder.Cut, bs []reminder.OwnedBatch) ([]int64, error) {
	type key struct {
		owner   int64
		channel delivery.Channel
		from    int64
	}
	owners, plain, at := make([]int64, len(bs)), make([]reminder.NewBatch, len(bs)), make(map[key]int, len(bs))
	for i, b := range bs {
		owners[i], plain[i] = cuts[b.Of].ID, b.NewBatch
		at[key{owners[i], b.Channel, int64(b.Users[0])}] = i
	}
	args, err := pg.BatchArgs(plain)
	if err != nil {
		return nil, err
	}
	args["owners"], args["token"] = owners, cuts[0].Token
	args["slots"] = slices.Compact(slices.Sorted(slices.Values(owners)))
	ids := make([]int64, len(bs))
	return ids, pg.StoreBatchesOf(ctx, s.DB, storeTogetherSQL, args, func(rows pgx.Rows) error {
		var k key
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&k.owner, &k.channel, &k.from, &id}, func() error {
			ids[at[k]] = id
			return nil
		})
		return err
	})
}

// KeepTogether renews the lease for cutting; see [reminder.TogetherStore].
func (s Slots) KeepTogether(ctx context.Context, cuts []reminder.Cut, lasting time.Duration) error {
	return pg.Translate(pg.Change(ctx, s.Pool, delivery.ErrLeaseLost, `update slots set cut_lease_until = clock_timestamp() + $3::interval
		where id = any(array(select id from slots where id = any($1) order by id for update)) and cut_token = $2 and state = 'firing'`,
		idsOf(cuts), cuts[0].Token, lasting))
}

func idsOf(cuts []reminder.Cut) []int64 {
	ids := make([]int64, len(cuts))
	for i, c := range cuts {
		ids[i] = c.ID
	}
	return ids
}

// EndTogether records that every batch is stored; see [Slots.EndFiring].
func (s Slots) EndTogether(ctx context.Context, found []reminder.Found) error {
	ids := make([]int64, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		ended, err := pg.LockIDs(ctx, tx, `update slots set state = 'sending', cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
			where id = any(array(select id from slots where id = any($1) order by id for update)) and cut_token = $2 and state = 'firing' returning id`,
			ids, found[0].Token)
		if err != nil || len(ended) == 0 {
			return err // another worker has ended them
		}
		slots, channels, counts := make([]int64, 0, len(found)*delivery.Channels), []int16(nil), []int64(nil)
		for _, f := range found {
			if !slices.Contains(ended, f.ID) {
				continue
			}
			for c, n := range f.Reserved {
				slots, channels, counts = append(slots, f.ID), append(channels, int16(c+1)), append(counts, n)
			}
		}
		_, err = tx.Exec(ctx, `
			with rates as materialized (select c.n, `+expectedRate+` as expected from generate_series(1, $4::int) as c (n))
			insert into slot_results (slot_id, channel, reserved, expected)
			select s.id, c.n - 1, case when s.stop_reason is null and s.doors = 0 then c.found else
				coalesce((select sum(due_count) from batches b where b.kind = 'reminder' and b.owner_id = s.id and b.channel = c.n - 1), 0) end, r.expected
			from unnest($1::bigint[], $2::smallint[], $5::bigint[]) as c (slot, n, found) join slots s on s.id = c.slot join rates r on r.n = c.n
			on conflict do nothing`, slots, channels, assumedRates(), delivery.Channels, counts)
		return err
	})
}
