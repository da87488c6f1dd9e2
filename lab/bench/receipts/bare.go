package receipts

import (
	"context"
	"sync"

	"dropbell/domain/delivery/feedback"
)

// bareGroup is how many calls the bare program stores with one statement. The product stores at
// most as many.
const bareGroup = 256

// bare inserts a row for each report. Calls that arrive while a group is stored form the next
// group.
func (b *bench) bare(ctx context.Context, size int) (float64, error) {
	for _, sql := range []string{`drop table if exists bare_receipts`,
		`create table bare_receipts (batch_id bigint, user_id bigint, status text not null, provider text not null, cause text not null, primary key (batch_id, user_id))`} {
		if _, err := b.SQL.Exec(ctx, sql); err != nil {
			return 0, err
		}
	}
	type call struct {
		reports []feedback.Report
		done    chan error
	}
	calls := make(chan call, b.callers)
	var store sync.WaitGroup
	store.Go(func() {
		for first := range calls {
			group := []call{first}
			for more := true; more && len(group) < bareGroup; {
				select {
				case c, ok := <-calls:
					if more = ok; ok {
						group = append(group, c)
					}
				default:
					more = false
				}
			}
			var batches, users []int64
			var statuses, causes []string
			for _, c := range group {
				for _, r := range c.reports {
					batches, users = append(batches, r.Ref.Batch), append(users, int64(r.Ref.User))
					statuses, causes = append(statuses, string(r.Status)), append(causes, r.Cause)
				}
			}
			_, err := b.SQL.Exec(ctx, `insert into bare_receipts select batch_id, user_id, status, 'ses', cause
				from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) as g (batch_id, user_id, status, cause) on conflict do nothing`, batches, users, statuses, causes)
			for _, c := range group {
				c.done <- err
			}
		}
	})
	rate, err := b.pace(ctx, size, func(_ context.Context, reports []feedback.Report) error {
		c := call{reports, make(chan error, 1)}
		calls <- c
		return <-c.done
	})
	close(calls)
	store.Wait()
	return rate, err
}
