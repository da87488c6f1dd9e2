// Package redis measures the memory that reservations use in Redis: none. It reserves through
// the store, with a worker that handles the events. It measures Redis before the reservations,
// after all events were handled, and after the handled events were trimmed, as the worker does
// after an hour.
//
//	go tool task bench:redis -- -n 1000000
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, callers := f.Int("n", 1_000_000, "reservations, of as many users"), f.Callers(1024)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *n, *callers) })
}

func bench(ctx context.Context, s *stack.Stack, n, callers int) error {
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
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	// The first reservations create the keys that exist only once: streams, groups, queues.
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
	return scenario.Each(n, callers, func(i int) error {
		v, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(first + i), Bits: reminder.StoredBitmap(1)})
		if err == nil && !v.Applied {
			err = fmt.Errorf("refused: %+v", v)
		}
		return err
	})
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
