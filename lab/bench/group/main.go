// Group measures group commit without HTTP: reservations per second from many
// callers, against the bare grouped upsert and against one statement each.
//
//	go -C lab run ./bench/group
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

func main() {
	callers := flag.Int("callers", 1024, "concurrent callers")
	seconds := flag.Int("seconds", 5, "seconds per measurement")
	runs := flag.Int("runs", 3, "repetitions")
	flag.Parse()
	if err := bench(context.Background(), *callers, time.Duration(*seconds)*time.Second, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, callers int, lasting time.Duration, runs int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	fmt.Println(stack.Machine(ctx, s))
	var ratios []float64
	for range runs {
		bare, err := floor(ctx, s, t.ID, lasting)
		if err != nil {
			return err
		}
		group, err := drive(ctx, s, t.ID, postgres.Grouping{}, callers, lasting)
		if err != nil {
			return err
		}
		single, err := drive(ctx, s, t.ID, postgres.Grouping{Workers: 16, MaxGroup: 1}, callers, lasting)
		if err != nil {
			return err
		}
		ratios = append(ratios, group/bare)
		fmt.Printf("bare grouped upsert %8.0f/s   group commit %8.0f/s (%.2f of it)   one statement each %7.0f/s\n", bare, group, group/bare, single)
	}
	fmt.Printf("median group/bare %.2f\n", stack.Median(ratios))
	return nil
}

// drive reserves from many callers and returns how many per second.
func drive(ctx context.Context, s *stack.Stack, templateID int64, g postgres.Grouping, callers int, lasting time.Duration) (float64, error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox`); err != nil {
		return 0, err
	}
	store := dropsdb.NewReservations(s.DB, g)
	defer store.Close()
	var next, done atomic.Int64
	var failed atomic.Value
	until := time.Now().Add(lasting)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Now().Before(until) {
				i := next.Add(1) - 1
				v, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(i%20_000 + 1),
					Bits: reminder.StoredBitmap(1 << (i / 20_000 % 60))})
				if err != nil || !v.Applied {
					failed.Store(fmt.Sprintf("%+v %v", v, err))
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if msg := failed.Load(); msg != nil {
		return 0, fmt.Errorf("reserve: %v", msg)
	}
	return float64(done.Load()) / lasting.Seconds(), nil
}

// floor is the least a grouped reservation could do: upsert 256 rows, twice at a
// time, without slots, events or answers.
func floor(ctx context.Context, s *stack.Stack, templateID int64, lasting time.Duration) (float64, error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox`); err != nil {
		return 0, err
	}
	var next, done atomic.Int64
	until := time.Now().Add(lasting)
	errs := make([]error, 2)
	var all sync.WaitGroup
	for w := range 2 {
		all.Go(func() {
			for time.Now().Before(until) {
				users, bits := make([]int64, 256), make([]int64, 256)
				base := next.Add(256) - 256
				for i := range users {
					users[i], bits[i] = (base+int64(i))%20_000+1, 1<<((base+int64(i))/20_000%60)
				}
				if _, err := s.SQL.Exec(ctx, `insert into reservations as r (template_id, user_id, slots)
					select $1, u, b from unnest($2::bigint[], $3::bigint[]) as a (u, b) order by u
					on conflict (template_id, user_id) do update set slots = r.slots | excluded.slots, updated_at = now()
					where r.slots & excluded.slots = 0`, templateID, users, bits); err != nil {
					errs[w] = err
					return
				}
				done.Add(256)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(done.Load()) / lasting.Seconds(), nil
}
