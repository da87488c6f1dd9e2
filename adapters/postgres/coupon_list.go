package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/coupon"
)

const listedColumns = ownedColumns + `, t.kind, t.amount_off, t.threshold, t.percent_off, t.max_off, t.currency, t.target, t.product,
	t.name, t.shop_number, s.name, s.timezone, clock_timestamp()`

const listedFrom = ` from coupons c join templates t on t.id = c.template_id join shops s on s.number = t.shop_number `

func scanListed(row pgx.CollectableRow) (l coupon.Listed, err error) {
	r := &l.Rule
	return l, row.Scan(append(ownedFields(&l.Coupon), &r.Kind, &r.AmountOff, &r.Threshold, &r.PercentOff, &r.MaxOff, &r.Currency,
		&r.Target, &r.Product, &l.TemplateName, &l.ShopNumber, &l.ShopName, &l.ShopTimezone, &l.Now)...)
}

// Listed lists coupons, newest first; see [coupon.DeskStore].
func (s CouponSteps) Listed(ctx context.Context, q coupon.Query) ([]coupon.Listed, error) {
	where, args := couponFilter(q)
	args = append(args, max(1, q.Limit))
	return s.listed(ctx, `select `+listedColumns+listedFrom+`where `+strings.Join(where, " and ")+
		fmt.Sprintf(` order by c.id desc limit $%d`, len(args)), args...)
}

func (s CouponSteps) listed(ctx context.Context, sql string, args ...any) ([]coupon.Listed, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanListed)
	return list, translate(err)
}

func couponFilter(q coupon.Query) (where []string, args []any) {
	where = []string{"true"}
	add := func(cond string, arg any) {
		args = append(args, arg)
		where = append(where, strings.ReplaceAll(cond, "?", "$"+strconv.Itoa(len(args))))
	}
	if q.ID != 0 {
		add("c.id = ?", q.ID)
	}
	if q.UserID != 0 {
		add("c.user_id = ?", q.UserID)
	}
	if q.OrderID != "" { // also orders that have let the coupon go
		add("c.id in (select o.coupon_id from coupon_operations o where o.order_id = ? and o.order_id <> '')", q.OrderID)
	}
	if q.TemplateID != 0 {
		add("c.template_id = ?", q.TemplateID)
	}
	switch q.State {
	case "":
	case coupon.Expired:
		where = append(where, "(c.state = 'expired' or c.state = 'unused' and c.expires_at <= clock_timestamp())")
	case coupon.Unused:
		where = append(where, "c.state = 'unused' and c.expires_at > clock_timestamp()")
	default:
		add("c.state = ?", q.State)
	}
	if len(q.Shops) > 0 {
		add("t.shop_number = any(?)", q.Shops)
	}
	if q.BeforeID != 0 {
		add("c.id < ?", q.BeforeID)
	}
	return where, args
}

// Locks lists locked coupons by the end of their lock; see [coupon.DeskStore].
func (s CouponSteps) Locks(ctx context.Context, shops []int64, after coupon.LockCursor, limit int) ([]coupon.Listed, error) {
	return s.listed(ctx, `select `+listedColumns+listedFrom+`where c.state = 'locked' and (c.locked_until, c.id) > ($1, $2)
		and (cardinality($3::bigint[]) = 0 or t.shop_number = any($3)) order by c.locked_until, c.id limit $4`,
		after.Until, after.ID, append([]int64{}, shops...), max(1, limit))
}

// Operations lists a coupon's log, oldest first.
func (s CouponSteps) Operations(ctx context.Context, id int64, limit int) ([]coupon.Operation, error) {
	rows, err := s.pool.Query(ctx, `select id, coupon_id, order_id, step, outcome, from_state, to_state, order_amount, eligible, discount,
		actor, reason, at from coupon_operations where coupon_id = $1 order by id limit $2`, id, limit)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[coupon.Operation])
	return list, translate(err)
}
