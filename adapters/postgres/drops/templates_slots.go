package drops

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// reschedule updates the slots after a change of the template. The updates wait
// for groups of reservations that are being committed. Later groups read the
// updated slots.
func reschedule(ctx context.Context, tx pgx.Tx, t template.Template, how template.Schedule) error {
	switch how {
	case template.OpenSlots:
		return insertSlots(ctx, tx, t, t.Openings(), string(reminder.Passed))
	case template.MoveSlots:
		if err := endDeliveries(ctx, tx, t, nil, reminder.Moved, delivery.ReasonMoved); err != nil {
			return err
		}
		// Reminders whose new due time has passed are sent at once: late, but
		// with the new time and before the opening.
		return insertSlots(ctx, tx, t, t.Openings(), string(reminder.Waiting))
	case template.CloseSlots:
		return endWaiting(ctx, tx, t, nil, reminder.SlotEnded)
	case template.ReopenSlots:
		return reopenSlots(ctx, tx, t)
	case template.CancelSlots:
		return endDeliveries(ctx, tx, t, nil, reminder.SlotEnded, delivery.ReasonCancelled)
	}
	return nil
}

// moveDoors replaces the slots of the openings that the doors of the template leave or join, after a change of their
// leads from those of old. The slots of its other openings stay as they are.
func moveDoors(ctx context.Context, tx pgx.Tx, old, t template.Template) error {
	var touched []time.Time
	for i := range t.Doors {
		if was, is := old.OpensFor(i+1), t.OpensFor(i+1); !was.Equal(is) {
			touched = append(touched, was, is)
		}
	}
	if t.Stored == template.Draft || len(touched) == 0 {
		return nil
	}
	before := old.Openings()
	// Of doors that all open together the slots are for all users; a door that leaves them changes that too.
	for _, o := range t.Openings() {
		i := slices.IndexFunc(before, func(b template.DoorOpening) bool { return b.At.Equal(o.At) })
		if i >= 0 && before[i].Doors != o.Doors {
			touched = append(touched, o.At)
		}
	}
	if err := endDeliveries(ctx, tx, t, touched, reminder.Moved, delivery.ReasonMoved); err != nil {
		return err
	}
	again := slices.DeleteFunc(t.Openings(), func(o template.DoorOpening) bool { return !slices.ContainsFunc(touched, o.At.Equal) })
	return insertSlots(ctx, tx, t, again, string(reminder.Waiting))
}

// insertSlots adds the twelve slots of each of the template's openings. A slot whose due
// time has passed gets the state ifPast. If the opening was moved away and back,
// the slots of this opening exist already: a slot that did not fire waits again.
// A slot that fired stays as it is and is followed by another round for the users
// whom it did not reach: each user is reminded once per slot and opening.
// Lateness counts from the time at which a slot could first be fired: a slot that
// waits although its due time has passed is planned for now.
func insertSlots(ctx context.Context, tx pgx.Tx, t template.Template, openings []template.DoorOpening, ifPast string) error {
	at, doors := make([]time.Time, len(openings)), make([]int16, len(openings))
	for i, o := range openings {
		at[i], doors[i] = o.At, int16(o.Doors)
	}
	_, err := tx.Exec(ctx, `
		insert into slots (template_id, slot, opens_at, due_at, round, state, planned_at, doors)
		select $1, n, o.at, due + r.round * interval '1 microsecond', r.round,
			case when due > clock_timestamp() then 'waiting' else $4 end, case when due <= clock_timestamp() then clock_timestamp() end, o.doors
		from unnest($2::timestamptz[], $3::smallint[]) as o (at, doors)
		cross join `+slotsSQL+` as n cross join lateral (select o.at - n * $5::interval as due) d
		cross join lateral (select coalesce(max(round + (fired_at is not null)::int), 0) as round from slots
			where template_id = $1 and slot = n and opens_at = o.at) r
		on conflict (template_id, slot, due_at) do update
			set state = 'waiting', opens_at = excluded.opens_at, planned_at = excluded.planned_at, doors = excluded.doors where slots.state in ('moved', 'passed')`,
		t.ID, at, doors, ifPast, template.SlotStep)
	return err
}

// reopenSlots makes slots that ended when the template was closed wait again. For
// a slot whose due time has passed meanwhile, lateness counts from now.
func reopenSlots(ctx context.Context, tx pgx.Tx, t template.Template) error {
	openings := t.Openings()
	at := make([]time.Time, len(openings))
	for i, o := range openings {
		at[i] = o.At
	}
	_, err := tx.Exec(ctx, `
		with mine as (select id from slots where template_id = $1 and opens_at = any($2) and state = $3 order by id for update)
		update slots set state = 'waiting', planned_at = case when due_at <= clock_timestamp() then clock_timestamp() else planned_at end
		where id in (select id from mine)`, t.ID, at, reminder.SlotEnded)
	return err
}

// endWaiting ends the slots of the openings that wait; nil = of all openings.
func endWaiting(ctx context.Context, tx pgx.Tx, t template.Template, openings []time.Time, to reminder.SlotState) error {
	_, err := tx.Exec(ctx, `
		with mine as (select id from slots where template_id = $1 and state = 'waiting' and ($3::timestamptz[] is null or opens_at = any($3)) order by id for update)
		update slots set state = $2 where id in (select id from mine)`, t.ID, to, openings)
	return err
}

// endDeliveries ends waiting and running deliveries of reminders of the openings, nil = of all openings, and of corrections.
// Their batches skip the remaining recipients with this reason.
func endDeliveries(ctx context.Context, tx pgx.Tx, t template.Template, openings []time.Time, waiting reminder.SlotState, reason string) error {
	if err := endWaiting(ctx, tx, t, openings, waiting); err != nil {
		return err
	}
	reminders, err := pg.LockIDs(ctx, tx, `
		with mine as (select id from slots where template_id = $1 and state in ('firing', 'sending') and ($3::timestamptz[] is null or opens_at = any($3)) order by id for update)
		update slots set stop_reason = $2 where id in (select id from mine) returning id`, t.ID, reason, openings)
	if err != nil {
		return err
	}
	corrections, err := endCorrections(ctx, tx, t.ID, reason)
	if err != nil {
		return err
	}
	// This is a separate statement: the statements above may have waited for
	// batches that were being stored, and only a later statement sees these
	// batches.
	return pg.StopBatches(ctx, tx, append(pg.BatchOwners(delivery.KindReminder, reminders), pg.BatchOwners(delivery.KindCorrection, corrections)...), reason)
}

// WaitingSlots returns the template's waiting slots, and the slots that no longer
// wait, with ids and due times.
func (s Slots) WaitingSlots(ctx context.Context, templateID int64) (waiting, gone []reminder.Slot, err error) {
	rows := pg.Rows(ctx, s.Pool, `select `+pg.SlotColumns+` from slots s where template_id = $1 order by due_at, id`, templateID)
	all, err := pgx.CollectRows(rows, pg.ScanSlot)
	for _, sl := range all {
		if sl.State == reminder.Waiting {
			waiting = append(waiting, sl)
		} else {
			gone = append(gone, sl)
		}
	}
	return waiting, gone, pg.Translate(err)
}
