package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// optOuts finds the recipients of sparse batches who have opted out of a channel. Looking up
// an id in the index costs one to three microseconds. Once lookups have cost as much as
// reading all users who have opted out of the channel, these users are read and remembered for
// a while. Each answer then reads only the users whose opt-outs have changed since, so the
// answer is as new as a lookup.
type optOuts struct {
	db       *pg.DB
	channels [delivery.Channels]channelOptOuts
	// life ends with close and ends every reading of users.
	life    context.Context
	end     context.CancelFunc
	mu      sync.Mutex // of ended, and before reading.Go
	ended   bool
	reading sync.WaitGroup

	// history is SQL that names the server's transaction history.
	history string
	// few is the minimum number of ids that are looked up before all users are read.
	few int64
	// lasting is how long users are remembered.
	lasting time.Duration
	// most is the number of changes above which remembered users are no longer used: each
	// answer has to read all changes.
	most int64
	// slow is how long reading the changes may take while users are remembered.
	slow time.Duration
	// patience is how long an answer waits for the changes before it looks up the ids instead.
	patience time.Duration
}

func newOptOuts(db *pg.DB) *optOuts {
	life, end := context.WithCancel(context.Background())
	return &optOuts{db: db, life: life, end: end, history: historySQL, few: 10_000, lasting: time.Minute, most: 1000, slow: time.Second / 5, patience: time.Second}
}

// close ends the reading of users.
func (o *optOuts) close() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.end()
	o.reading.Wait()
}

type channelOptOuts struct {
	known atomic.Pointer[knownOptOuts] // nil = none
	// asked counts the ids that were looked up since users were last read. enough is the
	// number of lookups that justifies reading all users, as far as it is known.
	asked, enough atomic.Int64
	busy          atomic.Bool // users are being read
	// rest is the time until which no users are read, in nanoseconds since 1970.
	rest atomic.Int64
}

// knownOptOuts are the ascending ids of the users who had opted out of a channel at the time
// of the reading. since is the horizon after which changes must be read. knownOptOuts are
// immutable.
type knownOptOuts struct {
	users []int64
	since horizon
	end   *time.Timer
}

// A horizon is a state of the database in which all transactions numbered below before have
// ended. The history is part of the horizon, because transaction numbers can be reused: after
// a failover to a standby that lacks some transactions, and after a crash that lost the
// newest transactions.
type horizon struct {
	before  string // the first transaction that had not ended
	history string
	at      time.Time // by the database's clock
}

// historySQL distinguishes a server's history from other histories. It consists of the
// timeline of the write-ahead log, which a promotion changes; the last checkpoint, because
// recovery from a crash ends with a checkpoint; and the start time of the postmaster.
const historySQL = `(select substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || ' ' || checkpoint_lsn || ' ' || extract(epoch from pg_postmaster_start_time()) from pg_control_checkpoint())`

// tableSQL names the stored table, so that a table that was truncated or restored has another
// name.
const tableSQL = ` || ' ' || (select oid from pg_database where datname = current_database()) || ' ' || pg_relation_filenode('users')`

// horizonSQL returns the horizon, the approximate number of users who have opted out of any
// channel, and the number of changes that are not before the horizon, at most $1.
func (o *optOuts) horizonSQL() string {
	return `
with here as (select pg_snapshot_xmin(pg_current_snapshot()) as before)
select before::text, ` + o.history + tableSQL + `, clock_timestamp(),
    coalesce((select reltuples::bigint from pg_class where oid = to_regclass('users_opt_outs')), 0),
    (select count(*) from (select from opt_out_changes
        where changed >= before and changed < pg_snapshot_xmax(pg_current_snapshot()) limit $1) c)
from here`
}

// changedSQL returns
//   - whether users who were read at the horizon $1, $2, $3 can be used: the history is the same, the
//     horizon is no older than $4, and at most $6 changes were made since;
//   - the users who have changed since;
//   - the users among them who have opted out of channel $5.
//
// Changes with transaction numbers that this server has not reached yet are left out: they
// come from the server of which the rows are a restored copy.
func (o *optOuts) changedSQL() string {
	return `
with changed as materialized (
    select user_id from opt_out_changes where changed >= $1::text::xid8 and changed < pg_snapshot_xmax(pg_current_snapshot()) limit $6::bigint + 1
), usable as (
    select ` + o.history + tableSQL + ` = $2 and clock_timestamp() < $3::timestamptz + $4 and count(*) <= $6::bigint as yes from changed
)
select yes, case when yes then array(select user_id from changed) end,
    case when yes then array(select id from users where opt_outs <> 0 and id = any(array(select user_id from changed)) and opt_outs & (1 << $5::int) <> 0) end
from usable`
}

// optOutsSQL returns the users among $1 who have opted out of channel $2.
const optOutsSQL = `select id from users where opt_outs <> 0 and id = any($1) and opt_outs & (1 << $2::int) <> 0`

// allOptOutsSQL returns the first $3 users after $2 who have opted out of channel $1.
const allOptOutsSQL = `select array(select id from users where opt_outs <> 0 and opt_outs & (1 << $1::int) <> 0 and id > $2 order by id limit $3)`

const (
	// optOutsPage is the number of users that one statement reads.
	optOutsPage = 100_000
	// lookupCost is the number of users that can be read in the time of one id lookup.
	lookupCost = 16
	// readingFor is how long reading all users may take.
	readingFor = 30 * time.Second
	// optOutsMost is the maximum number of remembered users of a channel, of eight bytes each.
	// With more opted-out users none are remembered.
	optOutsMost = 10_000_000
)

