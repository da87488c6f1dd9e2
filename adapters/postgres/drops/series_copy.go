package drops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
)

const (
	// copyLanes is how many connections of a copy store users at the same time; copyChunk is how many users one transaction stores.
	// Larger chunks are not faster, and changes of standing reservations wait for a chunk. See bench/results/series.md.
	copyLanes = 2
	copyChunk = 25_000
	// chunkTries bounds how often a chunk is tried; each time it waits for its lane for 200 ms at most.
	chunkTries = 20
)

// lockStanding returns the statement that locks lanes of a series. A chunk holds its lane exclusively, and a change of a standing
// reservation holds every lane shared. A change that began before a chunk may not have seen that the drop is published, and a
// change that commits while the chunk runs would be lost to it.
func lockStanding(shared string, seriesID int64, first, last int) string {
	return fmt.Sprintf(`select pg_advisory_xact_lock%s(hashtextextended('dropbell:series_reservations', n)) from generate_series(%d::bigint, %d::bigint) n`,
		shared, seriesID*copyLanes+int64(first), seriesID*copyLanes+int64(last))
}

// openMaskSQL returns the bits of the slots of drop $1 that have not come, 0 = none, and locks these slots as reserving does,
// so that none of them fires meanwhile. $2 are the bits of slot 1 on every channel.
const openMaskSQL = `
with locked as (
    select slot from slots where template_id = $1 and (state = 'waiting') is true and due_at > clock_timestamp() order by id for share
)
select coalesce(bit_or($2::bigint << (slot - 1)), 0) from locked`

// storedSQL are the rows that a chunk has copied: users $3 with the bits $5. insertedSQL stores them and leaves out users who
// have reserved meanwhile.
const (
	storedSQL   = `select $2::bigint as template_id, u.user_id, u.slots from unnest($3::bigint[], $5::bigint[]) u (user_id, slots)`
	insertedSQL = `insert into reservations as r (template_id, user_id, slots, standing) select template_id, user_id, slots, true from (` + storedSQL + `) u order by user_id
    on conflict (template_id, user_id) do nothing returning r.template_id, r.user_id, r.slots`
)

// announceCopied returns the statement that writes the events about the rows of stored, and counts them, for series $1 and drop $2.
// $4 is the trace of the events.
func announceCopied(stored string) string {
	return `
with stored as (` + stored + `), announced as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsChanged + `', jsonb_build_object('at', now(), 'added', jsonb_agg(jsonb_build_object(
        'template_id', template_id::text, 'bits', slots::text, 'users', users))), $4
    from (select template_id, slots, count(*) as users from stored group by 1, 2) g having count(*) > 0
)` + listStored + `
update series_drops set reminded = reminded + (select count(*) from stored) where series_id = $1 and template_id = $2`
}

// listStored writes the events that name the users of stored, for servers of shops that want them; see
// [reserveSQL]. $4 is the trace.
const listStored = `, listed as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsListed + `', jsonb_build_object('template_id', template_id::text, 'items', jsonb_agg(jsonb_build_object(
            'user_id', user_id::text, 'bits', slots::text, 'sequence', sequence::text, 'at', clock_timestamp()))), $4
    from (select template_id, user_id, slots, nextval('hook_sequence') as sequence, row_number() over () / 500 as part from stored s
        where (select true from hook_wants w where w.shop_number = (select r.shop_number from series r where r.id = $1)
            and (cardinality(w.types) = 0 or '` + string(hook.ReservationMade) + `' = any(w.types)) limit 1)) l
    group by template_id, part
)`

