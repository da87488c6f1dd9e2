package localstack

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack/child"
	"dropbell/migrations"
	"dropbell/musttest"
)

func startPostgres(t *testing.T, o Options) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), o)
	musttest.OK(t, err)
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return p
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	musttest.OK(t, err)
	defer c.Close(ctx)
	rows, err := c.Query(ctx, sql)
	musttest.OK(t, err)
	v, err := pgx.CollectOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// openDir returns a folder that PostgreSQL's account can enter. That account cannot enter
// folders of t.TempDir when the tests run as root.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localstack-test-")
	musttest.OK(t, err)
	musttest.OK(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// execute runs a statement in a connection of its own.
func execute(ctx context.Context, url, sql string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}

func TestPostgresKeepsDataOverStopKillAndRestart(t *testing.T) {
	o := Options{Dir: openDir(t), Durable: true}
	p := startPostgres(t, o)
	query[int64](t, p.URL(), "with made as (select 1) select count(*) from made")
	musttest.OK(t, execute(t.Context(), p.URL(), "create table kept as select 41 as n"))
	if got := query[string](t, p.URL(), "show fsync") + query[string](t, p.URL(), "show synchronous_commit"); got != "onon" {
		t.Errorf("durable server has fsync, synchronous_commit = %s", got)
	}
	port := p.Port()
	pids := append(child.Children(p.process.PID()), p.process.PID())
	musttest.OK(t, p.Kill())
	for _, pid := range pids {
		if child.Alive(pid) {
			t.Errorf("process %d survived Kill", pid)
		}
	}
	musttest.OK(t, p.Restart(t.Context()))
	if p.Port() != port {
		t.Errorf("came back on port %d instead of %d", p.Port(), port)
	}
	if n := query[int32](t, p.URL(), "update kept set n = n + 1 returning n"); n != 42 {
		t.Errorf("after Kill and Restart n = %d", n)
	}
	musttest.OK(t, p.Stop(t.Context()))
	again := startPostgres(t, o)
	if n := query[int32](t, again.URL(), "select n from kept"); n != 42 {
		t.Errorf("after Stop and a new start n = %d", n)
	}
}

func TestPostgresPauseAnswersNothingUntilResume(t *testing.T) {
	p := startPostgres(t, Options{})
	p.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if c, err := pgx.Connect(ctx, p.URL()); err == nil {
		c.Close(t.Context())
		t.Error("a paused server let somebody in")
	}
	p.Resume()
	query[int32](t, p.URL(), "select 1")
}

func TestTemporaryServersLeaveNothing(t *testing.T) {
	p := startPostgres(t, Options{})
	r, err := StartRedis(t.Context(), Options{})
	musttest.OK(t, err)
	dirs := []string{filepath.Dir(p.home.data), filepath.Dir(r.home.data)}
	for _, stop := range []func(context.Context) error{p.Stop, r.Stop} {
		musttest.OK(t, stop(t.Context()))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there (%v)", dir, err)
		}
	}
}

func TestTakenPortIsAvoidedAndSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	var said bytes.Buffer
	r, err := StartRedis(t.Context(), Options{Port: taken, Log: &said})
	musttest.OK(t, err)
	defer r.Stop(context.Background())
	if r.Port() == taken {
		t.Fatal("it claims to use a port that is taken")
	}
	want := "port " + strconv.Itoa(taken) + " is taken, Redis uses " + strconv.Itoa(r.Port())
	if !strings.Contains(said.String(), want) {
		t.Errorf("said %q, expected %q", said.String(), want)
	}
}

func TestDataInUseIsRefused(t *testing.T) {
	o := Options{Dir: openDir(t)}
	r, err := StartRedis(t.Context(), o)
	musttest.OK(t, err)
	defer r.Stop(context.Background())
	if second, err := StartRedis(t.Context(), o); err == nil {
		second.Stop(context.Background())
		t.Fatal("two servers share one directory")
	} else if !strings.Contains(err.Error(), "in use") {
		t.Errorf("the error does not say why: %v", err)
	}
}

func TestRedisRestartKeptAndEmpty(t *testing.T) {
	for _, durable := range []bool{false, true} {
		r, err := StartRedis(t.Context(), Options{Durable: durable, Dir: openDir(t)})
		musttest.OK(t, err)
		defer r.Stop(context.Background())
		client := redis.NewClient(&redis.Options{Addr: r.addr()})
		defer client.Close()
		ctx := t.Context()
		musttest.OK(t, client.Set(ctx, "k", "v", 0).Err())
		if policy := client.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]; policy != "noeviction" {
			t.Errorf("maxmemory-policy = %q", policy)
		}
		musttest.OK(t, r.Kill())
		musttest.OK(t, r.Restart(ctx, false))
		if v, err := client.Get(ctx, "k").Result(); v != "v" {
			t.Errorf("durable=%v: after Kill and Restart k = %q (%v)", durable, v, err)
		}
		musttest.OK(t, r.Restart(ctx, true))
		if n := client.DBSize(ctx).Val(); n != 0 {
			t.Errorf("durable=%v: after Restart empty there are %d keys", durable, n)
		}
	}
}

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	first, second := Database(t), Database(t)
	newest, err := migrations.Released.Newest()
	musttest.OK(t, err)
	for _, url := range []string{first, second} {
		if v, err := migrations.Released.Version(t.Context(), url); err != nil || v != newest {
			t.Errorf("version %d (%v), expected %d", v, err, newest)
		}
	}
	musttest.OK(t, execute(t.Context(), first, "create table only_here ()"))
	if n := query[int64](t, second, "select count(*) from pg_tables where tablename = 'only_here'"); n != 0 {
		t.Error("one test's table shows in another test's database")
	}
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	var url string
	t.Run("inner", func(t *testing.T) {
		url = Database(t)
		// A connection left open must not keep the database.
		c, err := pgx.Connect(t.Context(), url)
		musttest.OK(t, err)
		t.Cleanup(func() { c.Close(context.Background()) })
	})
	_, err := pgx.Connect(t.Context(), url)
	if !errorCode(err, "3D000") {
		t.Errorf("connecting to the dropped database: %v", err)
	}
}
