// Package inbox measures one page of an inbox. There are two hundred campaigns in the app; the
// batches of each reached 40 % of the users, scattered over their range. Measured are the cost
// in PostgreSQL and in the program, the number of statements and the number of rows that they
// read, for three readers. The daily reader has read all messages except the newest five. The
// second reader has never read any of two hundred messages. The third reader was reached by no
// campaign, although every campaign has a batch whose range includes this user.
//
//	go tool task bench:inbox -- -seconds 3 -runs 3
package inbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

const (
	campaigns = 200
	batchSize = 1000 // recipients of a batch
	spacing   = 2500 // ids in its range
	pageSize  = 20
	readers   = 8
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	batches := f.Int("batches", 500, "batches of each campaign; five million users have 2,000")
	lasting, runs := f.Lasting(3), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *batches, *lasting, *runs) })
}

// A reader is one kind of user: the ids are as far from the beginning of a batch.
type reader struct {
	name string
	at   int64
}

const (
	daily    = 10 // reached by all campaigns, and has read most
	newcomer = 20 // reached by all, and has read nothing
	stranger = 30 // reached by none
)

func bench(ctx context.Context, s *stack.Stack, batches int, lasting time.Duration, runs int) error {
	if err := fill(ctx, s, batches); err != nil {
		return err
	}
	fmt.Printf("%d campaigns of %d batches; pages of %d\n", campaigns, batches, pageSize)
	fmt.Printf("%-10s %9s %9s %9s %12s %12s %12s %9s %8s\n", "reader", "pages/s", "p50", "p99", "PostgreSQL", "program", "statements", "rows", "unread")
	for range runs {
		for _, r := range []reader{{"daily", daily}, {"newcomer", newcomer}, {"stranger", stranger}} {
			if err := measure(ctx, s, r, batches, lasting); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill stores the campaigns, which ended an hour apart, and their batches.
func fill(ctx context.Context, s *stack.Stack, batches int) error {
	random := rand.New(rand.NewPCG(1, 2))
	var from []int64
	var sets [][]byte
	for b := range int64(batches) {
		set := roaring64.BitmapOf(uint64(b*spacing+daily), uint64(b*spacing+newcomer))
		for set.GetCardinality() < batchSize {
			if at := random.Int64N(spacing); at != stranger {
				set.Add(uint64(b*spacing + at))
			}
		}
		raw, err := set.ToBytes()
		if err != nil {
			return err
		}
		from, sets = append(from, b*spacing), append(sets, raw)
	}
	_, err := s.SQL.Exec(ctx, `
		with ids as (
			insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by, started_at, ended_at, settled_at)
			select 'Campaign ' || n, 0, $4, '{}', now() - n * interval '1 hour', now() + interval '1 day', 'finished', 'ann', 'ann',
				now() - n * interval '1 hour', now() - n * interval '59 minutes', now() - n * interval '59 minutes'
			from generate_series(1, $1::int) n order by n desc returning id, settled_at
		)
		insert into batches (kind, owner_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, finished_at)
		select 'campaign', ids.id, 0, b.from_user, b.from_user + $5, 'done', ids.settled_at, ids.settled_at, b.set, b.set, $6, $6, ids.settled_at
		from ids, unnest($2::bigint[], $3::bytea[]) as b (from_user, set)`,
		campaigns, from, sets, stack.Wording("Everything is 20 % off this week. "+fmt.Sprint(random.Perm(60))), spacing-1, batchSize)
	if err != nil {
		return err
	}
	_, err = s.SQL.Exec(ctx, `insert into inbox_reads (user_id, read_through) select b * $2::bigint + $3, now() - interval '5 hours' from generate_series(0, $1::bigint - 1) b`,
		batches, spacing, daily)
	if err == nil {
		_, err = s.SQL.Exec(ctx, `vacuum analyze`)
	}
	return err
}

// counted are sums since the start of the server and the program.
type counted struct {
	database, program  time.Duration
	transactions, rows int64
}

func count(ctx context.Context, s *stack.Stack) (c counted, err error) {
	if c.database, err = s.PostgresCPU(ctx); err != nil {
		return c, err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return c, err
	}
	c.program = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	err = s.SQL.QueryRow(ctx, `select xact_commit, tup_fetched from pg_stat_database where datname = current_database()`).Scan(&c.transactions, &c.rows)
	return c, err
}

func measure(ctx context.Context, s *stack.Stack, r reader, batches int, lasting time.Duration) error {
	box := deliverydb.NewInbox(s.DB, postgres.Grouping{})
	defer box.Close()
	before, err := count(ctx, s)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	var last inbox.Page
	var failed error
	for i := range readers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			var mine []time.Duration
			var page inbox.Page
			var err error
			for end := time.Now().Add(lasting); time.Now().Before(end) && err == nil; {
				began := time.Now()
				page, err = box.Page(ctx, user.ID(random.Int64N(int64(batches))*spacing+r.at), time.Time{}, pageSize)
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			took, last = append(took, mine...), page
			if err != nil {
				failed = err
			}
		})
	}
	all.Wait()
	if failed != nil {
		return failed
	}
	s.DB.Pool.Reset()                  // a server process reports what it has counted when it ends
	time.Sleep(500 * time.Millisecond) // until all have ended
	after, err := count(ctx, s)
	if err != nil {
		return err
	}
	if want := pageSize; r.at == stranger && len(last.Items) != 0 || r.at != stranger && len(last.Items) != want {
		return fmt.Errorf("%s: a page of %d messages", r.name, len(last.Items))
	}
	slices.Sort(took)
	n := float64(len(took))
	each := func(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d.Microseconds())/n) }
	fmt.Printf("%-10s %9.0f %9s %9s %12s %12s %12.1f %9.0f %8d\n", r.name, n/lasting.Seconds(), took[len(took)/2].Round(10*time.Microsecond),
		took[len(took)*99/100].Round(10*time.Microsecond), each(after.database-before.database), each(after.program-before.program),
		float64(after.transactions-before.transactions)/n, float64(after.rows-before.rows)/n, last.Unread)
	return nil
}
