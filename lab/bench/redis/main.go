// Redis measures what reservations occupy in Redis: nothing. It reserves through
// the store, with a worker that handles the events, and measures Redis before,
// when every event has been handled, and after the handled events were trimmed,
// as the worker does after an hour.
//
//	go -C lab run ./bench/redis -n 1000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

func main() {
	n := flag.Int("n", 1_000_000, "reservations, of as many users")
	callers := flag.Int("callers", 1024, "concurrent callers")
	flag.Parse()
	if err := bench(context.Background(), *n, *callers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, n, callers int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Stop()
	client, err := s.RedisClient()
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Println(stack.Machine(ctx, s))
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	// The first reservations make what exists once: streams, groups, queues.
	if err := errors.Join(stack.WaitTimers(ctx, client, 12), reserve(ctx, s, t.ID, n+1, callers, callers), drained(ctx, s, client)); err != nil {
		return err
	}
	if err := trim(ctx, client); err != nil {
		return err
	}
	return measure(ctx, s, client, func() error { return reserve(ctx, s, t.ID, 1, n, callers) }, n)
}

func measure(ctx context.Context, s *stack.Stack, client *redis.Client, act func() error, n int) error {
	before, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := act(); err != nil {
		return err
	}
	took := time.Since(start)
	if err := drained(ctx, s, client); err != nil {
		return err
	}
	handled, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return err
	}
	if err := trim(ctx, client); err != nil {
		return err
	}
	after, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return err
	}
	waiting, err := stack.Timers(ctx, client)
	if err != nil {
		return err
	}
	fmt.Printf("%d reservations in %.1f s (%.0f/s)\n", n, took.Seconds(), float64(n)/took.Seconds())
	fmt.Printf("%-44s %12s %24s\n", "Redis", "bytes", "more per reservation")
	for _, row := range []struct {
		when  string
		bytes int64
	}{{"before", before}, {"events handled, not yet trimmed", handled}, {"handled events trimmed", after}} {
		fmt.Printf("%-44s %12d %24.2f\n", row.when, row.bytes, float64(row.bytes-before)/float64(n))
	}
	fmt.Printf("timers: %d\n", waiting)
	return nil
}

// reserve stores a reminder for users first…first+n-1.
func reserve(ctx context.Context, s *stack.Stack, templateID int64, first, n, callers int) error {
	store := dropsdb.NewReservations(s.DB, postgres.Grouping{})
	defer store.Close()
	var next atomic.Int64
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[c] == nil; i = next.Add(1) - 1 {
				v, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(int64(first) + i), Bits: reminder.StoredBitmap(1)})
				if err == nil && !v.Applied {
					err = fmt.Errorf("refused: %+v", v)
				}
				errs[c] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// drained waits until every event has left the outbox and was handled by every group.
func drained(ctx context.Context, s *stack.Stack, client *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return stack.Until(ctx, 200*time.Millisecond, func() (bool, error) {
		var left bool
		if err := s.SQL.QueryRow(ctx, `select exists (select from outbox)`).Scan(&left); err != nil || left {
			return false, err
		}
		open := int64(0)
		err := eachStream(ctx, client, func(stream string) error {
			groups, err := client.XInfoGroups(ctx, stream).Result()
			for _, g := range groups {
				open += g.Pending + max(0, g.Lag)
			}
			return err
		})
		return open == 0, err
	})
}

// trim removes handled events.
func trim(ctx context.Context, client *redis.Client) error {
	return eachStream(ctx, client, func(stream string) error { return client.XTrimMaxLen(ctx, stream, 0).Err() })
}

func eachStream(ctx context.Context, client *redis.Client, visit func(name string) error) error {
	keys := client.ScanType(ctx, 0, "*", 1000, "stream").Iterator()
	for keys.Next(ctx) {
		if strings.HasPrefix(keys.Val(), "asynq:") {
			continue
		}
		if err := visit(keys.Val()); err != nil {
			return err
		}
	}
	return keys.Err()
}
