package campaigns

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// causes adds the words of providers that reported more than a delivery of the recipients'
// messages.
func (s Campaigns) causes(ctx context.Context, list []campaign.Outcome) error {
	at := map[feedback.Ref]int{}
	var batches, users []int64
	for i, o := range list {
		if o.Reported != "" && o.Reported != feedback.Delivered {
			at[feedback.Ref{Batch: o.BatchID, User: o.UserID}] = i
			batches, users = append(batches, o.BatchID), append(users, int64(o.UserID))
		}
	}
	if len(at) == 0 {
		return nil
	}
	rows := pg.Rows(ctx, s.Pool, `select r.batch_id, r.user_id, r.cause from feedback_reports r
		join unnest($1::bigint[], $2::bigint[]) as g (batch_id, user_id) on r.batch_id = g.batch_id and r.user_id = g.user_id`, batches, users)
	var batch int64
	var id user.ID
	var cause string
	_, err := pgx.ForEachRow(rows, []any{&batch, &id, &cause}, func() error {
		list[at[feedback.Ref{Batch: batch, User: id}]].Cause = cause
		return nil
	})
	return pg.Translate(err)
}
