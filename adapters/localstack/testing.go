package localstack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/migrations"
)

// TestServerVariable names the environment variable with the URL of a PostgreSQL server in which
// tests may create databases. The URL's user is a superuser.
const TestServerVariable = "DROPBELL_TEST_DATABASE_URL"

const helperTimeout = 3 * time.Minute

// testGarbagePercent is GOGC of tests with databases. They collect garbage a quarter as often as
// programs do, which saves up to a quarter of their processor time. Programs that tests start
// use their own setting.
const testGarbagePercent = 400

// Patience is how long a test waits for an event that may never happen, such as a page with the
// expected content, before the test fails. It is a quarter of the time that is left to the
// test's process, so that the tests after a failing test still run. A passing test needs far
// less, even on a slow machine.
func Patience(tb testing.TB) time.Duration {
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, limited := t.Deadline(); limited {
			return time.Until(end) / 4
		}
	}
	return 10 * time.Minute
}

// Eventually polls until done holds. It ends the test after [Patience].
func Eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	patience := Patience(tb)
	for began := time.Now(); !done(); <-time.After(5 * time.Millisecond) {
		if time.Since(began) > patience {
			tb.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// Database returns the URL of a new database with all migrations, for this test only, and drops
// the database after the test. The server is named by [TestServerVariable]; without the variable
// a server is started for this test process.
func Database(tb testing.TB) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	server := testServer()
	if server.err != nil {
		tb.Fatalf("no database for tests: %v", server.err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	_, err := server.admin.Exec(ctx, fmt.Sprintf("create database %s template %s strategy file_copy", name, server.template))
	if err != nil {
		tb.Fatalf("create test database: %v", err)
	}
	tb.Cleanup(func() { dropDatabase(tb, server.admin, name) })
	return withDatabase(server.url, name)
}

func dropDatabase(tb testing.TB, admin *pgxpool.Pool, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	if _, err := admin.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
		tb.Errorf("drop test database: %v", err)
	}
}

// RedisServer returns an empty Redis of this test alone, stopped afterwards.
func RedisServer(tb testing.TB) *Redis {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	r, err := StartRedis(ctx, Options{})
	if err != nil {
		tb.Fatalf("no Redis for tests: %v", err)
	}
	tb.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			tb.Errorf("stop Redis: %v", err)
		}
	})
	return r
}

// testServer has the URL of the process's PostgreSQL server, the name of the template database
// in it, and a pool of connections that create and drop databases. A new connection for each
// database would take as much processor time as copying the files. Server and pool end with the
// process, because a test cannot know whether it is the last test.
var testServer = sync.OnceValue(func() (found struct {
	url, template string
	admin         *pgxpool.Pool
	err           error
}) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(testGarbagePercent)
	}
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	found.url = os.Getenv(TestServerVariable)
	if found.url == "" {
		var p *Postgres
		if p, found.err = StartPostgres(ctx, Options{}); found.err != nil {
			return found
		}
		found.url = p.URL()
	}
	if found.template, found.err = makeTemplate(ctx, found.url); found.err == nil {
		found.admin, found.err = openAdmin(found.url)
	}
	return found
})

// makeTemplate makes the template database, of which the tests' databases are copies, unless
// another test process has made it. The name of the template depends on the migrations.
func makeTemplate(ctx context.Context, server string) (string, error) {
	name, err := templateName()
	if err != nil {
		return "", err
	}
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx)) // which also releases the lock
	if _, err := c.Exec(ctx, "select pg_advisory_lock(7031337)"); err != nil {
		return "", fmt.Errorf("wait for other tests: %w", err)
	}
	var complete bool
	err = c.QueryRow(ctx, "select exists (select from pg_database where datname = $1 and datistemplate)", name).Scan(&complete)
	if err != nil || complete {
		return name, err
	}
	return name, fillTemplate(ctx, c, name)
}

// fillTemplate marks the database as a template only when it is complete, so that an interrupted
// template is made again.
func fillTemplate(ctx context.Context, c *pgx.Conn, name string) error {
	for _, sql := range []string{"drop database if exists " + name, "create database " + name} {
		if _, err := c.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := migrations.Up(ctx, withDatabase(c.Config().ConnString(), name)); err != nil {
		return fmt.Errorf("migrate the test database: %w", err)
	}
	// The first connection after changes of the catalog writes pg_internal.init, a cache of the
	// catalog. Each copy of the database contains this file; without it each copy would have to
	// make its own.
	first, err := pgx.Connect(ctx, withDatabase(c.Config().ConnString(), name))
	if err != nil {
		return err
	}
	if err := first.Close(ctx); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "alter database "+name+" with is_template true allow_connections false")
	return err
}

func templateName() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.Released.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(migrations.Released.FS, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(raw), raw)
		return err
	})
	return "dropbell_template_" + hex.EncodeToString(h.Sum(nil)[:8]), err
}

// openAdmin returns a pool that connects when it is first used. Its statements are not prepared,
// because each statement is executed once.
func openAdmin(server string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(server)
	if err != nil {
		return nil, err
	}
	c.MaxConns, c.ConnConfig.DefaultQueryExecMode = 4, pgx.QueryExecModeSimpleProtocol
	return pgxpool.NewWithConfig(context.Background(), c)
}
