package years

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/lab/bench/stack"
)

// rows is how many rows a database has.
type rows struct{ drops, users, coupons, reservations int }

// Of a year at scale 1.
const (
	yearDrops   = 730_000
	yearUsers   = 10_000_000
	couponsEach = 137 // 100 million a year
	bookedEach  = 40
	slotsEach   = 12
	channels    = 5
)

func sizeOf(scale float64, days int) rows {
	drops := max(1, int(scale*yearDrops*float64(days)/365))
	return rows{drops, max(1000, int(scale*yearUsers)), drops * couponsEach, drops * bookedEach}
}

// fill stores drops that ended within the given number of days, evenly, with all the rows that
// they would have left without housekeeping.
func fill(ctx context.Context, s *stack.Stack, n rows, days int) error {
	sent := roaring64.New()
	sent.AddRange(1, bookedEach)
	set, err := sent.ToBytes()
	if err != nil {
		return err
	}
	const of = ` from templates t where t.state = 'closed'`
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{`insert into shops (number, name, timezone) values (10, 'Ten', 'Asia/Shanghai') on conflict do nothing`, nil},
		{`insert into users (id, name, email, locale, timezone) select n, 'User ' || n, 'u' || n || '@bench.example', 'en', 'Asia/Shanghai' from generate_series(1, $1::bigint) n`, []any{n.users}},
		{`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, issued, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state, published_at, ended_at)
			select 10, 'Drop number ' || n, 'amount_off', 1000, 'CNY', 'shop', $3, $3, 5, date_trunc('second', at), at + interval '12 hours', 48, 'claim', 'durable', 'closed', at, at + interval '12 hours'
			from (select n, now() - interval '1 day' - ($1::bigint - n) * ($2 * interval '1 day' / $1::bigint) as at from generate_series(1, $1::bigint) n) d`, []any{n.drops, days, couponsEach}},
		{`insert into slots (template_id, slot, opens_at, due_at, state, fired_at, cut_at, finished_at)
			select t.id, k, t.opens_at, t.opens_at - k * interval '5 minutes', 'finished', t.opens_at, t.opens_at, t.opens_at` +
			` from templates t, generate_series(1, $1::int) k where t.state = 'closed'`, []any{slotsEach}},
		{`insert into slot_results (slot_id, channel, reserved, sent, late, done_at, expected)
			select s.id, c, $1, $1, '{"3": 40}', s.opens_at, 1000 from slots s, generate_series(0, $2::int - 1) c`, []any{bookedEach, channels}},
		{`insert into bookings select t.id, k, c, $1 from templates t, generate_series(1, $2::int) k, generate_series(0, $3::int - 1) c where t.state = 'closed'`, []any{bookedEach, slotsEach, channels}},
		{`insert into reservations (template_id, user_id, slots, created_at) select t.id, (t.id * 7919 + u * 104729) % $1 + 1, 1, t.opens_at - interval '1 day'` +
			` from templates t, generate_series(1, $2::int) u where t.state = 'closed' on conflict do nothing`, []any{n.users, bookedEach}},
		{`insert into booking_growth select t.id, date_trunc('minute', t.opens_at) - m * interval '1 hour', 2 from templates t, generate_series(1, 20) m where t.state = 'closed'`, nil},
		{`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, sent, sent_count, created_at, finished_at)
			select 'reminder', s.id, s.template_id, 0, 1, $2::int, 'done', s.due_at, s.opens_at, $1, $2::int, $1, $2::int, s.due_at, s.due_at from slots s where s.slot = 1 order by s.due_at`, []any{set, bookedEach - 1}},
		{`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at, order_id, used_at)
			select t.id, (t.id * 7919 + u * 104729) % $1 + 1, t.id * 1000 + u, 'claim', case when u % 2 = 0 then 'used' else 'expired' end, t.opens_at, t.opens_at + interval '60 hours',
				case when u % 2 = 0 then 'o' || t.id || '-' || u else '' end, t.opens_at + interval '1 hour'` +
			` from templates t, generate_series(1, $2::int) u where t.state = 'closed'`, []any{n.users, couponsEach}},
		{`insert into claim_counts (template_id, user_id, issued) select template_id, user_id, count(*) from coupons group by 1, 2`, nil},
		{`insert into claim_seconds select t.id, t.opens_at + k * interval '1 second', 46` + ` from templates t, generate_series(0, 2) k where t.state = 'closed'`, nil},
		{`insert into coupon_tallies (template_id, used, expired, changed_at) select t.id, 68, 69, t.opens_at + interval '60 hours'` + of, nil},
		{`insert into figure_recounts select t.id, f, t.opens_at + interval '100 hours' from templates t, unnest(array['tallies', 'sales', 'bookings']) f where t.state = 'closed'`, nil},
		{`insert into stock_counts (template_id, coupons, counted_to, seen_to, seen_xact, checked_to) select t.id, $1, m, m, '1', m` +
			` from templates t, (select max(id) as m from coupons) c where t.state = 'closed'`, []any{couponsEach}},
		{`insert into sale_hours (template_id, hour, refund, orders, ordered) select t.id, date_trunc('hour', t.opens_at) + k * interval '1 hour', false, 30, 90000` +
			` from templates t, generate_series(0, 1) k where t.state = 'closed'`, nil},
		{`insert into coupon_operations (coupon_id, step, outcome, from_state, to_state, at) select id, 'expire', 'done', 'unused', 'expired', expires_at from coupons where state = 'expired' order by id`, nil},
		{`insert into audit (at, actor, action, object_kind, object_id, shop_number) select t.published_at, 'staff:1 Ada', 'template.publish', 'template', t.id::text, 10` + of, nil},
		{`vacuum (analyze)`, nil},
		{`checkpoint`, nil},
	} {
		if _, err := s.SQL.Exec(ctx, step.sql, step.args...); err != nil {
			return fmt.Errorf("%.60s…: %w", step.sql, err)
		}
	}
	return nil
}
