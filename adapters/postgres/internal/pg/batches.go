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

// partSize is about how many reminders one part has. A reader holds one part in memory
// at once, 8 bytes each. Rows lie in arrival order, so every part visits every page of
// the template: more than maxParts of them would make the reading of a huge template
// dearer with every reservation.
const (
	partSize = 2_000_000
	maxParts = 8
)

// Covered returns the ranges of the batches that an owner has already.
func Covered(ctx context.Context, db *DB, kind delivery.Kind, owner int64) (all [delivery.Channels][]delivery.Range, err error) {
	rows, err := db.Pool.Query(ctx, `select channel, from_user, to_user from batches
		where kind = $1 and owner_id = $2 order by channel, from_user`, kind, owner)
	if err != nil {
		return all, Translate(err)
	}
	var c delivery.Channel
	var r delivery.Range
	_, err = pgx.ForEachRow(rows, []any{&c, &r.From, &r.To}, func() error {
		all[c] = append(all[c], r)
		return nil
	})
	return all, Translate(err)
}

// Divide cuts the users from first to last into ranges. It only bounds
// memory, so a rough division will do: equal widths, as many as the expected
// number of users suggests.
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

// ReadUsers reads users with the bits of their channels in the order of the
// rows, not of the key: rows lie in arrival order, and walking the key would
// visit every page many times. A bitmap of a million rows needs more memory
// than the default, or names pages instead of rows and looks at each again.
//
// It is one of the reads of [DB.Bulk].
func ReadUsers(ctx context.Context, db *DB, sql string, args ...any) (reminder.Due, error) {
	due := make([]reminder.Due, 1)
	err := readUsers(ctx, db, sql, args, func(raw [][]byte) { addDue(&due[0], raw) })
	sortDue(due)
	return due[0], err
}

// ReadUsersOf is ReadUsers for several owners of due: each row begins with the
// index of its owner, a bigint.
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

// addDue takes the two integers of a row straight from the wire: at a million
// rows the generic scanner costs more than the query.
func addDue(due *reminder.Due, raw [][]byte) {
	id, bits := user.ID(Uint64(raw[0])), Uint64(raw[1])
	for c := range due {
		if bits>>(c*template.Slots)&1 != 0 {
			due[c] = append(due[c], id)
		}
	}
}

// KeepCut renews the right to cut owner $1 that token $2 stands for by $3.
func KeepCut(ctx context.Context, db *DB, sql string, owner int64, token string, lasting time.Duration) error {
	tag, err := db.Pool.Exec(ctx, sql, owner, token, lasting)
	if err == nil && tag.RowsAffected() == 0 {
		return delivery.ErrLeaseLost
	}
	return Translate(err)
}

// BatchArgs are parameters with an element per new batch: its channel, its
// first and last user, the number of users, and the encoded set of them.
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

// StoreBatches runs an insert that is fenced by its owner's token and returns
// the ids.
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

// StoreBatchesOf runs an insert of the batches of several owners, each fenced by
// its token, and lets read read what it returns.
func StoreBatchesOf(ctx context.Context, db *DB, sql string, args pgx.StrictNamedArgs, read func(pgx.Rows) error) error {
	return Translate(killpoint.Around("batches.store", func() error {
		rows, err := db.Pool.Query(ctx, sql, args)
		if err != nil {
			return err
		}
		return read(rows)
	}))
}

// A BatchOwner is what batches belong to.
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

// StopBatches makes the workers on these owners' batches skip the rest.
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

// BatchesInOrder locks selected batches in the order in which checkpoints lock them,
// as [StopBatches] does: two transactions that need many of the same rows must
// not meet halfway. For the same reason a transaction does so once.
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
