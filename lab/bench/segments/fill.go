package segments

import (
	"context"
	"fmt"
	"sync"

	"dropbell/lab/bench/stack"
)

// Every fourth user has a reservation and every tenth a coupon, spread over templates; every
// tenth user is on a list.
const (
	reservedEvery = 4
	couponEvery   = 10
	listedEvery   = 10

	writers = 2
)

// fill writes all rows directly into the tables, as INSERT … SELECT from several connections.
// The indexes that only searching needs are missing meanwhile.
func fill(ctx context.Context, s *stack.Stack, n int) ([]audience, error) {
	steps := []struct {
		sql  string
		rows int
	}{
		// Attributes as imports bring them; users arrive over a year.
		{`insert into users (id, email, locale, timezone, opt_outs, attributes, created_at)
			select i, case when i % 3 <> 0 then 'u' || i || '@example.com' else '' end, (array['en', 'zh-CN', 'de'])[i % 3 + 1], 'Asia/Shanghai',
				case when i % 50 = 0 then 2 else 0 end,
				jsonb_build_object('tier', case hashint8(i) % 10 when 0 then 'gold' else 'basic' end, 'points', abs(hashint8(i + 7) % 1000), 'city', 'Shenzhen'),
				now() - interval '365 days' * (1 - i::float8 / $3)
			from generate_series($1::bigint, $2::bigint) i`, n},
		// Reservations and claims are in no order of users.
		{`insert into reservations (template_id, user_id, slots) select i % 5 + 1, i * 7368787 % $3::bigint + 1, 1 from generate_series($1::bigint, $2::bigint) i`, n / reservedEvery},
		{`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at)
			select i % 5 + 1, i * 7368787 % $3::bigint + 1, i, 'claim', (array['unused', 'unused', 'used', 'expired'])[i % 4 + 1],
				now() - interval '1 minute' * (i % 80000), now() + interval '2 days' from generate_series($1::bigint, $2::bigint) i`, n / couponEvery},
	}
	if _, err := s.SQL.Exec(ctx, `drop index users_email`); err != nil { // only searching needs it, and it takes half of the time
		return nil, err
	}
	for _, st := range steps {
		if err := inParts(st.rows, func(from, to int) error {
			args := []any{from, to, n}
			_, err := s.SQL.Exec(ctx, st.sql, args...)
			return err
		}); err != nil {
			return nil, fmt.Errorf("%w in %.60s", err, st.sql)
		}
	}
	if _, err := s.SQL.Exec(ctx, `vacuum (analyze)`); err != nil {
		return nil, err
	}
	return otherAudiences(ctx, s, n)
}

// inParts divides 1…n among the writers, in parts of at most half a million.
func inParts(n int, write func(from, to int) error) error {
	const part = 500_000
	next := make(chan int, n/part+1)
	for from := 1; from <= n; from += part {
		next <- from
	}
	close(next)
	errs := make(chan error, writers)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for from := range next {
				if err := write(from, min(n, from+part-1)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}
