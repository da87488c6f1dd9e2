package main

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	"dropbell/bench/stack"
)

// drops is how many templates share the reservations.
const drops = 5

// perBatch is how many recipients a batch has; their ids lie apart, as those
// of a drop that every fifth user reserved.
const (
	perBatch = 1000
	apart    = 5
)

// fill writes everything straight into the tables, in the form in which the
// product leaves it.
func fill(ctx context.Context, s *stack.Stack, n size) error {
	steps := []struct {
		sql  string
		args []any
	}{
		{`insert into shops (number, name, timezone) select n, 'Shop ' || n, 'Asia/Shanghai' from generate_series(10, 29) n`, nil},
		{`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state, published_at)
			select 10 + n % 20, 'Drop number ' || n, 'amount_off', 1000, 'CNY', 'shop', 100000, 1, date_trunc('second', now()) + (n - 10) * interval '7 minutes',
				date_trunc('second', now()) + (n - 10) * interval '7 minutes' + interval '3 days', 48, 'claim', 'durable',
				case when n % 3 = 0 then 'draft' else 'published' end, case when n % 3 <> 0 then now() end from generate_series(1, $1) n`, []any{n.templates}},
		{`insert into slots (template_id, slot, opens_at, due_at, state, fired_at, cut_at, finished_at)
			select t.id, s, t.opens_at, t.opens_at - s * interval '5 minutes', 'finished', t.opens_at - s * interval '5 minutes', now(), now()
			from templates t, generate_series(1, 12) s where t.id <= $1`, []any{drops}},
		{`insert into reservations (template_id, user_id, slots) select n % $2 + 1, n / $2 + 1, 4097 from generate_series(0, $1::int - 1) n`, []any{n.reservations, drops}},
		{`insert into bookings select t, s, c, $1 from generate_series(1, $2) t, generate_series(1, 12) s, generate_series(0, 1) c`, []any{n.reservations / drops, drops}},
		{`insert into booking_growth select t, date_trunc('minute', now()) - m * interval '1 minute', 100 from generate_series(1, $1) t, generate_series(1, 2000) m`, []any{drops}},
		{`insert into users (id, name, email, phone) select n, 'User ' || n, 'user' || n || '@example.com', '+86' || (13000000000 + n) from generate_series(1, $1) n`, []any{n.users}},
		{`insert into audit (at, actor, action, object_kind, object_id, shop_number, reason, before, after)
			select now() - ($1 - n) * interval '1 minute', 'staff:' || n % 40 || ' Member ' || n % 40, case n % 50 when 0 then 'key.create' else 'template.' || (array['edit', 'move', 'pause'])[n % 3 + 1] end,
				'template', n % 5000, 10 + n % 20, case when n % 2 = 0 then 'because of case ' || n else '' end, '{"OpensAt": "2026-11-20T12:00:00Z", "Stock": 1}', '{"OpensAt": "2026-11-20T13:00:00Z", "Stock": 1}'
			from generate_series(1, $1::int) n`, []any{n.audit}},
		{`insert into jobs (kind, title, needs, state, total, done, created_by, actor, started_at, finished_at)
			select 'templates.bulk', 'Pause ' || n || ' templates', 'manage_templates', 'done', n, n, 'staff:1 Ada', '{}', now(), now() from generate_series(1, 5000) n`, nil},
	}
	for _, st := range steps {
		if _, err := s.SQL.Exec(ctx, st.sql, st.args...); err != nil {
			return fmt.Errorf("%w in %.60s", err, st.sql)
		}
	}
	if err := batches(ctx, s, n); err != nil {
		return err
	}
	if err := postgres.NewDeadLetters(s.DB).RecountDeadLetters(ctx); err != nil {
		return err
	}
	_, err := s.SQL.Exec(ctx, `vacuum (analyze)`)
	return err
}

// batches writes the batches of the drops' slots and, to each, its share of
// exceptions: of twenty, eight skipped, eight expired, one dead, three recovered.
func batches(ctx context.Context, s *stack.Stack, n size) error {
	each := n.exceptions / max(n.batches, 1)
	kinds := func(share int) int { return each * share / 20 }
	skipped, expired, dead := kinds(8), kinds(8), kinds(1)
	now := time.Now().UTC()
	columns := []string{"kind", "owner_id", "template_id", "channel", "from_user", "to_user", "state", "due_at", "worthless_after", "due", "sent",
		"due_count", "sent_count", "skipped_count", "expired_count", "dead_count", "runs", "started_at", "finished_at"}
	owners := drops * 12
	_, err := s.SQL.CopyFrom(ctx, pgx.Identifier{"batches"}, columns, pgx.CopyFromSlice(n.batches, func(i int) ([]any, error) {
		slot, place := i%owners, i/owners
		channel, part := place%2, place/2
		from := int64(part)*perBatch*apart + 1
		due, sent := roaring64.New(), roaring64.New()
		for k := range perBatch {
			id := uint64(from) + uint64(k*apart)
			if due.Add(id); k >= skipped+expired+dead {
				sent.Add(id)
			}
		}
		dueRaw, err := due.ToBytes()
		if err != nil {
			return nil, err
		}
		sentRaw, err := sent.ToBytes()
		at := now.Add(-time.Duration(i) * time.Minute)
		return []any{"reminder", slot + 1, slot/12 + 1, channel, from, from + (perBatch-1)*apart, "done", at, at.Add(time.Hour), dueRaw, sentRaw,
			perBatch, perBatch - skipped - expired - dead, skipped, expired, dead, 1, at, at}, err
	}))
	if err != nil {
		return err
	}
	_, err = s.SQL.Exec(ctx, `insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
		select b.id, b.from_user + k * $2, b.channel, o.outcome, case o.outcome when 'skipped' then 'opted_out' when 'expired' then 'deadline' else 'provider_error' end,
			'HTTP 503 at attempt ' || k, 'HTTP 503 of kind ' || b.id % 40, 3
		from batches b, generate_series(0, $1::int - 1) k, lateral (select case when k < $3 then 'skipped' when k < $4 then 'expired' when k < $5 then 'dead' else 'recovered' end as outcome) o`,
		each, apart, skipped, skipped+expired, skipped+expired+dead)
	return err
}
