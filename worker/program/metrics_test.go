package program

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
	"dropbell/musttest"
	"dropbell/worker/workertest"
)

// assembled returns a program that is built and not running, and a connection to its database.
func assembled(t *testing.T) (*program, *pgx.Conn) {
	t.Helper()
	return assembledOn(t, localstack.Database(t), localstack.RedisServer(t).URL())
}

// assembledOn returns a worker of these servers, of which nothing runs.
func assembledOn(t *testing.T, database, redis string) (*program, *pgx.Conn) {
	t.Helper()
	env := map[string]string{"DATABASE_URL": database, "REDIS_URL": redis}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return p, conn
}

// taskOf returns what does the queue's tasks of the name.
func taskOf(t *testing.T, p *program, name string) func(context.Context, []byte) error {
	t.Helper()
	for _, one := range p.roles.Tasks {
		if one.Name == name {
			return one.Do
		}
	}
	t.Fatalf("no room does %s", name)
	return nil
}

// loopOf returns what the loop of the name does.
func loopOf(t *testing.T, p *program, name string) func(context.Context) error {
	t.Helper()
	for _, l := range p.roles.Loops {
		if l.Name == name {
			return l.Do
		}
	}
	t.Fatalf("no room has the loop %s", name)
	return nil
}

// watchOf returns what looks for alerts of the kind.
func watchOf(p *program, k alert.Kind) func(context.Context) ([]alert.Condition, error) {
	for _, w := range p.roles.Watches {
		if w.Kind == k {
			return w.Look
		}
	}
	return nil
}

// drain delivers what is ready of a channel.
func drain(t *testing.T, p *program, c delivery.Channel) error {
	t.Helper()
	payload, err := json.Marshal(task.BatchPayload{Channel: c.String()})
	musttest.OK(t, err)
	return taskOf(t, p, task.Deliver)(t.Context(), payload)
}

