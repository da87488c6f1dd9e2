package commands

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/app"
	"dropbell/domain/doctor"
	"dropbell/migrations"
	"dropbell/musttest"
)

// An installation is a durable PostgreSQL and Redis of a test alone, and an environment.
type installation struct {
	*testing.T
	conn *pgx.Conn
	// store is a client of Redis.
	store *goredis.Client
	env   map[string]string
	now   func() time.Time
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	server, err := localstack.StartPostgres(t.Context(), localstack.Options{Durable: true})
	musttest.OK(t, err)
	queue, err := localstack.StartRedis(t.Context(), localstack.Options{Durable: true})
	if err != nil {
		t.Fatal(errors.Join(err, server.Stop(context.Background())))
	}
	t.Cleanup(func() {
		if err := errors.Join(queue.Stop(context.Background()), server.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	musttest.OK(t, migrations.Up(t.Context(), server.URL()))
	i := &installation{T: t, now: app.Clock, env: map[string]string{"DATABASE_URL": server.URL(), "REDIS_URL": queue.URL()}}
	if i.conn, err = pgx.Connect(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	options, err := goredis.ParseURL(queue.URL())
	musttest.OK(t, err)
	i.store = goredis.NewClient(options)
	t.Cleanup(func() { _ = errors.Join(i.conn.Close(context.Background()), i.store.Close()) })
	return i
}

func (i *installation) exec(sql string, args ...any) {
	i.Helper()
	if _, err := i.conn.Exec(i.Context(), sql, args...); err != nil {
		i.Fatal(err)
	}
}

// configure sets a parameter of Redis.
func (i *installation) configure(name, value string) {
	i.Helper()
	if err := i.store.ConfigSet(i.Context(), name, value).Err(); err != nil {
		i.Fatal(err)
	}
}

// doctor returns what the doctor prints as JSON, by check, without the room on this machine's
// disks, and its exit code.
func (i *installation) doctor(args ...string) (found map[string]doctor.Finding, code int) {
	i.Helper()
	var out strings.Builder
	err := diagnose(i.Context(), append([]string{"-json"}, args...), func(name string) string { return i.env[name] }, i.now, &out)
	var report struct {
		Faults   int
		Findings []doctor.Finding
	}
	if e := json.Unmarshal([]byte(out.String()), &report); e != nil {
		i.Fatalf("%v, %v: %s", err, e, out.String())
	}
	if strings.Contains(out.String(), "hunter2") {
		i.Errorf("a password is printed: %s", out.String())
	}
	found, disks := map[string]doctor.Finding{}, 0
	for _, f := range report.Findings {
		if strings.HasPrefix(f.Check, "disk.") {
			if f.State == doctor.Fault {
				disks++
			}
			continue
		}
		found[f.Check] = f
	}
	if disks == report.Faults && err != nil {
		return found, 0
	}
	return found, config.ExitCode(err)
}

// faults returns the checks that are faults.
func faults(found map[string]doctor.Finding) map[string]bool {
	list := map[string]bool{}
	for check, f := range found {
		if f.State == doctor.Fault {
			list[check] = true
		}
	}
	return list
}

// TestDoctor: a healthy installation has no fault. Then one thing at a time is wrong, and is found,
// and the exit code is 1.
func TestDoctor(t *testing.T) {
	i := newInstallation(t)
	found, code := i.doctor()
	if code != 0 || len(faults(found)) > 0 {
		t.Errorf("%d: %v", code, found)
	}
	for _, check := range []string{"postgresql", "postgresql.fsync", "postgresql.full_page_writes", "postgresql.synchronous_commit", "clock.postgresql", "clock.redis", "redis",
		"redis.appendfsync", "redis.appendonly", "redis.maxmemory-policy", "redis.writes", "migrations", "connections", "settings"} {
		if found[check].State != doctor.OK {
			t.Errorf("%s: %+v", check, found[check])
		}
	}
	var version int64
	musttest.OK(t, i.conn.QueryRow(t.Context(), `select max(version_id) from goose_db_version`).Scan(&version))
	durable := i.env["DATABASE_URL"]
	set := func(name, value string) func() { return func() { i.env[name] = value } }
	for _, c := range []struct {
		name             string
		harm, mend       func()
		args             []string
		want             []string
		alsoUndetermined bool
	}{
		{name: "a PostgreSQL without fsync", harm: set("DATABASE_URL", localstack.Database(t)), mend: set("DATABASE_URL", durable), want: []string{"postgresql.fsync", "postgresql.full_page_writes", "postgresql.synchronous_commit"}, alsoUndetermined: true},
		{name: "a clock that is an hour ahead", harm: func() { i.now = func() time.Time { return app.Clock().Add(time.Hour) } }, mend: func() { i.now = app.Clock }, want: []string{"clock.postgresql", "clock.redis"}},
		{name: "a missing migration", harm: func() { i.exec(`delete from goose_db_version where version_id = $1`, version) },
			mend: func() { i.exec(`insert into goose_db_version (version_id, is_applied) values ($1, true)`, version) }, want: []string{"migrations"}},
		{name: "an empty database", harm: set("DATABASE_URL", emptyDatabase(t)), mend: set("DATABASE_URL", durable), want: []string{"migrations"}, alsoUndetermined: true},
		{name: "Redis evicts", harm: func() { i.configure("maxmemory-policy", "allkeys-lru") }, mend: func() { i.configure("maxmemory-policy", "noeviction") }, want: []string{"redis.maxmemory-policy"}},
		{name: "Redis does not sync", harm: func() { i.configure("appendfsync", "no") }, mend: func() { i.configure("appendfsync", "always") }, want: []string{"redis.appendfsync"}},
		{name: "Redis keeps no log", harm: func() { i.configure("appendonly", "no") }, mend: func() { i.configure("appendonly", "yes") }, want: []string{"redis.appendonly"}},
		{name: "more processes than connections", args: []string{"-web", "30"}, harm: func() {}, mend: func() {}, want: []string{"connections"}},
		{name: "a database that is away", harm: set("DATABASE_URL", "postgres://nobody:hunter2@127.0.0.1:1/nothing"), mend: set("DATABASE_URL", durable), want: []string{"postgresql"}},
		{name: "a variable that is wrong", harm: set("RETENTION_DAYS", "hunter2"), mend: set("RETENTION_DAYS", ""), want: []string{"settings"}},
		{name: "no database at all", harm: set("DATABASE_URL", ""), mend: set("DATABASE_URL", durable), want: []string{"settings"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.harm()
			defer c.mend()
			found, code := i.doctor(c.args...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			got := faults(found)
			for _, check := range c.want {
				if found[check].Do == "" || !got[check] {
					t.Errorf("%s was not found: %+v", check, found[check])
				}
				delete(got, check)
			}
			if !c.alsoUndetermined && len(got) > 0 {
				t.Errorf("also found: %v", got)
			}
		})
	}
	if found, code := i.doctor(); code != 0 || len(faults(found)) > 0 {
		t.Errorf("after all was mended: %d, %v", code, faults(found))
	}
}

// TestDoctorComparesForecasts: reminders that no provider can send, and reminders that a rate is too
// low for, are faults that say how many. A drop that opens soon wants more processes.
func TestDoctorComparesForecasts(t *testing.T) {
	i := newInstallation(t)
	opens := time.Now().Add(12 * time.Minute).Truncate(time.Second)
	id := rows.Drop{OpensAt: opens}.Add(t, i.conn)
	i.exec(`insert into slots (template_id, slot, opens_at, due_at, state) values ($1, 1, $2, $2::timestamptz - interval '5 minutes', 'waiting')`, id, opens)
	i.exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 1, 400000), ($1, 1, 2, 10)`, id)
	i.exec(`update channel_settings set rate_per_second = 100 where channel = 1`)
	i.env["SMTP_URL"] = "smtp://user:hunter2@mail.example:587?from=drops@shop.example"
	found, code := i.doctor()
	if want := map[string]bool{"forecast.email": true, "forecast.sms": true}; code != 1 || !maps.Equal(faults(found), want) {
		t.Errorf("%d: %v", code, found)
	}
	if f := found["forecast.email"].Found; !strings.HasPrefix(f, "370000 of 400000 reminders") {
		t.Error(f)
	}
	if f := found["processes.web"]; f.State != doctor.Advice || !strings.Contains(f.Found, "0 run, 3 are wanted: drop ") || !strings.Contains(f.Found, "400,010 expected") {
		t.Errorf("%+v", f)
	}
}

// TestDoctorSpeaks: the text for people has what to do below each finding, and wrong arguments are
// mistakes.
func TestDoctorSpeaks(t *testing.T) {
	var out strings.Builder
	err := Do(t.Context(), []string{"doctor"}, environment("DATABASE_URL", "postgres://nobody:hunter2@127.0.0.1:1/nothing"), &out)
	if config.ExitCode(err) != 1 || !strings.Contains(out.String(), "fault   settings: REDIS_URL is required") || !strings.Contains(out.String(), "        do: start PostgreSQL, or correct DATABASE_URL\n") ||
		strings.Contains(out.String(), "hunter2") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, args := range []string{"doctor now", "doctor -web x", "doctor -web -1", "doctor -fast"} {
		if err := Do(t.Context(), strings.Fields(args), environment(), &out); config.ExitCode(err) != 2 || !strings.Contains(err.Error(), "usage: dropbell doctor") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
