package localstack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"dropbell/migrations"
)

// StartStandby starts a streaming standby of primary from a base backup. The standby receives
// all later writes of the primary until [Postgres.Promote].
func StartStandby(ctx context.Context, primary *Postgres, o Options) (*Postgres, error) {
	h, err := openHome(ctx, o, "postgres")
	if err != nil {
		return nil, err
	}
	p := &Postgres{options: o, home: h, primary: primary}
	if err := p.begin(ctx); err != nil {
		h.release()
		return nil, fmt.Errorf("start a standby of PostgreSQL: %w", err)
	}
	return p, nil
}

// baseBackup copies the primary's data to dir.
func (p *Postgres) baseBackup(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := p.account.own(dir); err != nil {
		return err
	}
	args := []string{"-D", dir, "-h", "127.0.0.1", "-p", strconv.Itoa(p.primary.port), "-U", "dropbell", "-X", "stream", "-c", "fast", "-R"}
	if !p.options.Durable {
		args = append(args, "--no-sync")
	}
	server, err := filepath.EvalSymlinks(filepath.Join(p.program.path, "postgres")) // other programs need not be linked there
	if err != nil {
		return err
	}
	return run(p.account.command(ctx, p.program.env, filepath.Join(filepath.Dir(server), "pg_basebackup"), args...))
}

// Promote makes a standby the primary of a new timeline, and returns when the new primary
// accepts writes.
func (p *Postgres) Promote(ctx context.Context) error {
	c, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	var promoted bool
	if err := c.QueryRow(ctx, `select pg_promote(true, 60)`).Scan(&promoted); err != nil {
		return err
	}
	if !promoted {
		return fmt.Errorf("the standby was not promoted within a minute\n%s", p.home.tail())
	}
	return nil
}

// Standby returns a streaming standby of primary, stopped after the test.
func Standby(tb testing.TB, primary *Postgres) *Postgres {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	p, err := StartStandby(ctx, primary, Options{})
	if err != nil {
		tb.Fatalf("no standby for tests: %v", err)
	}
	stopAfter(tb, p)
	return p
}

// Primary returns a PostgreSQL for this test only. Its database dropbell has all migrations. The
// server is stopped after the test. The test may add standbys and kill the server.
func Primary(tb testing.TB) *Postgres {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	p, err := StartPostgres(ctx, Options{})
	if err != nil {
		tb.Fatalf("no PostgreSQL for tests: %v", err)
	}
	stopAfter(tb, p)
	if err := migrations.Up(ctx, p.URL()); err != nil {
		tb.Fatalf("migrate the database: %v", err)
	}
	return p
}

func stopAfter(tb testing.TB, p *Postgres) {
	tb.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			tb.Errorf("stop PostgreSQL: %v", err)
		}
	})
}
