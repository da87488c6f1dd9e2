package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Slots keeps slots and cuts their batches.
type Slots struct {
	Templates
	Batches
}

// NewSlots returns the slot store of db.
func NewSlots(db *DB) Slots { return Slots{NewTemplates(db), NewBatches(db)} }

const slotColumns = `s.id, s.template_id, s.slot, s.opens_at, s.due_at, s.state, coalesce(s.stop_reason, ''), s.fired_at, s.cut_at, s.finished_at`

func scanSlot(row pgx.CollectableRow) (reminder.Slot, error) {
	var s reminder.Slot
	return s, row.Scan(slotFields(&s)...)
}

func slotFields(s *reminder.Slot) []any {
	return []any{&s.ID, &s.TemplateID, &s.Slot, &s.OpensAt, &s.DueAt, &s.State, &s.StopReason, &s.FiredAt, &s.CutAt, &s.FinishedAt}
}

// BeginFiring claims the slot; see [reminder.FiringStore].
func (s Slots) BeginFiring(ctx context.Context, slotID int64, lasting time.Duration) (reminder.Cut, error) {
	cut := reminder.Cut{Token: uuid.NewString()}
	err := s.Templates.tx(ctx, func(tx pgx.Tx) error {
		var first bool
		err := tx.QueryRow(ctx, `
			update slots s set state = 'firing', fired_at = coalesce(s.fired_at, clock_timestamp()), cut_token = $2,
				cut_lease_until = clock_timestamp() + $3
			from slots old
			where s.id = $1 and old.id = s.id
			  and (s.state = 'waiting' and s.due_at <= clock_timestamp()
			    or s.state = 'firing' and s.cut_lease_until < clock_timestamp())
			returning `+slotColumns+`, old.state = 'waiting'`, slotID, cut.Token, lasting).
			Scan(append(slotFields(&cut.Slot), &first)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return stillWaiting(ctx, tx, slotID, &cut)
		}
		if err != nil || !first {
			return err
		}
		return announce(ctx, tx, event.SlotFired, slotEvent(cut.Slot, *cut.FiredAt))
	})
	if err != nil || cut.Wait > 0 {
		return cut, err
	}
	return cut, s.prepare(ctx, &cut)
}

// stillWaiting finds out why a slot could not be claimed.
func stillWaiting(ctx context.Context, tx pgx.Tx, slotID int64, cut *reminder.Cut) error {
	err := tx.QueryRow(ctx, `select due_at - clock_timestamp() from slots
		where id = $1 and state = 'waiting' and due_at > clock_timestamp()`, slotID).Scan(&cut.Wait)
	if errors.Is(err, pgx.ErrNoRows) {
		return reminder.ErrNotFirable
	}
	cut.Wait = max(cut.Wait, time.Millisecond)
	return err
}

func slotEvent(s reminder.Slot, at time.Time) event.Slot {
	return event.Slot{SlotID: s.ID, TemplateID: s.TemplateID, Slot: int(s.Slot), DueAt: s.DueAt, At: at}
}

// partSize is about how many reservations one part has: what a reader holds
// in memory at once.
const partSize = 500_000

// prepare finds what is covered already and divides the template's users.
func (s Slots) prepare(ctx context.Context, cut *reminder.Cut) (err error) {
	if cut.Covered, err = s.Templates.covered(ctx, delivery.KindReminder, cut.ID); err != nil {
		return err
	}
	var first, last, booked int64
	err = s.Templates.pool.QueryRow(ctx, `select
		coalesce((select user_id from reservations where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id desc limit 1), 0),
		coalesce((select sum(booked) from bookings where template_id = $1 and slot = $2), 0)`,
		cut.TemplateID, cut.Slot.Slot).Scan(&first, &last, &booked)
	cut.Parts = divide(first, last, booked)
	return translate(err)
}

// covered returns the ranges of the batches that an owner has already.
func (db *DB) covered(ctx context.Context, kind delivery.Kind, owner int64) (all [delivery.Channels][]delivery.Range, err error) {
	rows, err := db.pool.Query(ctx, `select channel, from_user, to_user from batches
		where kind = $1 and owner_id = $2 order by channel, from_user`, kind, owner)
	if err != nil {
		return all, translate(err)
	}
	var c delivery.Channel
	var r delivery.Range
	_, err = pgx.ForEachRow(rows, []any{&c, &r.From, &r.To}, func() error {
		all[c] = append(all[c], r)
		return nil
	})
	return all, translate(err)
}

