// Package group measures group commit without HTTP: reservations per second of many callers,
// compared with the bare grouped upsert and with one statement per reservation; and entries of draws beside them.
//
//	go tool task bench:group
package group

import (
	"context"
	"fmt"
	"time"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.Callers(1024), f.Lasting(5), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *callers, *lasting, *runs) })
}

func bench(ctx context.Context, s *stack.Stack, callers int, lasting time.Duration, runs int) error {
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
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
	ratios = nil
	var floors []float64
	for range runs {
		entries, reservations, receipts, err := enter(ctx, s, t.ID, callers, lasting)
		if err != nil {
			return err
		}
		// The floor signs a receipt and stores a reservation on the same processors.
		floor := 1 / (1/reservations + 1/receipts)
		ratios, floors = append(ratios, entries/reservations), append(floors, entries/floor)
		fmt.Printf("users without a row: entries of a draw with receipts %8.0f/s   reservations %8.0f/s (%.2f)   receipts signed %8.0f/s, both %8.0f/s (%.2f)\n",
			entries, reservations, entries/reservations, receipts, floor, entries/floor)
	}
	fmt.Printf("median entries/reservations %.2f, entries/both %.2f\n", stack.Median(ratios), stack.Median(floors))
	return nil
}

// drive reserves from many callers and returns how many per second.
func drive(ctx context.Context, s *stack.Stack, templateID int64, g postgres.Grouping, callers int, lasting time.Duration) (float64, error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox`); err != nil {
		return 0, err
	}
	store := dropsdb.NewReservations(s.DB, g)
	defer store.Close()
	w, err := scenario.Drive(callers, lasting, func(i int64) error {
		i--
		v, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(i%20_000 + 1), Bits: reminder.StoredBitmap(1 << (i / 20_000 % 60))})
		if err == nil && !v.Applied {
			err = fmt.Errorf("refused: %+v", v)
		}
		return err
	})
	return w.PerSecond, err
}

// floor measures the least work of grouped reservations: it upserts 256 rows, in two concurrent
// groups, without slots, events or answers.
func floor(ctx context.Context, s *stack.Stack, templateID int64, lasting time.Duration) (float64, error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox`); err != nil {
		return 0, err
	}
	w, err := scenario.Drive(2, lasting, func(group int64) error {
		users, bits := make([]int64, 256), make([]int64, 256)
		for i := range users {
			n := (group-1)*256 + int64(i)
			users[i], bits[i] = n%20_000+1, 1<<(n/20_000%60)
		}
		_, err := s.SQL.Exec(ctx, `insert into reservations as r (template_id, user_id, slots)
			select $1, u, b from unnest($2::bigint[], $3::bigint[]) as a (u, b) order by u
			on conflict (template_id, user_id) do update set slots = r.slots | excluded.slots, updated_at = now()
			where r.slots & excluded.slots = 0`, templateID, users, bits)
		return err
	})
	return 256 * w.PerSecond, err
}
