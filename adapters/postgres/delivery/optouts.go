package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// optOuts answers which of the recipients of sparse batches have opted out of a channel. An
// id that is looked up in the index costs one to three microseconds. Once lookups have cost
// as much as reading all users who have opted out of the channel, these are kept for a
// while, and each answer asks only for the users whose opt-outs have changed since: it is
// as new as if the ids had been looked up.
type optOuts struct {
	db       *pg.DB
	channels [delivery.Channels]channelOptOuts
	// few is how many ids are looked up at least before users are kept.
	few int64
	// lasting is how long they are kept.
	lasting time.Duration
}

func newOptOuts(db *pg.DB) *optOuts {
	return &optOuts{db: db, few: 10_000, lasting: time.Minute}
}

type channelOptOuts struct {
	kept atomic.Pointer[keptOptOuts] // nil = none
	// asked counts the ids that were looked up since users were last read; enough is at how
	// many of them reading all is worth it, as far as known.
	asked, enough atomic.Int64
	reading       sync.Mutex
}

// keptOptOuts are the users who had opted out of a channel when they were read, and since
// when changes are to be asked for. They are not changed.
type keptOptOuts struct {
	users *roaring64.Bitmap
	since horizon
}

// A horizon is a state of the database, in which all transactions before one have ended.
// The server is part of it: after a failover to a standby that lacks some of them, and
// after a crash that lost the newest ones, their numbers are given again.
type horizon struct {
	before string // the first transaction that had not ended
	server string
	at     time.Time // by the database's clock
}

// serverSQL tells a server's history from others: by the timeline of its write-ahead log,
// which a promotion changes, and its last checkpoint, as recovery from a crash ends with one.
const serverSQL = `(select substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || ' ' || checkpoint_lsn from pg_control_checkpoint())`

// horizonSQL returns the horizon and about how many users have opted out of something.
const horizonSQL = `select pg_snapshot_xmin(pg_current_snapshot())::text, ` + serverSQL + `, clock_timestamp(),
    coalesce((select reltuples::bigint from pg_class where oid = to_regclass('users_opt_outs')), 0)`

// changedSQL returns whether users who were kept at the horizon $1, $2, $3 are of use, which
// they are for $4 and while up to $6 users have changed, and of these all, and those who have
// opted out of channel $5 now. A change without a user is one of any number of users.
const changedSQL = `
with changed as (
    select user_id from opt_out_changes where changed >= $1::text::xid8 limit $6::int + 1
), usable as (
    select ` + serverSQL + ` = $2 and clock_timestamp() < $3::timestamptz + $4 and count(*) <= $6::int and count(*) = count(user_id) as yes from changed
)
select yes, case when yes then array(select user_id from changed) end,
    case when yes then array(select id from users where opt_outs <> 0 and id = any(array(select user_id from changed)) and opt_outs & (1 << $5::int) <> 0) end
from usable`

// mostChanges is up to how many changes kept users are of use: each answer reads them.
const mostChanges = 1000

// optOutsSQL returns those of the users $1 who have opted out of channel $2.
const optOutsSQL = `select id from users where opt_outs <> 0 and id = any($1) and opt_outs & (1 << $2::int) <> 0`

// allOptOutsSQL returns the first $3 users behind $2 who have opted out of channel $1.
const allOptOutsSQL = `select array(select id from users where opt_outs <> 0 and opt_outs & (1 << $1::int) <> 0 and id > $2 order by id limit $3)`

const (
	// optOutsPage is how many users are read by one statement.
	optOutsPage = 100_000
	// lookupCost is how many users are read in the time in which one id is looked up.
	lookupCost = 16
)