// Copy copies standing reservations to a drop; see [series.KeeperStore]. Each chunk of users is a transaction, so a copy that is
// repeated after a death stores the users who are left. The connection of the outer transaction is idle meanwhile: its
// lock keeps other workers from the drop, and ends with the process.
func (s Series) Copy(ctx context.Context, c series.Copy) (n int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var mine, left bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('dropbell:series_copy', $1))`, c.TemplateID).Scan(&mine); err != nil || !mine {
			return err
		}
		if err := tx.QueryRow(ctx, `select exists (select from series_drops where series_id = $1 and template_id = $2 and copied_at is null)`, c.SeriesID, c.TemplateID).Scan(&left); err != nil || !left {
			return err
		}
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil { // which takes no snapshot
			return err
		}
		chunks := &copyChunks{Series: s, of: c.SeriesID}
		group, laneCtx := errgroup.WithContext(ctx)
		for lane := range copyLanes {
			group.Go(func() error {
				for {
					from, to, err := chunks.next(laneCtx)
					if err != nil || from == to {
						return err
					}
					if err := s.copyRange(laneCtx, c, lane, from, to); err != nil {
						return err
					}
				}
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `update series_drops set copied_at = clock_timestamp() where series_id = $1 and template_id = $2 returning reminded`, c.SeriesID, c.TemplateID).Scan(&n)
	})
	return n, err
}

// copyChunks deals out the users of a series in ranges of about copyChunk.
type copyChunks struct {
	Series
	of   int64
	mu   sync.Mutex
	last int64
}

// next returns a range of users who have not been dealt out: above from, up to to. The range is empty if none are left.
func (s *copyChunks) next(ctx context.Context) (from, to int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from = s.last; from == math.MaxInt64 {
		return from, from, nil
	}
	err = s.Pool.QueryRow(ctx, `select user_id from series_reservations where series_id = $1 and user_id > $2 order by user_id offset $3 limit 1`, s.of, from, copyChunk-1).Scan(&to)
	if errors.Is(err, pgx.ErrNoRows) {
		to, err = math.MaxInt64, nil
	}
	s.last = to
	return from, to, pg.Translate(err)
}

// copyRange copies the standing reservations of a range of users. It tries again if a user of the range has reserved meanwhile, or if
// changes of standing reservations held the lane.
func (s Series) copyRange(ctx context.Context, c series.Copy, lane int, from, to int64) (err error) {
	inserting := false
	for range chunkTries {
		err = s.storeChunk(ctx, c, lane, from, to, inserting)
		reserved := pg.Violates(err, "reservations_pkey")
		if !reserved && !pg.LockTimedOut(err) {
			return err
		}
		inserting = inserting || reserved
	}
	return err
}

// storeChunk copies the standing reservations of a range of users in one transaction. Users who have reserved the drop or have
// cancelled their reservation are left out. Rows are stored by COPY, which takes a third of the time of an insert and fails if one of
// the users reserves meanwhile; with inserting they are stored by an insert, which skips this user.
func (s Series) storeChunk(ctx context.Context, c series.Copy, lane int, from, to int64, inserting bool) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// The wait for the lock is short: changes that come later queue behind it. The wait for other locks is not limited.
		if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'; `+lockStanding("", c.SeriesID, lane, lane)+`; set local lock_timeout to default`); err != nil {
			return err
		}
		var mask int64
		if err := tx.QueryRow(ctx, openMaskSQL, c.TemplateID, reminder.EveryChannel).Scan(&mask); err != nil || mask == 0 {
			return err
		}
		users, bits, err := standingRange(ctx, tx, c, mask, from, to)
		if err != nil || len(users) == 0 {
			return err
		}
		stored := insertedSQL
		if !inserting {
			stored = storedSQL
			if _, err := tx.CopyFrom(ctx, pgx.Identifier{"reservations"}, []string{"template_id", "user_id", "slots", "standing"},
				pgx.CopyFromSlice(len(users), func(i int) ([]any, error) { return []any{c.TemplateID, users[i], bits[i], true}, nil })); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, announceCopied(stored), c.SeriesID, c.TemplateID, users, pg.TraceOf(ctx), bits)
		return err
	})
}

// standingRange returns the users of a range for whom the drop is to have reminders, in order, with their bits.
func standingRange(ctx context.Context, tx pgx.Tx, c series.Copy, mask, from, to int64) (users, bits []int64, err error) {
	var id, slots int64
	without := map[int64]bool{}
	rows, err := tx.Query(ctx, `select user_id from reservations where template_id = $1 and user_id > $2 and user_id <= $3
		union all select user_id from former_reservations where template_id = $1 and user_id > $2 and user_id <= $3`, c.TemplateID, from, to)
	if err != nil {
		return nil, nil, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { without[id] = true; return nil }); err != nil {
		return nil, nil, err
	}
	rows, err = tx.Query(ctx, `select user_id, slots & $2 from series_reservations where series_id = $1 and user_id > $3 and user_id <= $4 and slots & $2 <> 0 order by user_id`,
		c.SeriesID, mask, from, to)
	if err != nil {
		return nil, nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &slots}, func() error {
		if !without[id] {
			users, bits = append(users, id), append(bits, slots)
		}
		return nil
	})
	return users, bits, err
}
