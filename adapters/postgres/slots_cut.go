package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// partSize is about how many reminders one part has: what a reader holds in
// memory at once, 8 bytes each. Rows lie in arrival order, so every part
// visits every page of the template: more than maxParts of them would make the
// reading of a huge template dearer with every reservation.
const (
	partSize = 2_000_000
	maxParts = 8
)

// prepare finds what is covered already and divides the template's users.
func (s Slots) prepare(ctx context.Context, cut *reminder.Cut) (err error) {
	if cut.Covered, err = s.Templates.covered(ctx, delivery.KindReminder, cut.ID); err != nil {
		return err
	}
	var first, last, booked int64
	err = s.Templates.pool.QueryRow(ctx, `select (select remind_once from templates where id = $1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id desc limit 1), 0),
		coalesce((select sum(booked) from bookings where template_id = $1 and slot = $2), 0)`,
		cut.TemplateID, cut.Slot.Slot).Scan(&cut.RemindOnce, &first, &last, &booked)
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
	n := min(1+expected/partSize, maxParts)
	if n == 1 && expected > partSize/20 {
		n = 2 // one for each reader
	}
	width := (last-first)/n + 1
	for from := first; from <= last && from >= first; from += width {
		parts = append(parts, delivery.Range{From: user.ID(from), To: user.ID(min(last, from+width-1))})
	}
	return parts
}

// ReadDue reads who is due in the part; see [reminder.FiringStore].
func (s Slots) ReadDue(ctx context.Context, cut reminder.Cut, part delivery.Range) (reminder.Due, error) {
	// The twelve bits between two channels are squeezed out by the client.
	due, err := s.Templates.readUsers(ctx, `select user_id, (slots >> $2::int) & $3 from reservations
		where template_id = $1 and user_id between $4 and $5 and slots & ($3::bigint << $2::int) <> 0`,
		cut.TemplateID, int64(cut.Slot.Slot)-1, reminder.EveryChannel, part.From, part.To)
	if err != nil || cut.Round == 0 && !cut.RemindOnce {
		return due, err
	}
	return due, s.Templates.leaveOut(ctx, cut.ID, part, &due)
}

// leaveOut removes from due the users that the slots of [sentBefore] have dealt
// with. Of an earlier round these are all users in batches that went to their
// end, whose dead letters can still be replayed; of batches that a move
// stopped, and of another opening's, only the users who were reached.
func (db *DB) leaveOut(ctx context.Context, slotID int64, part delivery.Range, due *reminder.Due) error {
	rows, err := db.pool.Query(ctx, `select b.channel, case when b.stop_reason is null and o.opens_at = s.opens_at then b.due else b.sent end
		from slots s join slots o on `+sentBefore+` join batches b on b.kind = 'reminder' and b.owner_id = o.id
		where s.id = $1 and b.from_user <= $3 and b.to_user >= $2`, slotID, part.From, part.To)
	if err != nil {
		return translate(err)
	}
	var dealtWith [delivery.Channels]roaring64.Bitmap
	var c delivery.Channel
	var stored []byte
	if _, err := pgx.ForEachRow(rows, []any{&c, &stored}, func() error {
		set, err := decodeSet(stored)
		if err == nil {
			dealtWith[c].Or(set)
		}
		return err
	}); err != nil {
		return translate(err)
	}
	for c := range due {
		due[c] = slices.DeleteFunc(due[c], func(id user.ID) bool { return dealtWith[c].Contains(uint64(id)) })
	}
	return nil
}

// readUsers reads users with the bits of their channels in the order of the
// rows, not of the key: rows lie in arrival order, and walking the key would
// visit every page many times. A bitmap of a million rows needs more memory
// than the default, or names pages instead of rows and looks at each again.
func (db *DB) readUsers(ctx context.Context, sql string, args ...any) (reminder.Due, error) {
	var due reminder.Due
	err := db.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local enable_indexscan = off; set local enable_indexonlyscan = off;
			set local max_parallel_workers_per_gather = 0; set local work_mem = '64MB'`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
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
			where id = $1 and cut_token = $2 and state = 'firing' returning id, template_id, due_at - round * interval '1 microsecond' as due_at, planned_at, opens_at, stop_reason
		)
		insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, planned_at,
			worthless_after, stop_reason, next_run_at)
		select 'reminder', m.id, m.template_id, b.channel, b.from_user, b.to_user, b.n, b.due, m.due_at, m.planned_at, m.opens_at, m.stop_reason, clock_timestamp()
		from mine m, unnest($3::smallint[], $4::bigint[], $5::bigint[], $6::int[], $7::bytea[])
			with ordinality as b (channel, from_user, to_user, n, due, i)
		order by b.i
		returning id`, append([]any{cut.ID, cut.Token}, columns...)...)
}

// KeepFiring renews the right to cut; see [reminder.FiringStore].
func (s Slots) KeepFiring(ctx context.Context, cut reminder.Cut, lasting time.Duration) error {
	return s.Templates.keepCut(ctx, `update slots set cut_lease_until = clock_timestamp() + $3::interval
		where id = $1 and cut_token = $2 and state = 'firing'`, cut.ID, cut.Token, lasting)
}

// keepCut renews the right to cut owner $1 that token $2 stands for by $3.
func (db *DB) keepCut(ctx context.Context, sql string, owner int64, token string, lasting time.Duration) error {
	tag, err := db.pool.Exec(ctx, sql, owner, token, lasting)
	if err == nil && tag.RowsAffected() == 0 {
		return delivery.ErrLeaseLost
	}
	return translate(err)
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
	var ids []int64
	err := killpoint.Around("batches.store", func() error {
		rows, err := db.pool.Query(ctx, sql, args...)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		return err
	})
	if err == nil && len(ids) == 0 {
		return nil, delivery.ErrLeaseLost
	}
	return ids, translate(err)
}