// divide cuts the users from first to last into ranges. It only bounds
// memory, so a rough division will do: equal widths, as many as the expected
// number of users suggests.
func divide(first, last, expected int64) (parts []delivery.Range) {
	if last < first {
		return nil
	}
	n := 1 + expected/partSize
	if n == 1 && expected > partSize/5 {
		n = 2 // one for each reader
	}
	width := (last-first)/n + 1
	for from := first; from <= last && from >= first; from += width {
		parts = append(parts, delivery.Range{From: user.ID(from), To: user.ID(min(last, from+width-1))})
	}
	return parts
}

// ReadDue reads the part in the order of the rows, not of the key: rows lie
// in arrival order, and walking the key would visit every page many times.
func (s Slots) ReadDue(ctx context.Context, cut reminder.Cut, part delivery.Range) (reminder.Due, error) {
	var due reminder.Due
	shift := int64(cut.Slot.Slot) - 1
	err := s.Templates.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local enable_indexscan = off; set local enable_indexonlyscan = off;
			set local max_parallel_workers_per_gather = 0`); err != nil {
			return err
		}
		// The twelve bits between two channels are squeezed out by the client.
		rows, err := tx.Query(ctx, `select user_id, (slots >> $2::int) & $3 from reservations
			where template_id = $1 and user_id between $4 and $5 and slots & ($3::bigint << $2::int) <> 0`,
			cut.TemplateID, shift, reminder.EveryChannel, part.From, part.To)
		if err != nil {
			return err
		}
		return readDue(rows, &due)
	})
	for c := range due {
		slices.Sort(due[c])
	}
	return due, err
}

// readDue takes the two integers straight from the wire: at a million rows
// the generic scanner costs more than the query.
func readDue(rows pgx.Rows, due *reminder.Due) error {
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		id, bits := int64(beUint64(raw[0])), beUint64(raw[1])
		for c := range due {
			if bits>>(c*template.Slots)&1 != 0 {
				due[c] = append(due[c], user.ID(id))
			}
		}
	}
	return rows.Err()
}

func beUint64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}

// StoreBatches stores batches; see [reminder.FiringStore]. A stop of the slot
// that came first is inherited by its batches.
func (s Slots) StoreBatches(ctx context.Context, cut reminder.Cut, bs []reminder.NewBatch) ([]int64, error) {
	columns, err := batchColumns(bs)
	if err != nil {
		return nil, err
	}
	return s.Templates.storeBatches(ctx, `
		with mine as (
			update slots set cut_lease_until = clock_timestamp() + interval '10 seconds'
			where id = $1 and cut_token = $2 and state = 'firing' returning id, template_id, due_at, opens_at, stop_reason
		)
		insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at,
			worthless_after, stop_reason, next_run_at)
		select 'reminder', m.id, m.template_id, b.channel, b.from_user, b.to_user, b.n, b.due, m.due_at, m.opens_at, m.stop_reason, clock_timestamp()
		from mine m, unnest($3::smallint[], $4::bigint[], $5::bigint[], $6::int[], $7::bytea[])
			with ordinality as b (channel, from_user, to_user, n, due, i)
		order by b.i
		returning id`, append([]any{cut.ID, cut.Token}, columns...)...)
}

// batchColumns returns what [Slots.StoreBatches] unnests.
func batchColumns(bs []reminder.NewBatch) ([]any, error) {
	n := len(bs)
	channels, from, to, counts, due := make([]int16, n), make([]int64, n), make([]int64, n), make([]int32, n), make([][]byte, n)
	for i, b := range bs {
		encoded, err := encodeSet(b.Users)
		if err != nil {
			return nil, err
		}
		channels[i], from[i], to[i] = int16(b.Channel), int64(b.Users[0]), int64(b.Users[len(b.Users)-1])
		counts[i], due[i] = int32(len(b.Users)), encoded
	}
	return []any{channels, from, to, counts, due}, nil
}

// storeBatches runs an insert that is fenced by its owner's token.
func (db *DB) storeBatches(ctx context.Context, sql string, args ...any) ([]int64, error) {
	rows, err := db.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err == nil && len(ids) == 0 {
		return nil, delivery.ErrLeaseLost
	}
	return ids, translate(err)
}

// EndFiring records that every batch is stored. A stopped slot's users may
// have reserved again for the new opening while it was being cut, so there
// only its batches say whom it found.
func (s Slots) EndFiring(ctx context.Context, cut reminder.Cut, reserved [delivery.Channels]int64) error {
	return s.Templates.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update slots set state = 'sending', cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
			where id = $1 and cut_token = $2 and state = 'firing'`, cut.ID, cut.Token)
		if err != nil || tag.RowsAffected() == 0 {
			return err // somebody else ended it
		}
		_, err = tx.Exec(ctx, `
			insert into slot_results (slot_id, channel, reserved)
			select s.id, c.n - 1, case when s.stop_reason is null then c.found else
				coalesce((select sum(due_count) from batches b where b.kind = 'reminder' and b.owner_id = s.id and b.channel = c.n - 1), 0) end
			from slots s, unnest($2::bigint[]) with ordinality as c (found, n) where s.id = $1
			on conflict do nothing`, cut.ID, reserved[:])
		return err
	})
}