// TestHandbookListsTheMetrics and nothing else.
func TestHandbookListsTheMetrics(t *testing.T) {
	p, _ := assembled(t)
	raw, err := os.ReadFile("../../docs/operations.md")
	musttest.OK(t, err)
	_, rest, _ := strings.Cut(string(raw), "### Metrics of worker")
	section, _, _ := strings.Cut(rest, "\n## ")
	descriptions := make(chan *prometheus.Desc)
	go func() {
		p.Registry.Describe(descriptions)
		close(descriptions)
	}()
	registered := map[string]bool{}
	for d := range descriptions {
		if m := regexp.MustCompile(`fqName: "(dropbell_\w+)"`).FindStringSubmatch(d.String()); m != nil {
			registered[m[1]] = true
			if !strings.Contains(section, "`"+m[1]+"`") {
				t.Errorf("%s is not in the handbook", m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile("`(dropbell_[a-z_]+)[`{]").FindAllStringSubmatch(section, -1) {
		if !registered[m[1]] {
			t.Errorf("the handbook lists %s, which nobody registers", m[1])
		}
	}
}

// The handbook lists, for each loop, what is missing while it fails.
func TestHandbookListsTheLoops(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	musttest.OK(t, err)
	_, rest, _ := strings.Cut(string(raw), "## Background job fails")
	section, _, _ := strings.Cut(rest, "\n## ")
	sources, err := filepath.Glob("../*/*.go")
	musttest.OK(t, err)
	loops := map[string]bool{}
	for _, name := range sources {
		source, err := os.ReadFile(name)
		musttest.OK(t, err)
		for _, m := range regexp.MustCompile(`(?:\.Every\([^"\n]+, |\.Attempts\(|\badd\(shell\.[A-Z][a-z]+, |Role: shell\.[A-Z][a-z]+, Name: )"([a-z ]+)",`).FindAllSubmatch(source, -1) {
			loops[string(m[1])] = true
			if !strings.Contains(section, "\n| "+string(m[1])+" |") {
				t.Errorf("the loop %s is not in the handbook", m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`\n\| ([a-z ]+) \|`).FindAllStringSubmatch(section, -1) {
		if m[1] != "loop" && !loops[m[1]] {
			t.Errorf("the handbook lists the loop %s, which nobody runs", m[1])
		}
	}
	if len(loops) < 14 {
		t.Errorf("only %d loops found", len(loops))
	}
}

func TestCensusTellsWhatIsOff(t *testing.T) {
	p, conn := assembled(t)
	rows.Drop{ID: 7}.Add(t, conn)
	for _, sql := range []string{
		`insert into slots (id, template_id, slot, opens_at, due_at, state, fired_at, finished_at) overriding system value
			values (1, 7, 3, now(), now(), 'finished', now(), now()), (2, 7, 4, now() + interval '1 hour', now() + interval '30 minutes', 'waiting', null, null)`,
		`insert into slot_results (slot_id, channel, reserved, sent) values (1, 2, 5, 5)`, // and no batch
		`insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, 'a', 3, now(), now(), ''), (1, 'b', 4, now(), now(), '')`,
		`insert into bookings (template_id, slot, channel, booked) values (7, 4, 2, 10000000)`, // at 500 a second
		`insert into notice_runs (id, template_id, days, due_at, settled_at) overriding system value values (9, 7, 1, now(), now())`,
		`insert into notices (user_id, template_id, day, days, due_at, expires_at, status, run_id) select u, 7, now()::date, 1, now(), now(), 1, 9 from generate_series(1, 4) as u`, // and no batch
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in %s", err, sql)
		}
	}
	musttest.OK(t, p.census.count(t.Context()))
	workertest.Expect(t, p.Registry, 10, "dropbell_balance_difference", "template=7", "slot=3", "channel=sms") // 5 reserved and 5 sent, and no recipients
	workertest.Expect(t, p.Registry, 1, "dropbell_balance_slots")
	workertest.Expect(t, p.Registry, 4, "dropbell_notice_difference", "template=7", "run=9")
	workertest.Expect(t, p.Registry, 1, "dropbell_notice_runs_recounted")
	workertest.Expect(t, p.Registry, 7, "dropbell_dead_letters", "channel=email")
	workertest.Expect(t, p.Registry, 0, "dropbell_dead_letters", "channel=sms")
	if missed, _ := workertest.Value(t, p.Registry, "dropbell_forecast_misses", "channel=sms"); missed < 9_000_000 || missed > 9_200_000 {
		t.Errorf("%v messages would miss the opening", missed)
	}
	if _, err := conn.Exec(t.Context(), `update slot_results set reserved = 0, sent = 0`); err != nil {
		t.Fatal(err)
	}
	forecasts := func() (n int64) {
		t.Helper()
		musttest.OK(t, conn.QueryRow(t.Context(), `select coalesce(sum(missed), 0) from slot_forecasts where slot_id = 2 and channel = 2 and messages = 10000000`).Scan(&n))
		return n
	}
	if n := forecasts(); n != 0 {
		t.Errorf("the forecast of a slot that is due in half an hour is kept: %d", n)
	}
	if _, err := conn.Exec(t.Context(), `update slots set due_at = now() + interval '5 minutes' where id = 2`); err != nil {
		t.Fatal(err)
	}
	musttest.OK(t, p.census.count(t.Context()))
	if n := forecasts(); n < 8_300_000 || n > 8_400_000 { // 55 minutes at 500 a second
		t.Errorf("%d would miss in the forecast that is kept of a slot that is due soon", n)
	}
	if n, there := workertest.Value(t, p.Registry, "dropbell_balance_difference", "template=7", "slot=3", "channel=sms"); there {
		t.Errorf("a difference that is gone is still told: %v", n)
	}
	p.census.forget()
	if _, there := workertest.Value(t, p.Registry, "dropbell_dead_letters", "channel=email"); there {
		t.Error("a worker that does not count any more goes on telling")
	}
}

func TestChannelGauges(t *testing.T) {
	p, conn := assembled(t)
	if _, err := conn.Exec(t.Context(), `update channel_settings set paused = true where channel = 3`); err != nil {
		t.Fatal(err)
	}
	breaker := redis.NewBreaker(p.Redis, redis.BreakerConfig{})
	for range 5 {
		musttest.OK(t, breaker.Report(t.Context(), delivery.SMS, false, "503"))
	}
	musttest.OK(t, each(t.Context(), p.roles.Gauges))
	workertest.Expect(t, p.Registry, 1, "dropbell_channel_paused", "channel=webpush")
	workertest.Expect(t, p.Registry, 0, "dropbell_channel_paused", "channel=sms")
	workertest.Expect(t, p.Registry, 2, "dropbell_breaker_state", "channel=sms")
	workertest.Expect(t, p.Registry, 0, "dropbell_breaker_state", "channel=email")
	// A channel with providers of staff has the circuit breakers of these providers.
	if _, err := conn.Exec(t.Context(), `insert into providers (id, channel, kind, name, enabled, changed, created_by) overriding system value
		select id, 2, 'json', 'x', id < 3, 1, 'x' from generate_series(1, 3) id`); err != nil {
		t.Fatal(err)
	}
	for id, open := range []float64{0, 0, 2} { // none, the first, both that are enabled
		for range 5 * min(1, id) {
			musttest.OK(t, breaker.Of(int64(id)).Report(t.Context(), delivery.SMS, false, "503"))
		}
		musttest.OK(t, each(t.Context(), p.roles.Gauges))
		workertest.Expect(t, p.Registry, open, "dropbell_breaker_state", "channel=sms")
		list, err := watchOf(p, alert.Channel)(t.Context())
		if err != nil || len(list) != int(open)/2 {
			t.Errorf("with %d of two circuits open the alert is %+v, %v", id, list, err)
		}
	}
	// The circuit breakers of providers for phone apps and mini programs are listed one by one.
	if _, err := conn.Exec(t.Context(), `insert into shops (number, name, timezone) values (7, 'Seven', 'UTC')`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `insert into providers (id, channel, shop_number, kind, name, enabled, changed, created_by) overriding system value
		values (11, 3, null, 'apns', 'Moon', true, 1, 'x'), (12, 3, 7, 'fcm', 'Moon of 7', true, 1, 'x'), (13, 3, null, 'wechat', 'Off', false, 1, 'x'), (14, 3, null, 'fcm', 'Well', true, 1, 'x')`); err != nil {
		t.Fatal(err)
	}
	for i := range 15 {
		musttest.OK(t, breaker.Of(int64(11+i%3)).Report(t.Context(), delivery.WebPush, false, "503"))
	}
	list, err := watchOf(p, alert.Channel)(t.Context())
	if list = slices.DeleteFunc(list, func(c alert.Condition) bool { return c.Detail != alert.DetailProvider }); err != nil || len(list) != 2 ||
		list[0] != (alert.Condition{Kind: alert.Channel, Object: "webpush:provider:11", Name: "Moon", Detail: alert.DetailProvider, Path: "/providers"}) || list[1].Shop != 7 {
		t.Errorf("with the circuits of two providers of push open the alert is %+v, %v", list, err)
	}
	workertest.Expect(t, p.Registry, 0, "dropbell_queue_age_seconds", "queue=timers")
	workertest.Expect(t, p.Registry, float64(p.Config.DBConns), "dropbell_db_connections_limit")
	workertest.Expect(t, p.Registry, 0, "dropbell_provider_answers_total", "channel=email", "class=permanent")
}
