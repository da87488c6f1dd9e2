package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

// WaitsCounted counts the users of the template's waitlist from their rows. off is how far its stored
// counters differ from the rows. Of a drop whose rows were removed after their retention it returns the
// stored counters.
func (s Ledgers) WaitsCounted(ctx context.Context, templateID int64) (sheet waitlist.Sheet, off int64, err error) {
	sheet.TemplateID = templateID
	var removed bool
	err = s.Pool.QueryRow(ctx, `
		select exists (select from drop_archives a where a.template_id = t.id), r.joined, r.waiting, r.filled, r.lapsed, r."left", r.skipped, r.offered, t.held,
			abs(r.joined - coalesce(l.joined, 0)) + abs(r.waiting - coalesce(l.waiting, 0)) + abs(r.filled - coalesce(l.filled, 0))
				+ abs(r.lapsed - coalesce(l.lapsed, 0)) + abs(r."left" - coalesce(l."left", 0)) + abs(r.skipped - coalesce(l.skipped, 0))
				+ abs(r.offered - coalesce(l.offered, 0)) + greatest(r.offered - t.held, 0)
		from templates t left join waitlists l on l.template_id = t.id cross join lateral (
			select count(*) as joined, count(*) filter (where state in ('waiting', 'offered')) as waiting, count(*) filter (where state = 'filled') as filled,
				count(*) filter (where state = 'lapsed') as lapsed, count(*) filter (where state = 'left') as "left", count(*) filter (where state = 'skipped') as skipped,
				count(*) filter (where state = 'offered') as offered
			from waiters w where w.template_id = t.id) r where t.id = $1`, templateID).
		Scan(&removed, &sheet.Joined, &sheet.Waiting, &sheet.Filled, &sheet.Lapsed, &sheet.Left, &sheet.Skipped, &sheet.Offered, &sheet.Held, &off)
	if errors.Is(err, pgx.ErrNoRows) {
		return sheet, 0, template.ErrNotFound
	}
	if err == nil && removed {
		sheet, err = s.Waits(ctx, templateID)
		return sheet, 0, err
	}
	return sheet, off, pg.Translate(err)
}

// Waits returns the stored counters of the template's waitlist, all 0 for a drop without one.
func (s Ledgers) Waits(ctx context.Context, templateID int64) (sheet waitlist.Sheet, err error) {
	sheet.TemplateID = templateID
	err = s.Pool.QueryRow(ctx, `select l.joined, l.waiting, l.filled, l.lapsed, l."left", l.skipped, l.offered, t.held
		from waitlists l join templates t on t.id = l.template_id where l.template_id = $1`, templateID).
		Scan(&sheet.Joined, &sheet.Waiting, &sheet.Filled, &sheet.Lapsed, &sheet.Left, &sheet.Skipped, &sheet.Offered, &sheet.Held)
	if errors.Is(err, pgx.ErrNoRows) {
		return sheet, nil
	}
	return sheet, pg.Translate(err)
}

// WaitsLate returns for how long stock that is kept for users who wait, and offered to none of them, has
// not moved, or an offer has been over, of drops that give coupons now; 0 = there is no such stock or offer.
func (s Ledgers) WaitsLate(ctx context.Context) (late time.Duration, err error) {
	var seconds float64
	err = s.Pool.QueryRow(ctx, `select coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 from (
			select l.put_at as since from templates t join waitlists l on l.template_id = t.id
			where t.held > 0 and t.held > l.offered and t.state = 'published' and not `+overSQL+` and not (t.waitlist = 'offer' and clock_timestamp() >= `+givesUntilSQL+` - $1::interval)
			union all
			select w.offer_until from waiters w join templates t on t.id = w.template_id
			where w.state = 'offered' and w.offer_until <= clock_timestamp() and t.state = 'published' and not `+overSQL+`) l`, waitlist.LastHour).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), pg.Translate(err)
}
