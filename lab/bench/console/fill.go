package console

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/lab/bench/stack"
)

// drops is how many templates share the reservations. letters is how many campaigns have
// batches.
const (
	drops   = 5
	letters = 100
)

// fill writes all rows directly into the tables, in the form in which the product stores them.
// It does nothing if a kept database has the rows already.
func fill(ctx context.Context, s *stack.Stack, n size) error {
	filled, err := known(ctx, s, n)
	if err != nil || filled {
		return err
	}
	var g errgroup.Group
	const hands = 3 // the largest table is filled by several connections
	for hand := range hands {
		g.Go(func() error {
			return run(ctx, s, step{`insert into reservations (template_id, user_id, slots) select n % $2 + 1, n / $2 + 1, 4097
				from generate_series($1::bigint * $3 / $4, $1::bigint * ($3 + 1) / $4 - 1) n`, []any{n.reservations, drops, hand, hands}})
		})
	}
	g.Go(func() error {
		if err := run(ctx, s, templates(n)...); err != nil {
			return err
		}
		return batches(ctx, s, n)
	})
	g.Go(func() error { return run(ctx, s, others(n)...) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := deliverydb.NewDeadLetters(s.DB).RecountDeadLetters(ctx); err != nil {
		return err
	}
	return run(ctx, s, step{`vacuum (analyze)`, nil}, step{`create table bench_filled as select $1::text as size`, []any{fmt.Sprint(n)}})
}

// known reports whether the database was filled with the same sizes. It returns an error if the
// database was filled with other sizes.
func known(ctx context.Context, s *stack.Stack, n size) (bool, error) {
	var found bool
	if err := s.SQL.QueryRow(ctx, `select to_regclass('bench_filled') is not null`).Scan(&found); err != nil || !found {
		return false, err
	}
	var has string
	if err := s.SQL.QueryRow(ctx, `select size from bench_filled`).Scan(&has); err != nil {
		return false, err
	}
	if has != fmt.Sprint(n) {
		return false, errors.New("the kept database holds another size: " + has)
	}
	return true, nil
}

// A step is one statement with its arguments.
type step struct {
	sql  string
	args []any
}

func run(ctx context.Context, s *stack.Stack, steps ...step) error {
	for _, st := range steps {
		if _, err := s.SQL.Exec(ctx, st.sql, st.args...); err != nil {
			return fmt.Errorf("%w in %.60s", err, st.sql)
		}
	}
	return nil
}

// templates are the drops and campaigns with their dependent rows.
func templates(n size) []step {
	return []step{
		{`do $$ declare t text; begin
			for t in select name from cell_identities loop execute format('alter table %I alter id set increment by 1', t); end loop;
		end $$`, nil}, // the addresses name rows by their numbers
		{`insert into shops (number, name, timezone) select n, 'Shop ' || n, 'Asia/Shanghai' from generate_series(10, 29) n`, nil},
		{`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state, published_at)
			select 10 + n % 20, 'Drop number ' || n, 'amount_off', 1000, 'CNY', 'shop', 1000000, 1, date_trunc('second', now()) + (n - 10) * interval '7 minutes',
				date_trunc('second', now()) + (n - 10) * interval '7 minutes' + interval '3 days', 48, 'claim', 'durable',
				case when n % 4999 = 0 then 'paused' when n % 3 = 0 then 'draft' else 'published' end, case when n % 3 <> 0 then now() end from generate_series(1, $1) n`, []any{n.templates}},
		{`insert into slots (template_id, slot, opens_at, due_at, state, fired_at, cut_at, finished_at)
			select t.id, s, t.opens_at, t.opens_at - s * interval '5 minutes', 'finished', t.opens_at - s * interval '5 minutes', now(), now()
			from templates t, generate_series(1, 12) s where t.id <= $1`, []any{drops}},
		{`insert into bookings select t, s, c, $1 from generate_series(1, $2) t, generate_series(1, 12) s, generate_series(0, 1) c`, []any{n.reservations / drops, drops}},
		{`insert into booking_growth select t, date_trunc('minute', now()) - m * interval '1 minute', 100 from generate_series(1, $1) t, generate_series(1, 2000) m`, []any{drops}},
		{`insert into campaigns (shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by, published_at, started_at, cut_at, ended_at, settled_at, people, sent)
			select 10 + n % 20, 'Season letter ' || n, n % 2, '{"variants": [{"percent": 100, "texts": {"": {"title": "Hello", "body": "Good day"}}}]}', '{"kind": "all"}',
				at, at + interval '1 hour', case when n % 999 = 0 then 'paused' else 'finished' end, 'staff:1', 'staff:1 Ada', at, at, at, at, at, 20000, 16600
			from generate_series(1, $1) n, lateral (select now() - ($1 - n) * interval '30 minutes' as at) w`, []any{n.campaigns}},
		{`insert into campaign_limits (shop_number, per_day, per_week) select n, 2, 5 from generate_series(10, 29) n`, nil},
		{`insert into code_batches (template_id, first_serial, count, key_id, state, generated, created_by, ready_at)
			select 100 + n % 50, n * 1000, 1000, 1, 'ready', 1000, 'staff:1 Ada', now() from generate_series(1, 2000) n`, nil},
	}
}

// others are the users, their coupons, and staff's rows.
func others(n size) []step {
	return []step{
		{`insert into users (id, name, email, phone, attributes) select n, 'User ' || n, 'user' || n || '@example.com', '+86' || (13000000000 + n),
			jsonb_build_object('tier', (array['gold', 'silver', 'none'])[n % 3 + 1], 'score', n % 100) from generate_series(1, $1) n`, []any{n.users}},
		{`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at, order_id, locked_at, locked_until, used_at)
			select n % $2 + 1, n % $3 + 1, n, 'claim', what, now() - interval '1 day', now() + interval '1 day' * (case what when 'expired' then -1 else 7 end),
				case when what in ('locked', 'used') then 'order-' || n else '' end, case what when 'locked' then now() end,
				case what when 'locked' then now() + interval '10 minutes' end, case what when 'used' then now() end
			from generate_series(1, $1::bigint) n, lateral (select case when n % 5003 = 0 then 'revoked' when n % 997 = 0 then 'locked' when n % 7 = 0 then 'used'
				when n % 11 = 0 then 'expired' else 'unused' end as what) w`, []any{n.coupons, drops, n.users}},
		{`insert into notices (user_id, template_id, day, days, due_at, expires_at) select user_id, template_id, current_date + 5, 2, now() + interval '5 days', expires_at
			from coupons where state = 'unused' on conflict do nothing`, nil},
		{`insert into notice_days (day, template_id, planned) select day, template_id, count(*) from notices group by 1, 2`, nil},
		{`insert into audit (at, actor, action, object_kind, object_id, shop_number, reason, before, after)
			select now() - ($1 - n) * interval '1 minute', 'staff:' || n % 40 || ' Member ' || n % 40, case n % 50 when 0 then 'key.create' else 'template.' || (array['edit', 'move', 'pause'])[n % 3 + 1] end,
				'template', n % 5000, 10 + n % 20, case when n % 2 = 0 then 'because of case ' || n else '' end, '{"OpensAt": "2026-11-20T12:00:00Z", "Stock": 1}', '{"OpensAt": "2026-11-20T13:00:00Z", "Stock": 1}'
			from generate_series(1, $1::int) n`, []any{n.audit}},
		{`insert into jobs (kind, title, needs, state, total, done, created_by, actor, started_at, finished_at)
			select 'templates.bulk', 'Pause ' || n || ' templates', 'manage_templates', 'done', n, n, 'staff:1 Ada', '{}', now(), now() from generate_series(1, 5000) n`, nil},
		{`insert into segments (name, kind, rule, created_by, updated_at) select 'Segment ' || n, 'rules',
			'{"all": [{"field": "attribute", "name": "tier", "op": "is", "values": ["gold"]}]}', 'staff:1 Ada', now() - n * interval '1 minute' from generate_series(1, 500) n`, nil},
	}
}
