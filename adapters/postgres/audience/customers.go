package audience

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/timeline"
	"dropbell/domain/user"
)

// newestActs is how many rows of each table the list of recent customers reads.
const newestActs = 2000

// actsSQL returns the last act of each of the @limit users whose last acts are the newest: user, instant,
// kind, drop, order and channels. Each branch reads the newest @newest rows of its table, by the primary
// key or by orders_age, however many rows there are. Rows that are no acts of users, such as coupons that
// expired, are skipped.
const actsSQL = `
with act (user_id, at, kind, template_id, order_id, bits) as (
    select user_id, issued_at, case origin when 'claim' then 'claimed' else 'code' end, template_id, '', 0
    from (select * from coupons order by id desc limit @newest) c where origin in ('claim', 'code')
    union all
    select c.user_id, o.at, case o.step when 'lock' then 'locked' else 'used' end, c.template_id, o.order_id, 0
    from (select * from coupon_operations order by id desc limit @newest) o join coupons c on c.id = o.coupon_id
    where o.step in ('lock', 'confirm') and o.outcome = 'done'
    union all
    select user_id, at, case when opted_out <> 0 then 'opted_out' when opted_in <> 0 then 'opted_in' when contacts & 1 <> 0 then 'email_changed' else 'phone_changed' end,
        0, '', case when opted_out <> 0 then opted_out else opted_in end
    from (select * from user_changes order by id desc limit @newest) u
), seen as (
    select a.user_id, a.at, a.kind, a.template_id, t.name, a.order_id, a.bits from act a left join templates t on t.id = a.template_id
    where a.template_id = 0 or cardinality(@shops::bigint[]) = 0 or t.shop_number = any(@shops)
    union all
    select user_id, ordered_at, 'ordered', 0, '', order_id, 0 from (select * from orders order by ordered_at desc limit @newest) o
    where user_id is not null and (cardinality(@shops::bigint[]) = 0 or shop_number = any(@shops))
), last as (
    select distinct on (user_id) * from seen s where not exists (select from erased_users e where e.user_id = s.user_id) order by user_id, at desc, kind desc
)
select user_id, at, kind, template_id, coalesce(name, ''), order_id, bits from last order by at desc, user_id limit @limit`

// Recent returns the users with the newest acts; see [timeline.Customers].
func (s Users) Recent(ctx context.Context, shops []int64, limit int) (list []timeline.Customer, err error) {
	s.DB = s.Reports(ctx)
	rows, err := s.Pool.Query(ctx, actsSQL, pgx.NamedArgs{"shops": append([]int64{}, shops...), "newest": newestActs, "limit": limit})
	if err != nil {
		return nil, pg.Translate(err)
	}
	ids := []user.ID{}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c timeline.Customer, err error) {
		var bits int16
		l := &c.Last
		err = row.Scan(&c.User.ID, &l.At, &l.Kind, &l.TemplateID, &l.Drop, &l.OrderID, &bits)
		l.Channels, l.At = uint8(bits), l.At.UTC()
		ids = append(ids, c.User.ID)
		return c, err
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	rows, err = s.Pool.Query(ctx, `select `+userColumns+` from users where id = any($1)
		union all (select `+userColumns+` from users where id <> all($1) order by id limit $2)`, ids, max(0, limit-len(ids)))
	if err != nil {
		return nil, pg.Translate(err)
	}
	users, err := pgx.CollectRows(rows, scanUser)
	if err != nil {
		return nil, pg.Translate(err)
	}
	for _, u := range users {
		if i := slices.Index(ids, u.ID); i >= 0 {
			list[i].User = u
		} else {
			list = append(list, timeline.Customer{User: u})
		}
	}
	return list, s.suppressed(ctx, list)
}

// suppressed marks the users whose mail address is suppressed.
func (s Users) suppressed(ctx context.Context, list []timeline.Customer) error {
	addresses := make([]string, len(list))
	for i, c := range list {
		addresses[i] = strings.ToLower(c.User.Email)
	}
	rows, err := s.Pool.Query(ctx, `select address from suppressions where address = any($1) and released_at is null`, addresses)
	if err != nil {
		return pg.Translate(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for i, address := range addresses {
		list[i].Suppressed = slices.Contains(found, address)
	}
	return pg.Translate(err)
}
