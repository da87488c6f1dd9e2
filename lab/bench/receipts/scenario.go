// Package receipts measures how fast reports of providers are stored, for calls with one report
// and with a hundred. The comparison, on the same machine at the same time, is the usual design:
// a row for each report, inserted by the same number of callers in the same groups.
//
//	go tool task bench:receipts
package receipts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// perBatch is how many recipients a batch has, as many as a slot's at most.
const perBatch = 1000

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	reports, runs := f.Int("n", 300_000, "reports, a multiple of 1000"), f.Runs(3)
	callers := f.Int("callers", 512, "calls at a time")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, n: *reports, callers: *callers}
		return b.run(ctx, *runs)
	})
}

type bench struct {
	*stack.Stack
	n, callers int
	// order is the order in which the reports arrive: near the order of sending, but mixed among
	// the batches that are sent at the same time.
	order []feedback.Report
}

func (b *bench) run(ctx context.Context, runs int) (err error) {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	ratios := map[int][]float64{}
	for range runs {
		for _, size := range []int{1, 100} {
			bare, err := b.bare(ctx, size)
			if err != nil {
				return err
			}
			stored, err := b.stored(ctx, size)
			if err != nil {
				return err
			}
			ratios[size] = append(ratios[size], stored/bare)
			fmt.Printf("calls of %3d reports: stored %7.0f reports/s, a row each %7.0f/s (%.2f of it)\n", size, stored, bare, stored/bare)
		}
	}
	fmt.Printf("median: %.2f of a row each in calls of 1, %.2f in calls of 100\n", stack.Median(ratios[1]), stack.Median(ratios[100]))
	return nil
}

// prepare stores batches of e-mails that were sent, and the reports of them.
func (b *bench) prepare(ctx context.Context) error {
	for i := range b.n / perBatch {
		due := roaring64.New()
		due.AddRange(uint64(i*perBatch+1), uint64((i+1)*perBatch+1))
		raw, err := due.ToBytes()
		if err != nil {
			return err
		}
		var id int64
		if err := b.SQL.QueryRow(ctx, `insert into batches (kind, owner_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count)
			values ('reminder', 1, 1, $1, $2, 'done', now(), now() + interval '1 hour', $3, $3, $4, $4) returning id`,
			i*perBatch+1, (i+1)*perBatch, raw, perBatch).Scan(&id); err != nil {
			return err
		}
		for n := range perBatch {
			r := feedback.Report{Ref: feedback.Ref{Batch: id, User: user.ID(i*perBatch + n + 1)}, Status: feedback.Delivered, Provider: "ses", At: time.Now()}
			if n%50 == 0 {
				r.Status, r.Cause = feedback.Bounced, "550 5.1.1 unknown user"
			}
			b.order = append(b.order, r)
		}
	}
	const window = 20 * perBatch
	for from := 0; from < len(b.order); from += window {
		part := b.order[from:min(from+window, len(b.order))]
		rand.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return nil
}

// pace lets the callers take the reports in their order, size reports per call, and returns
// reports per second.
func (b *bench) pace(ctx context.Context, size int, take func(context.Context, []feedback.Report) error) (float64, error) {
	began := time.Now()
	err := scenario.Each((len(b.order)+size-1)/size, b.callers, func(i int) error {
		return take(ctx, b.order[i*size:min((i+1)*size, len(b.order))])
	})
	return float64(len(b.order)) / time.Since(began).Seconds(), err
}

// stored takes all reports and checks that each is known afterwards.
func (b *bench) stored(ctx context.Context, size int) (float64, error) {
	if _, err := b.SQL.Exec(ctx, `truncate batch_feedback cascade`); err != nil {
		return 0, err
	}
	f := deliverydb.NewFeedback(b.DB, nil)
	defer f.Close()
	rate, err := b.pace(ctx, size, f.Take)
	if err != nil {
		return 0, err
	}
	var known int
	if err := b.SQL.QueryRow(ctx, `select sum(delivered_count + bounced_count) from batch_feedback`).Scan(&known); err != nil {
		return 0, err
	}
	if known != b.n {
		return 0, fmt.Errorf("%d of %d reports are known", known, b.n)
	}
	return rate, nil
}
