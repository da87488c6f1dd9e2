package localstack

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack/child"
	"dropbell/migrations"
)

func startPostgres(t *testing.T, o Options) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pgx.CollectOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// openDir is a directory that PostgreSQL's account can enter, unlike those of
// t.TempDir when the tests run as root.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localstack-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestPostgresKeepsDataOverStopKillAndRestart(t *testing.T) {
	o := Options{Dir: openDir(t), Durable: true}
	p := startPostgres(t, o)
	query[int64](t, p.URL(), "with made as (select 1) select count(*) from made")
	if err := administer(t.Context(), p.URL(), "create table kept as select 41 as n"); err != nil {
		t.Fatal(err)
	}
	if got := query[string](t, p.URL(), "show fsync") + query[string](t, p.URL(), "show synchronous_commit"); got != "onon" {
		t.Errorf("durable server has fsync, synchronous_commit = %s", got)
	}
	port := p.Port()
	pids := append(child.Children(p.process.PID()), p.process.PID())
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if child.Alive(pid) {
			t.Errorf("process %d survived Kill", pid)
		}
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Port() != port {
		t.Errorf("came back on port %d instead of %d", p.Port(), port)
	}
	if n := query[int32](t, p.URL(), "update kept set n = n + 1 returning n"); n != 42 {
		t.Errorf("after Kill and Restart n = %d", n)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Dir(p.home.data), filepath.Dir(r.home.data)}
	for _, stop := range []func(context.Context) error{p.Stop, r.Stop} {
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there (%v)", dir, err)
		}
	}
}

func TestTakenPortIsAvoidedAndSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	var said bytes.Buffer
	r, err := StartRedis(t.Context(), Options{Port: taken, Log: &said})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		defer r.Stop(context.Background())
		client := redis.NewClient(&redis.Options{Addr: r.addr()})
		defer client.Close()
		ctx := t.Context()
		if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if policy := client.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]; policy != "noeviction" {
			t.Errorf("maxmemory-policy = %q", policy)
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.Restart(ctx, false); err != nil {
			t.Fatal(err)
		}
		if v, err := client.Get(ctx, "k").Result(); v != "v" {
			t.Errorf("durable=%v: after Kill and Restart k = %q (%v)", durable, v, err)
		}
		if err := r.Restart(ctx, true); err != nil {
			t.Fatal(err)
		}
		if n := client.DBSize(ctx).Val(); n != 0 {
			t.Errorf("durable=%v: after Restart empty there are %d keys", durable, n)
		}
	}
}

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	first, second := Database(t), Database(t)
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{first, second} {
		if v, err := migrations.Version(t.Context(), url); err != nil || v != latest {
			t.Errorf("version %d (%v), expected %d", v, err, latest)
		}
	}
	if err := administer(t.Context(), first, "create table only_here ()"); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
	})
	_, err := pgx.Connect(t.Context(), url)
	if !errorCode(err, "3D000") {
		t.Errorf("connecting to the dropped database: %v", err)
	}
}

// The helper's part of the two tests below: it starts servers and waits to be
// killed.
const (
	helperVariable = "LOCALSTACK_TEST_HELPER"
	helperDir      = "LOCALSTACK_TEST_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		os.Exit(helper())
	}
	os.Exit(m.Run())
}

func helper() int {
	ctx := context.Background()
	o := Options{Dir: os.Getenv(helperDir), Log: os.Stderr}
	p, err := StartPostgres(ctx, o)
	if err != nil {
		println(err.Error())
		return 1
	}
	r, err := StartRedis(ctx, o)
	if err != nil {
		println(err.Error())
		return 1
	}
	os.Stdout.WriteString(strings.Join([]string{
		"ready", strconv.Itoa(p.process.PID()), strconv.Itoa(r.process.PID()), filepath.Dir(p.home.data), p.URL(),
	}, " ") + "\n")
	<-make(chan struct{})
	return 0
}

// startHelper returns when the helper has said "ready …"; fields are its words.
func startHelper(t *testing.T, dir string, who *account) (cmd *exec.Cmd, fields []string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Copied, because another account may not enter where it was built.
	program := filepath.Join(openDir(t), "helper")
	if err := run(exec.Command("cp", binary, program)); err != nil {
		t.Fatal(err)
	}
	cmd = who.command(t.Context(), []string{helperVariable + "=1", helperDir + "=" + dir, "HOME=" + filepath.Dir(program)}, program)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 4096)
	n, _ := out.Read(buf) // nothing read is told below
	fields = strings.Fields(string(buf[:n]))
	if len(fields) != 5 || fields[0] != "ready" {
		t.Fatalf("helper said %q: %s", buf[:n], failed.String())
	}
	return cmd, fields
}

func TestKilledParentLeavesNoServer(t *testing.T) {
	for name, dir := range map[string]string{"temporary": "", "kept": openDir(t)} {
		t.Run(name, func(t *testing.T) {
			cmd, fields := startHelper(t, dir, nil)
			postgres, _ := strconv.Atoi(fields[1])
			redis, _ := strconv.Atoi(fields[2])
			if !child.Alive(postgres) || !child.Alive(redis) {
				t.Fatal("the helper's servers do not run")
			}
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := child.Gone(ctx, postgres, redis); err != nil {
				t.Error(err)
			}
			if dir == "" {
				waitRemoved(t, fields[3])
				return
			}
			// What was left behind must not be in the way of the next start.
			p := startPostgres(t, Options{Dir: dir})
			query[int32](t, p.URL(), "select 1")
		})
	}
}

func waitRemoved(t *testing.T, dir string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		case <-tick.C:
		}
	}
}

func TestWithoutRoot(t *testing.T) {
	dir := openDir(t)
	who, err := serverAccount(dir)
	if err != nil {
		t.Fatal(err)
	}
	if who == nil {
		p := startPostgres(t, Options{Dir: dir}) // this process is not root itself
		query[int32](t, p.URL(), "select 1")
		return
	}
	if err := os.Chown(dir, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}
	_, fields := startHelper(t, dir, who)
	if got := query[string](t, fields[4], "select current_user::text"); got != "dropbell" {
		t.Errorf("user %q", got)
	}
	if uid, _, _ := owner(filepath.Join(dir, "postgres")); uid != who.uid {
		t.Errorf("data belongs to %d, expected %d", uid, who.uid)
	}
}