// load sets, for those of the leases whose statement did not, which of their recipients have
// opted out: by the ids, once for all leases. Between the first and the last id of a batch
// of a small drop may lie a large part of all users: reading all opted-out users in between
// made 200 drops of 2,000 users among 4 million take over a minute.
func (o *optOuts) load(ctx context.Context, c delivery.Channel, leases []*lease) error {
	var ids []user.ID
	for _, l := range leases {
		if l.askOptOuts {
			ids = append(ids, l.batch.Left...)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := o.among(ctx, c, ids)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if !l.askOptOuts {
			continue
		}
		for _, id := range l.batch.Left {
			if found[id] {
				l.batch.OptedOut[id] = true
			}
		}
		l.askOptOuts = false
	}
	return nil
}

// among returns those of the users who have opted out of the channel. It sorts ids.
func (o *optOuts) among(ctx context.Context, c delivery.Channel, ids []user.ID) (map[user.ID]bool, error) {
	of := &o.channels[c]
	if kept := of.kept.Load(); kept != nil {
		found, err := o.amongKept(ctx, c, kept, ids)
		if found != nil {
			return found, nil
		}
		of.drop(kept)
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids) // PostgreSQL would, for longer
	found := make(map[user.ID]bool, len(ids)/16)
	if err := o.db.PlannedOnce(ctx, optOutsSQL, []any{ids, c}, func(rows pgx.Rows) error {
		for rows.Next() {
			found[user.ID(pg.Uint64(rows.RawValues()[0]))] = true
		}
		return rows.Err()
	}); err != nil {
		return nil, pg.Translate(err)
	}
	if of.asked.Add(int64(len(ids))) >= max(o.few, of.enough.Load()) && of.reading.TryLock() {
		// If it fails, ids are looked up as before.
		_ = o.keep(ctx, c)
		of.reading.Unlock()
	}
	return found, nil
}

// amongKept returns those of ids who have opted out, or nil if the kept users are of no use.
func (o *optOuts) amongKept(ctx context.Context, c delivery.Channel, kept *keptOptOuts, ids []user.ID) (found map[user.ID]bool, err error) {
	var usable bool
	var changed, out []int64
	args := []any{kept.since.before, kept.since.server, kept.since.at, 2 * o.lasting, c, mostChanges}
	if err := o.db.PlannedOnce(ctx, changedSQL, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&usable, &changed, &out}, func() error { return nil })
		return err
	}); err != nil || !usable {
		return nil, pg.Translate(err)
	}
	found = make(map[user.ID]bool, len(ids)/16)
	for _, id := range ids {
		if kept.users.Contains(uint64(id)) {
			found[id] = true
		}
	}
	for _, id := range changed {
		delete(found, user.ID(id))
	}
	for _, id := range out {
		found[user.ID(id)] = true
	}
	return found, nil
}

// keep reads all users who have opted out of the channel, once looking up ids has come to
// cost as much.
func (o *optOuts) keep(ctx context.Context, c delivery.Channel) error {
	of := &o.channels[c]
	if of.kept.Load() != nil {
		return nil
	}
	kept := &keptOptOuts{users: roaring64.New()}
	var known int64
	if err := o.db.Pool.QueryRow(ctx, horizonSQL).Scan(&kept.since.before, &kept.since.server, &kept.since.at, &known); err != nil {
		return pg.Translate(err)
	}
	of.enough.Store(known / lookupCost)
	if of.asked.Load() < of.enough.Load() {
		return nil
	}
	of.asked.Store(0)
	// Not in one snapshot: users who changed since the horizon are asked for anyway.
	for last, more := int64(0), true; more; {
		var page []int64
		if err := o.db.PlannedOnce(ctx, allOptOutsSQL, []any{c, last, optOutsPage}, func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&page}, func() error { return nil })
			return err
		}); err != nil {
			return pg.Translate(err)
		}
		ids := make([]uint64, len(page))
		for i, id := range page {
			ids[i], last = uint64(id), id
		}
		kept.users.AddMany(ids)
		more = len(page) == optOutsPage
	}
	of.kept.Store(kept)
	time.AfterFunc(o.lasting, func() { of.drop(kept) })
	return nil
}

// drop frees the users unless others have taken their place.
func (of *channelOptOuts) drop(kept *keptOptOuts) { of.kept.CompareAndSwap(kept, nil) }
