package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/report"
)

// sumsColumns are the fields of a [report.Sums] over rows h of sale_hours, without the
// currency. onceColumns leave out the orders that another drop of the shop counted.
const (
	sumsColumns = `coalesce(sum(h.orders) filter (where not h.refund), 0)::bigint, coalesce(sum(h.ordered) filter (where not h.refund), 0)::bigint,
    coalesce(sum(h.discount) filter (where not h.refund), 0)::bigint, coalesce(sum(h.orders) filter (where h.refund), 0)::bigint,
    coalesce(sum(h.ordered) filter (where h.refund), 0)::bigint, coalesce(sum(h.discount) filter (where h.refund), 0)::bigint`
	onceColumns = `coalesce(sum(h.orders - h.shared_orders) filter (where not h.refund), 0)::bigint,
    coalesce(sum(h.ordered - h.shared_ordered) filter (where not h.refund), 0)::bigint, coalesce(sum(h.discount) filter (where not h.refund), 0)::bigint,
    coalesce(sum(h.orders - h.shared_orders) filter (where h.refund), 0)::bigint,
    coalesce(sum(h.ordered - h.shared_ordered) filter (where h.refund), 0)::bigint, coalesce(sum(h.discount) filter (where h.refund), 0)::bigint`
)

func sumsFields(s *report.Sums) []any {
	return []any{&s.Currency, &s.Paid, &s.PaidAmount, &s.PaidDiscount, &s.Refunds, &s.RefundedAmount, &s.RefundedDiscount}
}

// Sums returns the drop's orders, as far as events have arrived; see [report.MoneyStore].
func (s Reports) Sums(ctx context.Context, templateID int64) (r report.Sums, err error) {
	err = s.DB.Reports(ctx).Pool.QueryRow(ctx, `select t.currency, `+sumsColumns+` from templates t left join sale_hours h on h.template_id = t.id
		where t.id = $1 group by 1`, templateID).Scan(sumsFields(&r)...)
	return r, pg.Translate(err)
}

// Hours returns the drop's orders by hour; see [report.MoneyStore].
func (s Reports) Hours(ctx context.Context, templateID int64) ([]report.Hour, error) {
	return s.hours(ctx, `select h.hour, t.currency, `+sumsColumns+` from sale_hours h join templates t on t.id = h.template_id
		where h.template_id = $1 group by 1, 2 order by 1`, templateID)
}

// Shops returns the orders of shops by hour and currency; see [report.MoneyStore].
func (s Reports) Shops(ctx context.Context, shops []int64, from, to time.Time) ([]report.Hour, error) {
	return s.hours(ctx, `select h.hour, t.currency, `+onceColumns+` from sale_hours h join templates t on t.id = h.template_id
		where h.hour >= $2 and h.hour < $3 and (cardinality($1::bigint[]) = 0 or t.shop_number = any($1)) group by 1, 2 order by 1, 2`, append([]int64{}, shops...), from, to)
}

func (s Reports) hours(ctx context.Context, sql string, args ...any) ([]report.Hour, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.DB.Reports(ctx).Pool, sql, args...), func(row pgx.CollectableRow) (h report.Hour, err error) {
		err = row.Scan(append([]any{&h.From}, sumsFields(&h.Sums)...)...)
		return h, err
	})
	return list, pg.Translate(err)
}

// withoutSQL returns whether shop $1 reported any order in currency $2 from $3 to before $4,
// and the number and amount of the orders for which no coupon of the shop was used, refunds
// netted. An order that was refunded in full does not count.
//
// The uses of an order are looked up first (offset 0), by the index of orders, whose collation is
// not the collation of the table orders. The planner would otherwise walk all coupons of the shop
// for each order.
const withoutSQL = `
select count(*) > 0, count(*) filter (where plain), coalesce(sum(amount - refunded) filter (where plain), 0)::bigint
from (select o.amount, o.refunded, o.refunded < o.amount and not exists (
        select from (select e.coupon_id from coupon_operations e
                where e.order_id = o.order_id collate "default" and e.order_id <> '' and e.step = 'confirm' and e.outcome = 'done' offset 0) e
            join coupons c on c.id = e.coupon_id join templates t on t.id = c.template_id
        where t.shop_number = o.shop_number) as plain
    from orders o where o.shop_number = $1 and o.currency = $2 and o.ordered_at >= $3 and o.ordered_at < $4 offset 0) o`

// Without returns the orders without coupons that the shop reported; see [report.MoneyStore].
func (s Reports) Without(ctx context.Context, shop int64, currency string, from, to time.Time) (p report.Plain, err error) {
	err = s.DB.Reports(ctx).Pool.QueryRow(ctx, withoutSQL, shop, currency, from, to).Scan(&p.Reported, &p.Orders, &p.Amount)
	return p, pg.Translate(err)
}

// sentSQL returns the number of corrections, notices of the end and notices of expiry sent
// about template $1, and the cost of its text messages.
var sentSQL = `
select coalesce((select sum(b.sent_count) from announcements a join batches b on b.kind = a.kind and b.owner_id = a.id where a.template_id = $1), 0)::bigint
        + coalesce((select sum(sent) from notice_days where template_id = $1), 0)::bigint, ` + pg.SMSCosts("sms_drop_costs where template_id = $1")

// Sent returns the messages about the drop besides reminders, and what its text messages
// cost; see [report.MoneyStore].
func (s Reports) Sent(ctx context.Context, templateID int64) (messages int64, sms delivery.SMSCosts, err error) {
	err = s.DB.Reports(ctx).Pool.QueryRow(ctx, sentSQL, templateID).Scan(&messages, &sms)
	return messages, sms, pg.Translate(err)
}

// shopsSMSSQL returns what the text messages of the shops $1 (none = all) cost in the hours from $2 to
// before $3.
var shopsSMSSQL = `select ` + pg.SMSCosts(`(
    select c.currency, c.parts, c.micros from sms_drop_costs c join templates t on t.id = c.template_id
    where c.hour >= $2 and c.hour < $3 and (cardinality($1::bigint[]) = 0 or t.shop_number = any($1))
    union all
    select c.currency, c.parts, c.micros from sms_campaign_costs c join campaigns t on t.id = c.campaign_id
    where c.hour >= $2 and c.hour < $3 and (cardinality($1::bigint[]) = 0 or t.shop_number = any($1))) c`)

// ShopsSMS returns what the text messages of the shops cost; see [report.MoneyStore].
func (s Reports) ShopsSMS(ctx context.Context, shops []int64, from, to time.Time) (sms delivery.SMSCosts, err error) {
	err = s.DB.Reports(ctx).Pool.QueryRow(ctx, shopsSMSSQL, append([]int64{}, shops...), from, to).Scan(&sms)
	return sms, pg.Translate(err)
}
