package work

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// pastSQL is true if the coupons of template t are past their retention $1: the drop is over,
// its last issued coupon expired at least $1 ago, the claim gate needs the coupons no longer, no
// order holds a coupon, none is under review, and no campaign counts the coupons.
const pastSQL = `t.state in ('closed', 'cancelled') and coalesce(t.ended_at, t.closes_at) < now() - $1::interval
    and coalesce(t.valid_until, greatest(t.closes_at, (select max(s.second) + interval '1 second' from claim_seconds s where s.template_id = t.id))
        + t.valid_hours * interval '1 hour') < now() - $1::interval
    and not exists (select from gates g where g.template_id = t.id and g.state <> 'retired')
    and not exists (select from coupons c where c.template_id = t.id and c.state = 'locked')
    and not exists (select from coupons c where c.template_id = t.id and c.state = 'suspended')
    and not exists (select from campaigns c where (c.state in ('scheduled', 'running', 'paused')
            or c.started_at is not null and not c.archived and c.count_due_at < 'infinity')
        and (c.grant_template_id = t.id
            or c.audience ->> 'kind' in ('reserved_template_id', 'holds_template_id') and c.audience ->> 'id' = t.id::text))`

// expiryBehindSQL says whether the sweep of expired coupons is a day late. Then no coupons are
// removed: the totals that stay would lack the coupons that the sweep has not counted yet.
const expiryBehindSQL = `select exists (select from coupons c where c.state = 'unused' and c.expires_at < now() - interval '1 day')`

// postponeSQL plans the removal of the coupons of template $2 for the retention $1 after the
// last of them expires; if something else keeps them, they are looked at again after 6 hours.
const postponeSQL = `
update removals m set at = greatest(now() - $1::interval + interval '6 hours', (
    select coalesce(t.valid_until, greatest(t.closes_at, (select max(s.second) + interval '1 second' from claim_seconds s where s.template_id = t.id))
        + t.valid_hours * interval '1 hour') from templates t where t.id = $2))
where m.step = 'coupons' and m.object_id = $2`

// lockPastSQL returns the template $2 if its coupons are still past their retention. The
// template is locked first, as claims do: staff may give coupons of a drop away after its end.
const lockPastSQL = `select from templates t where t.id = $2 and ` + pastSQL + ` for no key update`

// removeCouponsSQL removes the coupons and the counts of up to $2 owners of template $1, adds
// them to the totals of removed coupons, and returns the number of removed coupons. The census
// counts the template anew, in case it sells coupons again.
const removeCouponsSQL = `
with part as materialized (
    select user_id from claim_counts where template_id = $1 order by user_id limit $2
), gone as (
    delete from coupons c using part p where c.template_id = $1 and c.user_id = p.user_id returning c.returned, c.state, c.discount
), counts as (
    delete from claim_counts n using part p where n.template_id = $1 and n.user_id = p.user_id returning n.issued
), census as (
    delete from stock_counts where template_id = $1
), kept as (
    insert into removed_coupons as r (template_id, coupons, returned, counted, used, expired, revoked, discounted)
    select $1, count(*), count(*) filter (where returned), (select sum(issued) from counts), count(*) filter (where state = 'used'),
        count(*) filter (where state = 'expired'), count(*) filter (where state = 'revoked'), coalesce(sum(discount) filter (where state = 'used'), 0)
    from gone having exists (select from counts)
    on conflict (template_id) do update set coupons = r.coupons + excluded.coupons, returned = r.returned + excluded.returned,
        counted = r.counted + excluded.counted, used = r.used + excluded.used, expired = r.expired + excluded.expired,
        revoked = r.revoked + excluded.revoked, discounted = r.discounted + excluded.discounted, removed_at = excluded.removed_at
)
select (select count(*) from gone), (select count(*) from counts)`

// errExpiryBehind is the error while the sweep of expired coupons is a day late.
var errExpiryBehind = errors.New("coupons are not removed while the sweep of expired coupons is a day late")

// removeCoupons removes the coupons of drops that have been over for age, one drop after the
// other. Coupons and counts per user are removed together, so that the stock adds up at every
// instant. Refused claims and the sell-out curve are removed after them.
func (h Housekeeping) removeCoupons(ctx context.Context, now time.Time, age time.Duration) (total int64, err error) {
	for {
		var id int64
		err := h.Pool.QueryRow(ctx, dueSQL, "coupons", now.Add(-age), 1).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return total, nil
		}
		if err != nil {
			return total, pg.Translate(err)
		}
		n, err := h.removeCouponsOrWait(ctx, id, now, age)
		if total += n; err != nil {
			return total, err
		}
	}
}

// removeCouponsOrWait removes the coupons of template id, or plans when to look at it again.
func (h Housekeeping) removeCouponsOrWait(ctx context.Context, id int64, now time.Time, age time.Duration) (removed int64, err error) {
	var behind, past bool
	if err := h.Pool.QueryRow(ctx, expiryBehindSQL).Scan(&behind); err != nil || behind {
		return 0, cmp.Or(pg.Translate(err), errExpiryBehind)
	}
	if err := h.Pool.QueryRow(ctx, `select exists (select from templates t where t.id = $2 and `+pastSQL+`)`, age, id).Scan(&past); err != nil {
		return 0, pg.Translate(err)
	}
	if !past {
		_, err := h.Pool.Exec(ctx, postponeSQL, age, id)
		return 0, pg.Translate(err)
	}
	if removed, err = h.removeCouponsOf(ctx, id, age); err != nil {
		return removed, err
	}
	// A row that was planned anew meanwhile stays, and so does the row of a drop that has coupons
	// again.
	_, err = h.Pool.Exec(ctx, `delete from removals where step = 'coupons' and object_id = $1 and at < $2
		and not exists (select from claim_counts where template_id = $1)`, id, now.Add(-age))
	return removed, pg.Translate(err)
}

func (h Housekeeping) removeCouponsOf(ctx context.Context, id int64, age time.Duration) (total int64, err error) {
	for owners := int64(chunk); owners == chunk; {
		var removed int64
		owners = 0
		err := h.Tx(ctx, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, lockPastSQL, age, id).Scan(); err != nil {
				return err
			}
			return tx.QueryRow(ctx, removeCouponsSQL, id, chunk).Scan(&removed, &owners)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return total, nil // it has coupons again, or another transaction counts them
		}
		if total += removed; err != nil {
			return total, pg.Translate(err)
		}
	}
	for _, sql := range []string{
		`delete from claim_results where claim_id in (select r.claim_id from claim_results r join templates t on t.id = r.template_id
			where r.template_id = $3 and ` + pastSQL + ` order by r.claim_id limit $2)`,
		// Of a draw the sealed list, the cards and the counts stay, which name no user.
		`delete from draw_entries where (template_id, user_id) in (select e.template_id, e.user_id from draw_entries e join templates t on t.id = e.template_id
			where e.template_id = $3 and ` + pastSQL + ` order by e.user_id limit $2)`,
		`delete from draw_growth where (template_id, minute, shard) in (select g.template_id, g.minute, g.shard from draw_growth g join templates t on t.id = g.template_id
			where g.template_id = $3 and ` + pastSQL + ` order by g.minute, g.shard limit $2)`,
		`delete from claim_seconds where (template_id, second) in (select s.template_id, s.second from claim_seconds s join templates t on t.id = s.template_id
			where s.template_id = $3 and ` + pastSQL + ` order by s.second limit $2)`,
	} {
		n, err := h.inChunks(ctx, sql, age, chunk, id)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}