// DueSlots returns slots whose timer did not fire them and abandoned ones.
func (s Slots) DueSlots(ctx context.Context, grace time.Duration, limit int) ([]int64, error) {
	rows, err := s.Templates.pool.Query(ctx, `
		(select id from slots where state = 'waiting' and due_at <= clock_timestamp() - $1::interval order by due_at limit $2)
		union all
		(select id from slots where state = 'firing' and cut_lease_until < clock_timestamp() limit $2)`, grace, limit)
	if err != nil {
		return nil, translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, translate(err)
}

// Unfinished reports whether the slot still has work to do.
func (s Slots) Unfinished(ctx context.Context, slotID int64) (bool, error) {
	var open bool
	err := s.Templates.pool.QueryRow(ctx, `select exists (select from slots where id = $1 and state in ('firing', 'sending'))`, slotID).Scan(&open)
	return open, translate(err)
}

// FinishSlots finishes slots whose batches are all done and writes their
// counters. The batches are looked at once more under the slots' locks, in a
// statement that sees what a replay of dead letters committed meanwhile.
func (s Slots) FinishSlots(ctx context.Context) (int, error) {
	finished := 0
	err := s.Templates.tx(ctx, func(tx pgx.Tx) error {
		const settled = ` and not exists (select from batches b where b.kind = 'reminder' and b.owner_id = s.id and b.state <> 'done')`
		ids, err := lockIDs(ctx, tx, `select id from slots s where s.state = 'sending'`+settled+` order by id limit 100 for update skip locked`)
		if err != nil || len(ids) == 0 {
			return err
		}
		rows, err := tx.Query(ctx, `update slots s set state = 'finished', finished_at = clock_timestamp()
			where s.id = any($1)`+settled+` returning `+slotColumns, ids)
		if err != nil {
			return err
		}
		done, err := pgx.CollectRows(rows, scanSlot)
		if err != nil {
			return err
		}
		finished = len(done)
		for _, sl := range done {
			if err := finishSlot(ctx, tx, sl); err != nil {
				return err
			}
		}
		return nil
	})
	return finished, err
}

func lockIDs(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]int64, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func finishSlot(ctx context.Context, tx pgx.Tx, sl reminder.Slot) error {
	if err := recordRates(ctx, tx, sl.ID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		update slot_results r set sent = b.sent, skipped = b.skipped, expired = b.expired, dead = b.dead
		from (select channel, sum(sent_count) as sent, sum(skipped_count) as skipped, sum(expired_count) as expired, sum(dead_count) as dead
			from batches where kind = 'reminder' and owner_id = $1 group by channel) b
		where r.slot_id = $1 and r.channel = b.channel`, sl.ID)
	if err != nil {
		return err
	}
	return announce(ctx, tx, event.SlotFinished, slotEvent(sl, *sl.FinishedAt))
}
