// Package series measures how long the standing reservations of a series take to be copied to a drop that was
// published: the chunks of the keeper, beside two floors that store the same rows, in turns on the same
// database: one bare insert in the order of the users, and one bare COPY of rows that this process makes up.
//
//	go tool task bench:series
package series

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/series"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "standing reservations"), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, store: dropsdb.NewSeries(s.DB), users: *n}
		return b.run(ctx, *n, *runs)
	})
}

type bench struct {
	*stack.Stack
	store dropsdb.Series
	users int
}

func (b *bench) run(ctx context.Context, n, runs int) error {
	if err := b.fill(ctx, n); err != nil {
		return err
	}
	kinds := []struct {
		name     string
		measured func(context.Context, series.Copy) error
		seconds  []float64
	}{{name: "bare insert", measured: b.insert}, {name: "bare COPY", measured: b.bare}, {name: "copy", measured: b.copy}}
	for i := range runs {
		for turn := range kinds { // each is first in turn
			k := &kinds[(turn+i)%len(kinds)]
			took, rows, err := b.measure(ctx, k.name, k.measured)
			if err != nil {
				return err
			}
			if rows != int64(n) {
				return fmt.Errorf("%s: %d of %d users have reminders", k.name, rows, n)
			}
			k.seconds = append(k.seconds, took.Seconds())
		}
	}
	insert, bare, copied := stack.Median(kinds[0].seconds), stack.Median(kinds[1].seconds), stack.Median(kinds[2].seconds)
	fmt.Printf("median: %d standing reservations are copied in %.2f s; bare insert %.2f s (%.2f of its time), bare COPY %.2f s (%.2f)\n", n, copied, insert, copied/insert, bare, copied/bare)
	return nil
}

// fill stores the series with standing reservations that came in any order, of a dozen bitmaps.
func (b *bench) fill(ctx context.Context, n int) error {
	if _, err := b.Drop(ctx, 2*time.Hour); err != nil { // which makes the shop
		return err
	}
	for _, sql := range []string{
		`insert into series (shop_number, name, rule, starts_on, clock, content, state) select min(number), 'Daily', 'FREQ=DAILY', '2027-01-01', 0, '{}', 'paused' from shops`,
		fmt.Sprintf(`insert into series_reservations (series_id, user_id, slots) select 1, id, 1::bigint << (id %% 12)::int from generate_series(1, %d) id order by hashint8(id)`, n),
		`vacuum analyze series_reservations`,
	} {
		if _, err := b.SQL.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// measure publishes a drop of the series, and then measures how long its reservations take. A checkpoint comes first, so
// that none is paid for by a neighbour.
func (b *bench) measure(ctx context.Context, name string, measured func(context.Context, series.Copy) error) (time.Duration, int64, error) {
	t, err := b.Drop(ctx, 2*time.Hour)
	if err != nil {
		return 0, 0, err
	}
	if _, err := b.SQL.Exec(ctx, `insert into series_drops (series_id, day, state, template_id) select 1, date '2027-01-01' + count(*)::int, 'kept', $1 from series_drops`, t.ID); err != nil {
		return 0, 0, err
	}
	if _, err := b.SQL.Exec(ctx, `checkpoint`); err != nil {
		return 0, 0, err
	}
	before, err := b.PostgresCPU(ctx)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	if err := measured(ctx, series.Copy{SeriesID: 1, TemplateID: t.ID}); err != nil {
		return 0, 0, err
	}
	took := time.Since(begun)
	after, err := b.PostgresCPU(ctx)
	if err != nil {
		return 0, 0, err
	}
	fmt.Printf("%-12s %6.2f s, of these %6.2f s of a processor in PostgreSQL\n", name, took.Seconds(), (after - before).Seconds())
	var rows int64
	err = b.SQL.QueryRow(ctx, `select count(*) from reservations where template_id = $1`, t.ID).Scan(&rows)
	return took, rows, err
}

func (b *bench) copy(ctx context.Context, c series.Copy) error {
	_, err := b.store.Copy(ctx, c)
	return err
}

// insert is the least statement that stores the same rows.
func (b *bench) insert(ctx context.Context, c series.Copy) error {
	_, err := b.SQL.Exec(ctx, `insert into reservations (template_id, user_id, slots, standing)
		select $2, user_id, slots, true from series_reservations where series_id = $1 order by user_id`, c.SeriesID, c.TemplateID)
	return err
}

// bare stores rows as they are after [bench.fill], without reading them.
func (b *bench) bare(ctx context.Context, c series.Copy) error {
	_, err := b.SQL.CopyFrom(ctx, pgx.Identifier{"reservations"}, []string{"template_id", "user_id", "slots", "standing"},
		pgx.CopyFromSlice(b.users, func(i int) ([]any, error) {
			return []any{c.TemplateID, int64(i + 1), int64(1) << ((i + 1) % 12), true}, nil
		}))
	return err
}