// load sets the opted-out recipients of leases whose own statement did not read them. It looks
// up the ids of all these leases together. Between the first and the last id of a small drop's
// batch may lie a large part of all users. Reading all opted-out users in between took over a
// minute for 200 drops of 2,000 users among 4 million.
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

// among returns the users among ids who have opted out of the channel. It sorts ids.
func (o *optOuts) among(ctx context.Context, c delivery.Channel, ids []user.ID) (map[user.ID]bool, error) {
	slices.Sort(ids) // PostgreSQL would, for longer
	of := &o.channels[c]
	if known := of.known.Load(); known != nil {
		if found := o.amongKnown(ctx, c, known, ids); found != nil {
			return found, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, pg.Translate(err)
		}
		of.forget(known)
	}
	found := make(map[user.ID]bool, len(ids)/16)
	if err := o.db.PlannedOnce(ctx, optOutsSQL, []any{ids, c}, func(rows pgx.Rows) error {
		for rows.Next() {
			found[user.ID(pg.Uint64(rows.RawValues()[0]))] = true
		}
		return rows.Err()
	}); err != nil {
		return nil, pg.Translate(err)
	}
	if of.asked.Add(int64(len(ids))) >= max(o.few, of.enough.Load()) && of.known.Load() == nil && time.Now().UnixNano() > of.rest.Load() {
		o.begin(c)
	}
	return found, nil
}

// begin reads the users of the channel in the background. The present answer does not wait for
// them, because the answer belongs to leases that expire. Until the users are remembered, ids
// are looked up.
func (o *optOuts) begin(c delivery.Channel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := &o.channels[c]
	if o.ended || !of.busy.CompareAndSwap(false, true) {
		return
	}
	o.reading.Go(func() {
		defer of.busy.Store(false)
		ctx, cancel := context.WithTimeout(o.life, readingFor)
		defer cancel()
		_ = o.read(ctx, c)
	})
}

// amongKnown returns the users among the sorted ids who have opted out. It returns nil if the
// remembered users cannot be used; the ids must then be looked up.
func (o *optOuts) amongKnown(ctx context.Context, c delivery.Channel, known *knownOptOuts, ids []user.ID) map[user.ID]bool {
	var usable bool
	var changed, out []int64
	args := []any{known.since.before, known.since.history, known.since.at, 2 * o.lasting, c, o.most}
	start := time.Now()
	asking, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	err := o.db.PlannedOnce(asking, o.changedSQL(), args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&usable, &changed, &out}, func() error { return nil })
		return err
	})
	if o.rests(c, start) {
		o.channels[c].forget(known)
	}
	if err != nil || !usable {
		return nil
	}
	found := make(map[user.ID]bool, len(ids)/16)
	left := known.users
	for _, id := range ids {
		at, is := slices.BinarySearch(left, int64(id))
		if is {
			found[id] = true
		}
		left = left[at:]
	}
	for _, id := range changed {
		delete(found, user.ID(id))
	}
	for _, id := range out {
		if _, is := slices.BinarySearch(ids, user.ID(id)); is {
			found[user.ID(id)] = true
		}
	}
	return found
}

// rests reports whether reading the changes, begun at start, took too long. This happens while
// a statement changes a million users, whose rows each answer would visit. Users are then not
// read for a while.
func (o *optOuts) rests(c delivery.Channel, start time.Time) bool {
	if time.Since(start) <= o.slow {
		return false
	}
	o.channels[c].rest.Store(time.Now().Add(o.lasting).UnixNano())
	return true
}

// read reads and remembers all users who have opted out of the channel, if lookups have cost
// as much as this reading.
func (o *optOuts) read(ctx context.Context, c delivery.Channel) error {
	of := &o.channels[c]
	known := &knownOptOuts{}
	var about, changes int64
	start := time.Now()
	if err := o.db.Pool.QueryRow(ctx, o.horizonSQL(), o.most).Scan(&known.since.before, &known.since.history, &known.since.at, &about, &changes); err != nil {
		of.asked.Store(0)
		return pg.Translate(err)
	}
	of.enough.Store(about / lookupCost)
	if of.asked.Load() < of.enough.Load() {
		return nil
	}
	of.asked.Store(0)
	if changes > o.most/2 || about > optOutsMost || o.rests(c, start) { // many changes: as while a transaction has been open for long
		return nil
	}
	known.users = make([]int64, 0, max(about, 0))
	// The pages need no common snapshot: users who changed since the horizon are read again by
	// every answer.
	for last, more := int64(0), true; more; {
		var page []int64
		if err := o.db.PlannedOnce(ctx, allOptOutsSQL, []any{c, last, optOutsPage}, func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&page}, func() error { return nil })
			return err
		}); err != nil {
			return pg.Translate(err)
		}
		if known.users = append(known.users, page...); len(known.users) > optOutsMost {
			return nil
		}
		if more = len(page) == optOutsPage; more {
			last = page[len(page)-1]
		}
	}
	if 2*len(known.users) < cap(known.users) { // about counts the users of all channels
		known.users = slices.Clone(known.users)
	}
	known.end = time.AfterFunc(o.lasting, func() { of.known.CompareAndSwap(known, nil) })
	if !of.known.CompareAndSwap(nil, known) {
		known.end.Stop()
	}
	return nil
}

// forget drops the remembered users unless other users have replaced them.
func (of *channelOptOuts) forget(known *knownOptOuts) {
	known.end.Stop()
	of.known.CompareAndSwap(known, nil)
}
