// Package series measures how long the standing reservations of a series take to be copied to a drop that was
// published: the one statement of the keeper, beside a bare insert of the same rows, in turns on the same
// database.
//
//	go tool task bench:series
package series

import (
	"context"
	"fmt"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/series"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "standing reservations"), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, store: dropsdb.NewSeries(s.DB)}
		return b.run(ctx, *n, *runs)
	})
}

type bench struct {
	*stack.Stack
	store dropsdb.Series
}

func (b *bench) run(ctx context.Context, n, runs int) error {
	if err := b.fill(ctx, n); err != nil {
		return err
	}
	bare, copied, ratios := make([]float64, runs), make([]float64, runs), make([]float64, runs)
	for i := range runs {
		// Of two neighbours each is first in turn.
		for turn := range 2 {
			seconds, measure := &bare[i], b.bare
			if turn != i%2 {
				seconds, measure = &copied[i], b.copy
			}
			took, rows, err := b.measure(ctx, measure)
			if err != nil {
				return err
			}
			if rows != int64(n) {
				return fmt.Errorf("%d of %d users have reminders", rows, n)
			}
			*seconds = took.Seconds()
		}
		ratios[i] = bare[i] / copied[i]
		fmt.Printf("bare insert %6.2f s, copy %6.2f s (%.2f of its rate)\n", bare[i], copied[i], ratios[i])
	}
	fmt.Printf("median: %d standing reservations are copied in %.2f s; bare insert %.2f s (%.2f)\n", n, stack.Median(copied), stack.Median(bare), stack.Median(ratios))
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
func (b *bench) measure(ctx context.Context, measured func(context.Context, series.Copy) error) (time.Duration, int64, error) {
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
	fmt.Printf("%.2f s, of these %.2f s of a processor in PostgreSQL\n", took.Seconds(), (after - before).Seconds())
	var rows int64
	err = b.SQL.QueryRow(ctx, `select count(*) from reservations where template_id = $1`, t.ID).Scan(&rows)
	return took, rows, err
}

func (b *bench) copy(ctx context.Context, c series.Copy) error {
	_, err := b.store.Copy(ctx, c)
	return err
}

// bare is the least that stores the same rows.
func (b *bench) bare(ctx context.Context, c series.Copy) error {
	_, err := b.SQL.Exec(ctx, `insert into reservations (template_id, user_id, slots, standing)
		select $2, user_id, slots, true from series_reservations where series_id = $1`, c.SeriesID, c.TemplateID)
	return err
}
