package coupons

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
)

// CouponTallies counts the outcomes of each template's coupons from events. Events arrive at
// least once, so an event is counted in the transaction that stores its id.
// [CouponTallies.Recount] compares the sums with the rows. A sum may be below 0 while an event
// waits that is older than a counted event; readers then see 0.
type CouponTallies struct{ *pg.DB }

// NewCouponTallies returns the tallies of db.
func NewCouponTallies(db *pg.DB) CouponTallies { return CouponTallies{db} }

// tallySQL returns nothing. It counts nothing if the event was counted before. The row of
// coupon_tallies is locked before rows of sale_hours, as [CouponTallies.RecountSales] does.
var tallySQL = `
with fresh as (
    insert into handled_events (handler, event_id) values ('coupon-tallies', @event) on conflict do nothing returning 1
), tallied as (
insert into coupon_tallies as y (template_id, locked, used, expired, revoked, discounted, released, refunded)
select u.* from fresh, unnest(@templates::bigint[], @locked::bigint[], @used::bigint[], @expired::bigint[], @revoked::bigint[],
    @discounted::bigint[], @released::bigint[], @refunded::bigint[])
    as u (t, locked, used, expired, revoked, discounted, released, refunded) order by u.t
on conflict (template_id) do update set locked = y.locked + excluded.locked, used = y.used + excluded.used,
    expired = y.expired + excluded.expired, revoked = y.revoked + excluded.revoked, discounted = y.discounted + excluded.discounted,
    released = y.released + excluded.released, refunded = y.refunded + excluded.refunded, changed_at = clock_timestamp()
returning template_id
)
insert into sale_hours as h (template_id, hour, refund, orders, ordered, discount, shared_orders, shared_ordered)
select s.* from tallied join (` + salesSQL(`o.id = @operation`) + `) s using (template_id)
on conflict (template_id, hour, refund) do update set orders = h.orders + excluded.orders, ordered = h.ordered + excluded.ordered,
    discount = h.discount + excluded.discount, shared_orders = h.shared_orders + excluded.shared_orders,
    shared_ordered = h.shared_ordered + excluded.shared_ordered`

// Changed counts one step of one coupon unless it was counted before.
func (s CouponTallies) Changed(ctx context.Context, eventID string, e event.Coupon) error {
	moved := func(state coupon.State) []int64 {
		var d int64
		if e.To == string(state) {
			d++
		}
		if e.From == string(state) {
			d--
		}
		return []int64{d}
	}
	took := func(steps ...coupon.Step) []int64 {
		if slices.Contains(steps, coupon.Step(e.Step)) {
			return []int64{1}
		}
		return []int64{0}
	}
	used, refunded := moved(coupon.Used), took(coupon.StepRefund)
	if coupon.Step(e.Step) == coupon.StepRestore {
		refunded[0]--
	}
	_, err := s.Pool.Exec(ctx, tallySQL, pgx.StrictNamedArgs{"event": eventID, "templates": []int64{e.TemplateID},
		"locked": moved(coupon.Locked), "used": used, "expired": moved(coupon.Expired), "revoked": moved(coupon.Revoked),
		"discounted": []int64{used[0] * e.Discount}, "released": took(coupon.StepRelease, coupon.StepTimeout),
		"refunded": refunded, "operation": e.OperationID})
	return pg.Translate(err)
}

// Expired counts one swept group unless it was counted before.
func (s CouponTallies) Expired(ctx context.Context, eventID string, e event.Expired) error {
	n := len(e.Expired)
	templates, expired, zero := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, x := range e.Expired {
		templates[i], expired[i] = x.TemplateID, x.Coupons
	}
	_, err := s.Pool.Exec(ctx, tallySQL, pgx.StrictNamedArgs{"event": eventID, "templates": templates, "expired": expired,
		"locked": zero, "used": zero, "revoked": zero, "discounted": zero, "released": zero, "refunded": zero, "operation": 0})
	return pg.Translate(err)
}

// tallySumsSQL returns the outcomes of the coupons of template $1. Once the last issued coupon
// has expired, every unused coupon counts as expired, even if the sweep has not stored the
// expiry.
const tallySumsSQL = `
select t.issued + t.returned, t.returned, greatest(0, y.locked), greatest(0, y.used),
    case when coalesce(t.valid_until, (select max(second) from claim_seconds s where s.template_id = t.id)
            + interval '1 second' + t.valid_hours * interval '1 hour') <= clock_timestamp()
        then greatest(0, t.issued + t.returned - coalesce(greatest(0, y.locked) + greatest(0, y.used) + greatest(0, y.revoked), 0)) else greatest(0, y.expired) end,
    greatest(0, y.revoked), greatest(0, y.discounted), greatest(0, y.released), greatest(0, y.refunded), coalesce(g.coupons, 0)
from ` + pg.TemplateRow + ` t left join coupon_tallies y on y.template_id = t.id left join removed_coupons g on g.template_id = t.id`

// Tally returns the outcomes of the template's coupons, as far as events have arrived.
func (s CouponTallies) Tally(ctx context.Context, templateID int64) (y coupon.Tally, err error) {
	err = s.Pool.QueryRow(ctx, tallySumsSQL, templateID).
		Scan(&y.Issued, &y.Returned, &y.Locked, &y.Used, &y.Expired, &y.Revoked, &y.Discounted, &y.Released, &y.Refunded, &y.Removed)
	if errors.Is(err, pgx.ErrNoRows) {
		return y, nil
	}
	return y, pg.Translate(err)
}
