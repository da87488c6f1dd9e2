package delivery

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/user"
)

// talliesSQL sums what was reported by kind, owner and channel: of batches that are
// kept, and of those that are past their retention. Of a batch no more counts than it
// has sent: see [feedback.Tally.Within].
func talliesSQL(where string) string {
	return `
select kind, owner_id, channel, sum(delivered)::bigint, sum(bounced)::bigint, sum(complained)::bigint from (
    select f.kind, f.owner_id, f.channel, ` + pg.FeedbackWithinSent + `
    from batch_feedback f join batches b on b.id = f.batch_id where ` + where + `
    union all
    select f.kind, f.owner_id, f.channel, delivered, bounced, complained from feedback_totals f where ` + where + `
) parts group by 1, 2, 3 order by 1, 2, 3`
}

var (
	ownerTalliesSQL    = talliesSQL(`f.kind = $1 and f.owner_id = any($2)`)
	templateTalliesSQL = talliesSQL(`f.template_id = $1 and f.template_id <> 0`)
)

// Tallies returns what was reported of the messages of these owners, by owner and
// channel. Where nothing was, there is no element.
func (f *Feedback) Tallies(ctx context.Context, kind delivery.Kind, owners []int64) ([]feedback.Sum, error) {
	return readTallies(ctx, f.DB, ownerTalliesSQL, kind, owners)
}

// TalliesOfTemplate returns what was reported of the messages about a template, by
// kind, owner and channel.
func (f *Feedback) TalliesOfTemplate(ctx context.Context, templateID int64) ([]feedback.Sum, error) {
	return readTallies(ctx, f.DB, templateTalliesSQL, templateID)
}

// TalliesOfBatches returns what was reported of the messages of these batches.
func (f *Feedback) TalliesOfBatches(ctx context.Context, ids []int64) (map[int64]feedback.Tally, error) {
	rows, err := f.Pool.Query(ctx, `select batch_id, `+pg.FeedbackWithinSent+` from batch_feedback f join batches b on b.id = f.batch_id where batch_id = any($1)`, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list := map[int64]feedback.Tally{}
	var id int64
	var t feedback.Tally
	_, err = pgx.ForEachRow(rows, []any{&id, &t.Delivered, &t.Bounced, &t.Complained}, func() error {
		if t.Any() {
			list[id] = t
		}
		return nil
	})
	return list, pg.Translate(err)
}

func readTallies(ctx context.Context, db *pg.DB, sql string, args ...any) ([]feedback.Sum, error) {
	rows, err := db.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s feedback.Sum, err error) {
		return s, row.Scan(&s.Kind, &s.OwnerID, &s.Channel, &s.Delivered, &s.Bounced, &s.Complained)
	})
	kept := list[:0]
	for _, s := range list {
		if s.Any() {
			kept = append(kept, s)
		}
	}
	return kept, pg.Translate(err)
}

// knownSQL returns what is known of the messages to user $1 in batches $2.
const knownSQL = `
select f.batch_id, f.delivered, f.bounced, f.complained, f.soft, coalesce(r.provider, ''), coalesce(r.cause, ''),
    coalesce(r.price_micros, 0), coalesce(r.currency, ''), r.happened_at
from batch_feedback f left join feedback_reports r on r.batch_id = f.batch_id and r.user_id = $1
where f.batch_id = any($2)`

// Known returns what was reported of the messages to the user, by batch. Messages of
// which nothing was are left out.
func (f *Feedback) Known(ctx context.Context, id user.ID, batches []int64) (map[int64]feedback.Report, error) {
	rows, err := f.Pool.Query(ctx, knownSQL, id, batches)
	if err != nil {
		return nil, pg.Translate(err)
	}
	defer rows.Close()
	known := map[int64]feedback.Report{}
	for rows.Next() {
		var r feedback.Report
		var raw [4]pgtype.DriverBytes // looked at before the next row
		var at pgtype.Timestamptz
		if err := rows.Scan(&r.Ref.Batch, &raw[0], &raw[1], &raw[2], &raw[3], &r.Provider, &r.Cause, &r.PriceMicros, &r.Currency, &at); err != nil {
			return nil, pg.Translate(err)
		}
		m, err := decodeMarks([5][]byte{raw[0], raw[1], raw[2], raw[3]})
		if err != nil {
			return nil, err
		}
		if r.Status = m.status(id); r.Status != "" {
			r.Ref.User, r.At = id, at.Time
			known[r.Ref.Batch] = r
		}
	}
	return known, pg.Translate(rows.Err())
}
