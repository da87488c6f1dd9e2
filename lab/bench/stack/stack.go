// Package stack starts the servers of a benchmark: PostgreSQL and Redis with durable settings.
// The benchmark fills them itself.
package stack

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/migrations"
)

// Stack is a running database and queue, and a raw connection to the database.
type Stack struct {
	PostgresURL, RedisURL string
	Postgres              *localstack.Postgres
	Redis                 *localstack.Redis
	SQL                   *pgxpool.Pool
	DB                    *postgres.DB
	close                 []func()
}

// Start starts new servers with durable settings. Their data is removed when the benchmark ends,
// in whatever way it ends.
func Start(ctx context.Context) (*Stack, error) { return StartKept(ctx, "") }

// StartNew is Start for a test that measures nothing: the server's log has no prepared files to
// reuse. Preparing them takes one second of processor time.
func StartNew(ctx context.Context) (*Stack, error) {
	return new(Stack).start(ctx, localstack.Options{Durable: true, Log: io.Discard})
}

// StartKept is Start with two additions: the database is kept in dir, unless dir is empty, and
// PostgreSQL gets the settings, each as name=value.
func StartKept(ctx context.Context, dir string, settings ...string) (*Stack, error) {
	if dir != "" {
		if err := passable(dir); err != nil {
			return nil, err
		}
	}
	s, err := new(Stack).start(ctx, localstack.Options{Dir: dir, Durable: true, Settings: settings, Log: io.Discard})
	if err != nil {
		return nil, err
	}
	if err := s.age(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// age gives the server's log files to reuse, like the log of a server that has run for a while.
// A new server first makes each file, 16 MB of zeros, while every commit waits.
func (s *Stack) age(ctx context.Context) error {
	const files = 48 // below min_wal_size, which are kept
	for range files {
		if _, err := s.SQL.Exec(ctx, `select pg_logical_emit_message(false, 'bench', 'age')`); err != nil {
			return err
		}
		if _, err := s.SQL.Exec(ctx, `select pg_switch_wal()`); err != nil {
			return err
		}
	}
	_, err := s.SQL.Exec(ctx, `checkpoint`)
	return err
}

// StartReading starts servers for a benchmark that only reads the rows that it has filled in.
// Nothing is synced. The data is kept in dir. With an empty dir the data is in memory, if there
// is room, and is removed at the end.
func StartReading(ctx context.Context, dir string) (*Stack, error) {
	if dir == "" {
		return new(Stack).start(ctx, localstack.Options{Log: io.Discard})
	}
	if err := passable(dir); err != nil {
		return nil, err
	}
	return new(Stack).start(ctx, localstack.Options{Dir: dir, Log: io.Discard})
}

// passable lets the server's account enter the folder; this account may differ from the account
// of this process.
func passable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func (s *Stack) start(ctx context.Context, o localstack.Options) (*Stack, error) {
	pg, err := localstack.StartPostgres(ctx, o)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.close = append(s.close, func() { _ = pg.Stop(context.Background()) })
	rd, err := localstack.StartRedis(ctx, o)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.close = append(s.close, func() { _ = rd.Stop(context.Background()) })
	s.Postgres, s.Redis = pg, rd
	return s.on(ctx, pg.URL(), rd.URL())
}

// On returns a stack on existing servers: several hosts, or a Redis Cluster.
func On(ctx context.Context, postgresURL, redisURL string) (*Stack, error) {
	return new(Stack).on(ctx, postgresURL, redisURL)
}

// Beside makes a second database on the same servers, which s continues to own.
func (s *Stack) Beside(ctx context.Context, name string) (*Stack, error) {
	if _, err := s.SQL.Exec(ctx, `create database `+pgx.Identifier{name}.Sanitize()); err != nil {
		return nil, err
	}
	address, err := url.Parse(s.PostgresURL)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	return On(ctx, address.String(), s.RedisURL)
}

// on brings the database up to date and connects to it.
func (s *Stack) on(ctx context.Context, postgresURL, redisURL string) (_ *Stack, err error) {
	s.PostgresURL, s.RedisURL = postgresURL, redisURL
	if err := migrations.Up(ctx, s.PostgresURL); err != nil {
		s.Close()
		return nil, err
	}
	if s.SQL, err = pgxpool.New(ctx, s.PostgresURL); err == nil {
		s.close = append(s.close, s.SQL.Close)
		s.DB, err = postgres.Open(ctx, s.PostgresURL, postgres.Options{MaxConns: 24, AppName: "bench", Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.close = append(s.close, s.DB.Close)
	return s, nil
}

// Close stops the servers and removes data that was not to be kept.
func (s *Stack) Close() {
	for _, f := range slices.Backward(s.close) {
		f()
	}
}

// Drop publishes a template that opens after the given time.
func (s *Stack) Drop(ctx context.Context, opensIn time.Duration) (template.Template, error) {
	now := func() time.Time { return time.Now().UTC() }
	service := &template.Service{Store: dropsdb.NewTemplates(s.DB), Now: now}
	opens := now().Add(opensIn).Truncate(time.Second)
	t, err := service.Create(ctx, staff.System(), template.Spec{ShopNumber: 10, Name: "Bench drop", Kind: template.AmountOff,
		AmountOff: money.Amount(1000), Currency: "CNY", Target: template.WholeShop, Stock: 1_000_000, PerUserLimit: 1,
		OpensAt: opens, ClosesAt: opens.Add(24 * time.Hour), ValidHours: 24, Obtain: template.ByClaim, ClaimMode: template.Durable}, "")
	if err != nil {
		return t, err
	}
	return service.Do(ctx, staff.System(), t.ID, 0, template.Publishing, "bench")
}

// Reserve gives users 1…n the reminders in bits, without the API. The order is shuffled, as if
// the reservations had arrived one by one.
func (s *Stack) Reserve(ctx context.Context, templateID int64, n int, bits int64) error {
	const step = 7_368_787 // prime: walks all residues, far from key order
	at := func(i int) int64 { return int64(i)*step%int64(n) + 1 }
	if n%step == 0 {
		return fmt.Errorf("choose another number than %d", n)
	}
	_, err := s.SQL.CopyFrom(ctx, pgx.Identifier{"reservations"}, []string{"template_id", "user_id", "slots"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) { return []any{templateID, at(i), bits}, nil }))
	if err != nil {
		return err
	}
	_, err = s.SQL.Exec(ctx, `insert into bookings (template_id, slot, channel, booked)
		select $1, b % 12 + 1, b / 12, $3 from generate_series(0, 59) b where $2::bigint & (1::bigint << b) <> 0
		on conflict (template_id, slot, channel) do update set booked = bookings.booked + excluded.booked`, templateID, bits, n)
	if err != nil {
		return err
	}
	if _, err = s.SQL.Exec(ctx, `vacuum (analyze) reservations`); err != nil {
		return err
	}
	// Reservations normally arrive over hours. The checkpoint writes the pages that were filled
	// in seconds now, so that they do not keep the disk busy while the drop is measured.
	_, err = s.SQL.Exec(ctx, `checkpoint`)
	return err
}

// Machine returns a line about where the numbers come from.
func Machine(ctx context.Context, s *Stack) string {
	var pg string
	_ = s.SQL.QueryRow(ctx, `select split_part(version(), ' on ', 1)`).Scan(&pg)
	return fmt.Sprintf("%s, 2 cores shared with database, queue and load", pg)
}

// Median returns the median of the values.
func Median[T interface{ ~int64 | ~float64 }](v []T) T {
	c := slices.Clone(v)
	slices.Sort(c)
	return (c[(len(c)-1)/2] + c[len(c)/2]) / 2
}

// Spread is the median of the values with the least and the greatest of them.
func Spread(v []float64) string {
	return fmt.Sprintf("median %.2f, %.2f to %.2f", Median(v), slices.Min(v), slices.Max(v))
}

// Pause waits, or returns why ctx ended.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
