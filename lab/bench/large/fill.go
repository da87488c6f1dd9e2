package large

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/cell"
	"dropbell/lab/bench/stack"
)

// step walks through the users in an order far from the order of their ids: a prime.
const step = 7_368_787

// fill copies rows into the tables as months of use would have left them: drops of a million
// reservations each, in the order in which users arrive.
func fill(ctx context.Context, s *stack.Stack, n size) error {
	scattered := func(i int) int64 { return int64(i)*step%int64(n.users) + 1 }
	drops := n.reservations/1_000_000 + 4
	if _, err := s.SQL.Exec(ctx, `insert into shops (number, name, timezone) values (10, 'Ten', 'Asia/Shanghai') on conflict do nothing`); err != nil {
		return err
	}
	if _, err := s.SQL.Exec(ctx, `insert into templates (shop_number, name, kind, amount_off, currency, target, stock, issued, per_user_limit, opens_at, closes_at,
			valid_hours, obtain, claim_mode, state, published_at)
		select 10, 'Drop number ' || n, 'amount_off', 1000, 'CNY', 'shop', $1, $1, 1000, date_trunc('second', now()) + n * interval '1 hour',
			date_trunc('second', now()) + n * interval '1 hour' + interval '30 days', 720, 'claim', 'durable', 'published', now() from generate_series(1, $2::int) n`,
		n.coupons/drops+1, drops); err != nil {
		return err
	}
	var first int64
	if err := s.SQL.QueryRow(ctx, `select max(id) - ($1 - 1) * $2 from templates`, drops, cell.Count).Scan(&first); err != nil {
		return err
	}
	drop := func(i int) int64 { return first + int64(i%drops)*cell.Count }
	now := time.Now()
	copies := []struct {
		table   string
		columns []string
		rows    int
		row     func(i int) []any
	}{
		{"users", []string{"id", "name", "email", "locale", "timezone"}, n.users, func(i int) []any {
			return []any{int64(i + 1), "User " + strconv.Itoa(i+1), stack.Address(i + 1), "en", "Asia/Shanghai"}
		}},
		{"reservations", []string{"template_id", "user_id", "slots"}, n.reservations, func(i int) []any {
			return []any{drop(i), scattered(i / drops), int64(1)}
		}},
		{"coupons", []string{"template_id", "user_id", "claim_id", "origin", "origin_key", "issued_at", "expires_at"}, n.coupons, func(i int) []any {
			user := scattered(i / drops)
			return []any{drop(i), user, int64(i + 1), "claim", strconv.FormatInt(user, 10) + ":" + strconv.Itoa(i%drops), now, now.Add(720 * time.Hour)}
		}},
		{"claim_counts", []string{"template_id", "user_id", "issued"}, n.coupons, func(i int) []any {
			return []any{drop(i), scattered(i / drops), 1}
		}},
	}
	for _, c := range copies {
		if _, err := s.SQL.CopyFrom(ctx, pgx.Identifier{c.table}, c.columns, pgx.CopyFromSlice(c.rows, func(i int) ([]any, error) { return c.row(i), nil })); err != nil {
			return err
		}
	}
	for _, sql := range []string{`vacuum (analyze)`, `checkpoint`} {
		if _, err := s.SQL.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
