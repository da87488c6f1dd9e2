package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// WarmUps counts the mails of each day of a warm-up plan, over all workers.
type WarmUps struct{ *pg.DB }

// NewWarmUps returns the counts of db.
func NewWarmUps(db *pg.DB) WarmUps { return WarmUps{db} }

// warmUpSQL returns how many of @mails are taken from the remainder of @most. It
// locks the day's row, so that several workers together take no more than @most.
// If mails are left over, the time is recorded for staff.
const warmUpSQL = `
update mail_warmup w set mails = w.mails + o.taken, refused_at = case when o.taken < @mails then coalesce(w.refused_at, clock_timestamp()) else w.refused_at end
from (select day, least(@mails::bigint, greatest(0, @most::bigint - mails)) as taken from mail_warmup where day = @day::date for update) o
where w.day = o.day returning o.taken`

// Take takes up to so many mails from the most of the day and returns how many.
func (w WarmUps) Take(ctx context.Context, day time.Time, mails, most int64) (taken int64, err error) {
	args := pgx.StrictNamedArgs{"mails": mails, "most": most, "day": day.UTC()}
	err = w.Pool.QueryRow(ctx, warmUpSQL, args).Scan(&taken)
	if errors.Is(err, pgx.ErrNoRows) { // the first mails of the day
		if _, err := w.Pool.Exec(ctx, `insert into mail_warmup (day, mails) values ($1::date, 0) on conflict do nothing`, day.UTC()); err != nil {
			return 0, pg.Translate(err)
		}
		err = w.Pool.QueryRow(ctx, warmUpSQL, args).Scan(&taken)
	}
	return taken, pg.Translate(err)
}

// Sent returns how many mails of the plan were taken on the day of now.
func (w WarmUps) Sent(ctx context.Context, now time.Time) (mails int64, err error) {
	err = w.Pool.QueryRow(ctx, `select coalesce(sum(mails), 0) from mail_warmup where day = $1::date`, now.UTC()).Scan(&mails)
	return mails, pg.Translate(err)
}

// Fill sets how many mails were sent on each of the days.
func (w WarmUps) Fill(ctx context.Context, days []delivery.WarmUpDay) error {
	if len(days) == 0 {
		return nil
	}
	rows := pg.Rows(ctx, w.Pool, `select day, mails from mail_warmup where day >= $1::date`, days[0].Day)
	var day time.Time
	var mails int64
	_, err := pgx.ForEachRow(rows, []any{&day, &mails}, func() error {
		for i := range days {
			if days[i].Day.Equal(day) {
				days[i].Sent = mails
			}
		}
		return nil
	})
	return pg.Translate(err)
}

// GiveBack returns mails that were taken on the day and not sent.
func (w WarmUps) GiveBack(ctx context.Context, day time.Time, mails int64) error {
	_, err := w.Pool.Exec(ctx, `update mail_warmup set mails = greatest(0, mails - $2) where day = $1::date`, day.UTC(), mails)
	return pg.Translate(err)
}

// Budget returns the remainder of the day's plan; the zero value if there is no
// plan.
func (w WarmUps) Budget(ctx context.Context, plan delivery.WarmUp, now time.Time) (b delivery.ChannelBudget, err error) {
	if b.PerDay = plan.Most(now); b.PerDay == 0 {
		return b, nil
	}
	err = w.Pool.QueryRow(ctx, `select mails, mails >= $2 and refused_at is not null from mail_warmup where day = $1::date`, now.UTC(), b.PerDay).Scan(&b.Spent, &b.UsedUp)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, nil
	}
	return b, pg.Translate(err)
}
