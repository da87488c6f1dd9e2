package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// partSize is the approximate number of reminders in one part. A reader holds one part in
// memory at a time, 8 bytes for each reminder. Rows lie in arrival order, so reading any part
// visits every page of the template. maxParts therefore bounds the cost of reading a huge
// template.
const (
	partSize = 2_000_000
	maxParts = 8
)

// Announced is the list, in SQL, of the kinds that [delivery.Announced] returns.
const Announced = `('correction', 'cancelled', 'waitlist', 'offer', 'won', 'lost')`

// Covered returns the ranges of the batches that the owner already has, by channel.
func Covered(ctx context.Context, db *DB, kind delivery.Kind, owner int64) (all [delivery.Channels][]delivery.Range, err error) {
	rows := Rows(ctx, db.Pool, `select channel, from_user, to_user from batches
		where kind = $1 and owner_id = $2 order by channel, from_user`, kind, owner)
	var c delivery.Channel
	var r delivery.Range
	_, err = pgx.ForEachRow(rows, []any{&c, &r.From, &r.To}, func() error {
		all[c] = append(all[c], r)
		return nil
	})
	return all, Translate(err)
}

// Divide cuts the users from first to last into ranges of equal width. The number of ranges
// follows from the expected number of users. Divide only bounds memory, so a rough division is
// enough.
func Divide(first, last, expected int64) (parts []delivery.Range) {
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

// ReadUsers reads users with the bits of their channels by bitmap scans, in the order of the
// rows. Rows lie in arrival order, so an index scan in key order would visit every page many
// times. work_mem is raised: with the default, the bitmap of a million rows keeps only page
// numbers, and every row of these pages has to be checked again.
//
// ReadUsers counts as one of the bulk reads of [DB.Bulk].
func ReadUsers(ctx context.Context, db *DB, sql string, args ...any) (reminder.Due, error) {
	due := make([]reminder.Due, 1)
	err := readUsers(ctx, db, sql, args, func(raw [][]byte) { addDue(&due[0], raw) })
	sortDue(due)
	return due[0], err
}

// ReadUsersOf is [ReadUsers] for several owners. Each row begins with the owner's index in
// due, a bigint.
func ReadUsersOf(ctx context.Context, db *DB, due []reminder.Due, sql string, args ...any) error {
	err := readUsers(ctx, db, sql, args, func(raw [][]byte) { addDue(&due[Uint64(raw[0])], raw[1:]) })
	sortDue(due)
	return err
}

func sortDue(due []reminder.Due) {
	for i := range due {
		for c := range due[i] {
			slices.Sort(due[i][c])
		}
	}
}

func readUsers(ctx context.Context, db *DB, sql string, args []any, add func(raw [][]byte)) error {
	release, err := db.Bulk(ctx)
	if err != nil {
		return err
	}
	defer release()
	return db.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local enable_indexscan = off; set local enable_indexonlyscan = off;
			set local max_parallel_workers_per_gather = 0; set local work_mem = '64MB'`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			add(rows.RawValues())
		}
		return rows.Err()
	})
}

// addDue decodes the two integers of a row from the wire format. For a million rows the
// generic scanner costs more than the query.
func addDue(due *reminder.Due, raw [][]byte) {
	id, bits := user.ID(Uint64(raw[0])), Uint64(raw[1])
	for c := range due {
		if bits>>(c*template.Slots)&1 != 0 {
			due[c] = append(due[c], id)
		}
	}
}

// KeepCut renews the lease under which the holder of token $2 cuts owner $1 into batches, for
// $3. It returns [delivery.ErrLeaseLost] if the token is no longer valid.
func KeepCut(ctx context.Context, db *DB, sql string, owner int64, token string, lasting time.Duration) error {
	tag, err := db.Pool.Exec(ctx, sql, owner, token, lasting)
	if err == nil && tag.RowsAffected() == 0 {
		return delivery.ErrLeaseLost
	}
	return Translate(err)
}

// BatchArgs returns parameter arrays with one element for each new batch: channel, first and
// last user, number of users, and encoded set of users.
func BatchArgs(bs []reminder.NewBatch) (pgx.StrictNamedArgs, error) {
	n := len(bs)
	channels, from, to, counts, due := make([]int16, n), make([]int64, n), make([]int64, n), make([]int32, n), make([][]byte, n)
	for i, b := range bs {
		encoded, err := EncodeSet(b.Users)
		if err != nil {
			return nil, err
		}
		channels[i], from[i], to[i] = int16(b.Channel), int64(b.Users[0]), int64(b.Users[len(b.Users)-1])
		counts[i], due[i] = int32(len(b.Users)), encoded
	}
	return pgx.StrictNamedArgs{"channels": channels, "from_users": from, "to_users": to, "due_counts": counts, "dues": due}, nil
}

// StoreBatches runs an insert that is fenced by the owner's token and returns the ids of the
// new batches. It returns [delivery.ErrLeaseLost] if the insert stored nothing.
func StoreBatches(ctx context.Context, db *DB, sql string, args pgx.StrictNamedArgs) (ids []int64, err error) {
	err = StoreBatchesOf(ctx, db, sql, args, func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err == nil && len(ids) == 0 {
		return nil, delivery.ErrLeaseLost
	}
	return ids, err
}

// StoreBatchesOf runs an insert of the batches of several owners, each fenced by its own
// token. read reads the rows that the insert returns.
func StoreBatchesOf(ctx context.Context, db *DB, sql string, args pgx.StrictNamedArgs, read func(pgx.Rows) error) error {
	return Translate(killpoint.Around("batches.store", func() error {
		rows, err := db.Pool.Query(ctx, sql, args)
		if err != nil {
			return err
		}
		return read(rows)
	}))
}

// A BatchOwner is the owner of batches, for example a slot.
type BatchOwner struct {
	Kind delivery.Kind
	ID   int64
}

// BatchOwners returns the owners of one kind with the ids.
func BatchOwners(kind delivery.Kind, ids []int64) []BatchOwner {
	list := make([]BatchOwner, len(ids))
	for i, id := range ids {
		list[i] = BatchOwner{kind, id}
	}
	return list
}

// StopBatches makes the workers skip all recipients of these owners' batches that are still
// open.
func StopBatches(ctx context.Context, tx pgx.Tx, owners []BatchOwner, reason string) error {
	kinds, ids := make([]string, len(owners)), make([]int64, len(owners))
	for i, o := range owners {
		kinds[i], ids[i] = string(o.Kind), o.ID
	}
	_, err := tx.Exec(ctx, `
		with mine as (
			select b.id from unnest($1::text[], $2::bigint[]) as o (kind, id) join batches b on b.kind = o.kind and b.owner_id = o.id
			where b.state <> 'done' order by b.id for update of b
		)
		update batches set stop_reason = $3, next_run_at = least(next_run_at, now()) where id in (select id from mine)`, kinds, ids, reason)
	return err
}

// BatchesInOrder locks the selected batches by ascending id, the order in which checkpoints
// and [StopBatches] lock batches too. With one order, two transactions that lock the same rows
// cannot deadlock. For the same reason a transaction uses BatchesInOrder only once.
const BatchesInOrder = ` order by id for update`

// AnnouncementPriority puts announcements behind reminders.
const AnnouncementPriority = 5

// LatenessSeconds are the bounds in the unit of width_bucket.
func LatenessSeconds() []float64 {
	bounds := delivery.LatenessBounds()
	seconds := make([]float64, len(bounds))
	for i, b := range bounds {
		seconds[i] = b.Seconds()
	}
	return seconds
}
