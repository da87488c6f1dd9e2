package coupons

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
)

var listedColumns = ownedColumns + `, ` + ruleColumns + `, t.name, t.shop_number, s.name, s.timezone, clock_timestamp()`

const (
	listedFrom = ` from coupons c join templates t on t.id = c.template_id join shops s on s.number = t.shop_number `
	// listedOfAny finds the template of each coupon as [pg.TemplateRow] does. A list that is
	// limited to certain shops starts from the shops' templates instead.
	listedOfAny = ` from coupons c cross join lateral
		(select * from templates where id between c.template_id and c.template_id order by id desc limit 1) t join shops s on s.number = t.shop_number `
)

func scanListed(row pgx.CollectableRow) (l coupon.Listed, err error) {
	fields := append(pg.RowPlaces(&l.Coupon), pg.RowPlaces(&l.Rule)...)
	return l, row.Scan(append(fields, &l.TemplateName, &l.ShopNumber, &l.ShopName, &l.ShopTimezone, &l.Now)...)
}

// maxOverdue is the number of overdue coupons up to which they are looked up by id. The sweep
// expires thousands of coupons a second, so more are overdue only after very many coupons
// expired at once.
const maxOverdue = 10_000

// overdueSQL returns the coupons that the sweep will expire. Its form makes the planner, which
// expects more rows, use their index.
const overdueSQL = `select o.id from coupons o where o.state = 'unused' and o.expires_at <= now() order by o.expires_at, o.id limit`

// stateConditions returns conditions that together select the coupons in the state. Each
// condition can read the newest coupons from an index. Coupons shown as expired are stored as
// expired, or the sweep will expire them.
func (s CouponSteps) stateConditions(ctx context.Context, state coupon.State) ([]string, error) {
	switch state {
	case "":
		return []string{""}, nil
	case coupon.Unused:
		return []string{"c.state = 'unused' and c.expires_at > now()"}, nil
	case coupon.Expired:
		var overdue int
		err := s.Pool.QueryRow(ctx, fmt.Sprintf(`select count(*) from (%s %d) o`, overdueSQL, maxOverdue+1)).Scan(&overdue)
		if overdue > maxOverdue { // so many that the newest are soon found
			return []string{"c.state = 'expired'", "c.state = 'unused' and c.expires_at <= now()"}, pg.Translate(err)
		}
		return []string{"c.state = 'expired'", fmt.Sprintf("c.id = any(array(%s %d))", overdueSQL, maxOverdue)}, pg.Translate(err)
	}
	return nil, nil
}

// Listed lists coupons, newest first; see [coupon.DeskStore].
func (s CouponSteps) Listed(ctx context.Context, q coupon.Query) ([]coupon.Listed, error) {
	c := couponFilter(q)
	newest := fmt.Sprintf(" order by c.id desc limit %d", max(1, q.Limit))
	states, err := s.stateConditions(ctx, q.State)
	if err != nil {
		return nil, err
	}
	if states == nil {
		c.Add("c.state = ?", q.State)
		states = []string{""}
	}
	from := listedOfAny
	if len(q.Shops) > 0 {
		from = listedFrom
	}
	var parts []string
	for _, condition := range states {
		all := pg.Conditions{List: c.List, Args: c.Args}
		if condition != "" {
			all.List = append([]string{condition}, c.List...)
		}
		parts = append(parts, `(select `+listedColumns+from+all.Where()+newest+`)`)
	}
	sql := parts[0]
	if len(parts) > 1 {
		sql = `select * from (` + strings.Join(parts, " union all ") + `) c` + newest
	}
	return s.listed(ctx, sql, c.Params()...)
}

func (s CouponSteps) listed(ctx context.Context, sql string, args ...any) ([]coupon.Listed, error) {
	s.DB = s.Reports(ctx)
	return pg.Collect(ctx, s.Pool, scanListed, sql, args...)
}

// couponFilter returns the conditions of the query except the state.
func couponFilter(q coupon.Query) *pg.Conditions {
	c := &pg.Conditions{}
	if q.ID != 0 {
		c.Add("c.id = ?", q.ID)
	}
	if q.UserID != 0 {
		c.Add("c.user_id = ?", q.UserID)
	}
	if q.OrderID != "" { // also orders that have let the coupon go
		c.Add("c.id in (select o.coupon_id from coupon_operations o where o.order_id = ? and o.order_id <> '')", q.OrderID)
	}
	if q.TemplateID != 0 {
		c.Add("c.template_id = ?", q.TemplateID)
	}
	if len(q.Shops) > 0 {
		c.Add("t.shop_number = any(?)", q.Shops)
	}
	if q.BeforeID != 0 {
		c.Add("c.id < ?", q.BeforeID)
	}
	return c
}

// Locks lists locked coupons by the end of their lock; see [coupon.DeskStore].
func (s CouponSteps) Locks(ctx context.Context, shops []int64, after coupon.LockCursor, limit int) ([]coupon.Listed, error) {
	return s.listed(ctx, `select `+listedColumns+listedFrom+`where c.state = 'locked' and (c.locked_until, c.id) > ($1, $2)
		and (cardinality($3::bigint[]) = 0 or t.shop_number = any($3)) order by c.locked_until, c.id limit $4`,
		after.Until, after.ID, append([]int64{}, shops...), max(1, limit))
}

// Operations lists a coupon's log, oldest first.
func (s CouponSteps) Operations(ctx context.Context, id int64, limit int) ([]coupon.Operation, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[coupon.Operation], `select id, coupon_id, order_id, step, outcome, from_state, to_state, order_amount, eligible, discount,
		actor, reason, at from coupon_operations where coupon_id = $1 order by id limit $2`, id, limit)
}

// RevokedBy returns the job that revoked a coupon; see [coupon.DeskStore].
func (s CouponSteps) RevokedBy(ctx context.Context, id int64) (jobID int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(job_id), 0) from coupon_operations
		where coupon_id = $1 and order_id = '' and step = 'revoke' and outcome = 'done'`, id).Scan(&jobID)
	return jobID, pg.Translate(err)
}

// GivenByKey returns the coupon of a grant's key; see [coupon.AdminStore].
func (s CouponSteps) GivenByKey(ctx context.Context, key string) (id int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(id), 0) from coupons where origin = 'grant' and origin_key = $1 and origin_key <> ''`, key).Scan(&id)
	return id, pg.Translate(err)
}
