package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
)

// CouponTallies are the outcomes of each template's coupons, as [TallyEvents] has counted them.
// [CouponTallies.Recount] compares the sums with the rows. A sum may be below 0 while an event
// waits that is older than a counted event; readers then see 0.
type CouponTallies struct{ *pg.DB }

// NewCouponTallies returns the tallies of db.
func NewCouponTallies(db *pg.DB) CouponTallies { return CouponTallies{db} }

// tallySumsSQL returns the outcomes of the coupons of template $1. Once the last issued coupon
// has expired, every unused coupon counts as expired, even if the sweep has not stored the
// expiry.
const tallySumsSQL = `
select t.issued + t.returned, t.returned, greatest(0, y.locked), greatest(0, y.used),
    case when coalesce(t.valid_until, (select max(second) from claim_seconds s where s.template_id = t.id)
            + interval '1 second' + t.valid_hours * interval '1 hour') <= clock_timestamp()
        then greatest(0, t.issued + t.returned - coalesce(greatest(0, y.locked) + greatest(0, y.used) + greatest(0, y.revoked) + greatest(0, y.suspended), 0)) else greatest(0, y.expired) end,
    greatest(0, y.revoked), greatest(0, y.discounted), greatest(0, y.released), greatest(0, y.refunded), coalesce(g.coupons, 0), greatest(0, y.suspended)
from ` + pg.TemplateRow + ` t left join coupon_tallies y on y.template_id = t.id left join removed_coupons g on g.template_id = t.id`

// Tally returns the outcomes of the template's coupons, as far as events have arrived.
func (s CouponTallies) Tally(ctx context.Context, templateID int64) (y coupon.Tally, err error) {
	err = s.Pool.QueryRow(ctx, tallySumsSQL, templateID).
		Scan(&y.Issued, &y.Returned, &y.Locked, &y.Used, &y.Expired, &y.Revoked, &y.Discounted, &y.Released, &y.Refunded, &y.Removed, &y.Suspended)
	if errors.Is(err, pgx.ErrNoRows) {
		return y, nil
	}
	return y, pg.Translate(err)
}
