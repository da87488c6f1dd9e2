package audience

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/timeline"
)

// timelineSQL returns up to @limit lines of user @user after the cursor, newest first, from one
// branch per source. Each branch reads the rows of this user alone, however many users there are:
// by reservations_user and the primary key of former_reservations; for openings by the primary
// keys of drop_openings and campaign_openings, with the drops that the user reserved and the
// newest thousand campaigns; by coupons_user, the newest thousand coupons, and the unique index
// of coupon_operations by coupon; by orders_user and user_changes_user.
const timelineSQL = `
with mine as materialized (
    select c.id, c.template_id, c.origin, c.issued_at, t.name, t.currency from (select * from coupons where user_id = @user order by id desc limit 1000) c
    join templates t on t.id = c.template_id
    where @part in ('', 'coupons', 'orders') and (cardinality(@shops::bigint[]) = 0 or t.shop_number = any(@shops))
), drops as materialized (
    select r.template_id, t.name, r.created_at as reserved_at, null::timestamptz as withdrawn_at from reservations r join templates t on t.id = r.template_id
    where r.user_id = @user and @part in ('', 'reservations', 'openings') and (cardinality(@shops::bigint[]) = 0 or t.shop_number = any(@shops))
    union all
    select r.template_id, t.name, null, r.at from former_reservations r join templates t on t.id = r.template_id
    where r.user_id = @user and @part in ('', 'reservations', 'openings') and (cardinality(@shops::bigint[]) = 0 or t.shop_number = any(@shops))
), line (rank, id, at, kind, template_id, name, campaign_id, campaign, coupon_id, order_id, amount, discount, refunded, currency, channels, slot, actor) as (
    select 1, template_id, reserved_at, 'reserved', template_id, name, 0::bigint, '', 0::bigint, '', 0::bigint, 0::bigint, 0::bigint, '', 0, 0, ''
    from drops where reserved_at is not null and @part in ('', 'reservations')
    union all
    select 2, template_id, withdrawn_at, 'withdrawn', template_id, name, 0, '', 0, '', 0, 0, 0, '', 0, 0, ''
    from drops where withdrawn_at is not null and @part in ('', 'reservations')
    union all
    select 3, o.template_id, o.opened_at, 'opened', o.template_id, d.name, 0, '', 0, '', 0, 0, 0, '', 1 << o.channel, o.slot, ''
    from (select distinct template_id, name from drops) d join drop_openings o on o.template_id = d.template_id and o.user_id = @user
    where @part in ('', 'openings')
    union all
    select 4, c.id, o.opened_at, 'opened', 0, '', c.id, c.name, 0, '', 0, 0, 0, '', 0, 0, ''
    from (select id, name, shop_number from campaigns where state <> 'draft' order by id desc limit 1000) c
    join campaign_openings o on o.campaign_id = c.id and o.user_id = @user
    where @part in ('', 'openings') and (cardinality(@shops::bigint[]) = 0 or c.shop_number = any(@shops))
    union all
    select 5, id, issued_at, case origin when 'claim' then 'claimed' when 'grant' then 'given' else origin end, template_id, name, 0, '', id, '', 0, 0, 0, '', 0, 0, ''
    from mine where @part in ('', 'coupons')
    union all
    select 6, o.id, o.at, case o.step when 'lock' then 'locked' when 'confirm' then 'used' when 'restore' then 'used' when 'release' then 'released' when 'timeout' then 'timed_out'
        when 'refund' then 'refunded' when 'expire' then 'expired' when 'suspend' then 'suspended' when 'reinstate' then 'restored' else 'revoked' end,
        m.template_id, m.name, 0, '', m.id, o.order_id, o.order_amount, o.discount, 0, m.currency, 0, 0, o.actor
    from mine m join coupon_operations o on o.coupon_id = m.id
    where o.outcome in ('done', 'undone') and o.from_state <> o.to_state
        and (@part in ('', 'coupons') or @part = 'orders' and o.step in ('confirm', 'refund', 'restore'))
    union all
    select 7, hashtextextended(o.order_id, o.shop_number), o.ordered_at, 'ordered', 0, '', 0, '', 0, o.order_id, o.amount, 0, o.refunded, o.currency, 0, 0, ''
    from orders o where o.user_id = @user and @part in ('', 'orders') and (cardinality(@shops::bigint[]) = 0 or o.shop_number = any(@shops))
        and not exists (select from mine m join coupon_operations x on x.coupon_id = m.id and x.order_id = o.order_id and x.step = 'confirm' and x.outcome = 'done')
    union all
    select 8, u.id * 4 + c.n, u.at, c.kind, 0, '', 0, '', 0, '', 0, 0, 0, '', c.bits, 0, ''
    from user_changes u cross join lateral (values (0, 'opted_out', u.opted_out), (1, 'opted_in', u.opted_in), (2, 'email_changed', u.contacts & 1),
        (3, 'phone_changed', u.contacts & 2)) c (n, kind, bits)
    where u.user_id = @user and c.bits <> 0 and @part in ('', 'choices')
    union all
    select 9, hashtextextended(r.refund_id, hashtextextended(r.order_id, 0)), r.at, 'part_refunded', 0, '', 0, '', 0, r.order_id, 0, 0, r.pay_back, o.currency, 0, 0, ''
    from coupon_orders o join coupon_order_refunds r using (order_id)
    where o.user_id = @user and cardinality(r.coupons) = 0 and @part in ('', 'orders') and (cardinality(@shops::bigint[]) = 0 or o.shop_number = any(@shops))
)
select at, rank, id, kind, template_id, name, campaign_id, campaign, coupon_id, order_id, amount, discount, refunded, currency, channels, slot, actor
from line where (at, rank, id) < (@at, @rank, @id) order by at desc, rank desc, id desc limit @limit`

// Timeline returns lines of the user's timeline; see [timeline.Store].
func (s Users) Timeline(ctx context.Context, q timeline.Query) ([]timeline.Line, error) {
	s.DB = s.Reports(ctx)
	if q.After.IsZero() {
		q.After.At = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) // after every line
	}
	rows := pg.Rows(ctx, s.Pool, timelineSQL, pgx.NamedArgs{"user": q.UserID, "part": string(q.Group), "shops": append([]int64{}, q.Shops...),
		"at": q.After.At, "rank": q.After.Rank, "id": q.After.ID, "limit": max(1, q.Limit)})
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l timeline.Line, err error) {
		var channels int16
		err = row.Scan(&l.At, &l.Rank, &l.ID, &l.Kind, &l.TemplateID, &l.Drop, &l.CampaignID, &l.Campaign, &l.CouponID, &l.OrderID,
			&l.Amount, &l.Discount, &l.Refunded, &l.Currency, &channels, &l.Slot, &l.By)
		l.Channels, l.At = uint8(channels), l.At.UTC()
		return l, err
	})
	return list, pg.Translate(err)
}
