package program

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push/pushtest"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/worker/commands"
)

// tapped counts the connections to the providers of all channels.
func tapped(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	connections = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().String(), connections
}

// armed is the environment of a worker with a provider for every channel.
func armed(t *testing.T, address string) map[string]string {
	t.Helper()
	apple, err1 := pushtest.NewAPNs()
	google, err2 := pushtest.NewFCM()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	t.Cleanup(apple.Close)
	t.Cleanup(google.Close)
	return map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0",
		"WORKER_ROLES": "timers,delivery,jobs,events,gate", "LINK_SECRET": "a secret with at least thirty-two bytes",
		"SMTP_URL": "smtp://" + address + "?from=shop@shop.example", "SMS_URL": "http://" + address, "SMS_TOKEN": "token", "WEBHOOK_URL": "http://" + address, "WEBHOOK_SECRET": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"APNS_KEY": string(apple.Key), "APNS_KEY_ID": apple.KeyID, "APNS_TEAM_ID": apple.TeamID, "APNS_TOPIC": apple.Topic, "APNS_URL": "https://" + address,
		"FCM_SERVICE_ACCOUNT": string(google.Account), "FCM_URL": "https://" + address}
}

// stageOf returns a stage whose rehearsals open within seconds, on the database of env.
func stageOf(t *testing.T, env map[string]string) *stage {
	t.Helper()
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	a, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), app.Options{Name: "worker"})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = a.Close() })
	s := newStage(a)
	s.opensIn, s.step = 8*time.Second, 500*time.Millisecond
	return s
}

// reachable gives n users a contact for every channel and reserves all reminders of the drop for them.
func reachable(w *pgtest.Fixture, drop template.Template, n int) {
	w.Exec(`insert into users (id, name, email, phone, devices) select n, 'Customer ' || n, 'c' || n || '@shop.example', '+4912345' || n,
		jsonb_build_array(jsonb_build_object('platform', 'ios', 'token', lpad(n::text, 64, '0'), 'app', '', 'version', '', 'language', '')) from generate_series(1, $1) n`, n)
	for id := 1; id <= n; id++ {
		for _, c := range delivery.AllChannels() {
			w.Reserve(drop, user.ID(id), pgtest.Reminders(c, 5, 30, 60)...)
		}
	}
	w.RelayCounts()
}

// everything counts the rows of every table of the real drops that a rehearsal must leave alone.
func everything(w *pgtest.Fixture) map[string]int64 {
	rows := map[string]int64{}
	for _, table := range []string{"templates", "slots", "batches", "slot_results", "coupons", "claim_seconds", "claim_counts", "reservations", "bookings", "outbox", "exceptions", "channel_rates", "hook_events", "budgets",
		"booking_growth", "coupon_tallies", "users", "accepted_messages", "provider_calls", "sms_spent", "alerts"} {
		rows[table] = w.Number(`select count(*) from ` + table)
	}
	return rows
}

func (s *stage) runner(token string) *rehearsal.Runner {
	return &rehearsal.Runner{Store: s.Stores.Rehearsals, Stage: s, Token: token, Lease: 15 * time.Second, Every: 200 * time.Millisecond}
}

// ask asks for a rehearsal of the drop.
func ask(w *pgtest.Fixture, s *stage, drop template.Template) rehearsal.Rehearsal {
	r, err := s.Stores.Rehearsals.Ask(w.T.Context(), rehearsal.Rehearsal{TemplateID: drop.ID, Shop: drop.ShopNumber, By: "test"}, staff.Entry{Actor: staff.System(), Action: "template.rehearse", ObjectKind: "template", ObjectID: fmt.Sprint(drop.ID)})
	w.Must(err)
	return r
}

// A rehearsal of a drop whose users are reachable over every channel, beside a whole worker with a provider for every
// channel, reaches none of them and changes no row of the real drops. Its own reminders and coupons add up. The same
// providers are reached by the drop itself.
func TestARehearsalReachesNobody(t *testing.T) {
	address, connections := tapped(t)
	env := armed(t, address)
	w := pgtest.On(t, env["DATABASE_URL"])
	drop := w.Published(3 * time.Hour)
	const n = 40
	reachable(w, drop, n)
	s := stageOf(t, env)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	asked := ask(w, s, drop)
	before := everything(w)
	w.Must(s.runner("here").Step(t.Context()))
	list, err := s.Stores.Rehearsals.Of(t.Context(), drop.ID, 5)
	w.Must(err)
	if len(list) != 1 || list[0].State != rehearsal.Done || list[0].Report == nil {
		t.Fatalf("%+v", list)
	}
	r := *list[0].Report
	t.Logf("%+v", r)
	if r.Users != n || r.SharePermille != 1000 || r.Reminders != n*3*delivery.Channels || r.Sent+r.Dead+r.Skipped != r.Reminders || !r.Sound() {
		t.Errorf("reminders: %+v", r)
		world := fmt.Sprintf("rehearsal_%d.", asked.ID)
		for what, n := range map[string]int64{"runs": w.Number(`select max(runs) from ` + world + `batches`), "expired without a run": w.Number(`select count(*) from ` + world + `batches where runs < 2 and expired_count > 0`),
			"channel": w.Number(`select coalesce(max(channel), -1) from ` + world + `batches where expired_count > 0`), "cut late ms": w.Number(`select (max(extract(epoch from cut_at - due_at)) * 1000)::bigint from ` + world + `slots`)} {
			t.Errorf("%s: %d", what, n)
		}
	}
	if r.Claims < n || r.Failed != 0 || r.Issued != min(r.Stock, r.Claims) || r.Rate == 0 || r.ClaimP99 == 0 && r.Claims == 0 {
		t.Errorf("claims: %+v", r)
	}
	if got := connections.Load(); got != 0 {
		t.Errorf("the rehearsal made %d connections to providers", got)
	}
	for table, rows := range everything(w) {
		if rows != before[table] && table != "outbox" {
			t.Errorf("%s: %d rows, %d before", table, rows, before[table])
		}
	}
	if n := w.Number(`select count(*) from rehearsal_` + fmt.Sprint(asked.ID) + `.users where email like '%@shop.example' or phone like '+49%' or name <> '' or devices::text like '%000000000001%'`); n != 0 {
		t.Errorf("%d users of the world have their contacts", n)
	}
	rushing(w, env, asked.ID)
	w.DueNow(drop, 1)
	deadline := time.Now().Add(localstack.Patience(t))
	for connections.Load() == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the drop itself reaches no provider either")
		}
		<-time.After(20 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.Exec(`update rehearsals set ended_at = ended_at - interval '25 hours'`)
	w.Must(s.runner("here").Step(t.Context()))
	if n := w.Number(`select count(*) from information_schema.schemata where schema_name like 'rehearsal_%'`); n != 0 {
		t.Error("the world is still there a day later")
	}
}

// rushing lets further customers come to the copy, which is sold out. It is refused above half of the capacity, about another rehearsal, and
// before the opening of a drop.
func rushing(w *pgtest.Fixture, env map[string]string, id int64) {
	w.T.Helper()
	rush := func(args ...string) (string, error) {
		var out strings.Builder
		err := commands.Do(w.T.Context(), append([]string{"rush"}, args...), func(name string) string { return env[name] }, &out)
		return out.String(), err
	}
	if said, err := rush("-rate", "20", "-for", "1s", fmt.Sprint(id)); err != nil || !strings.Contains(said, "20 customers came, 20 a second: 0 got a coupon, 20 were refused, 0 got no answer") {
		w.T.Errorf("%s %v", said, err)
	}
	for _, args := range [][]string{{}, {"-rate", "0", "1"}, {"-rate", "100000000", fmt.Sprint(id)}, {fmt.Sprint(id + 1)}} {
		if said, err := rush(args...); err == nil {
			w.T.Errorf("%v: %s", args, said)
		}
	}
	near := w.Published(30 * time.Minute)
	if _, err := rush(fmt.Sprint(id)); !errors.Is(err, rehearsal.ErrNear) {
		w.T.Errorf("half an hour before an opening: %v", err)
	}
	w.Exec(`update templates set state = 'cancelled' where id = $1`, near.ID)
}

// A rehearsal that is killed in its middle leaves nothing that counts: its end is stored by another worker, which removes its world,
// and another rehearsal can begin.
func TestAKilledRehearsalLeavesNothing(t *testing.T) {
	address, connections := tapped(t)
	env := armed(t, address)
	w := pgtest.On(t, env["DATABASE_URL"])
	drop := w.Published(3 * time.Hour)
	reachable(w, drop, 10)
	s := stageOf(t, env)
	asked := ask(w, s, drop)
	before := everything(w)
	ctx, kill := context.WithCancel(t.Context())
	died := make(chan struct{})
	dying := s.runner("dying")
	dying.Store = deaf{s.Stores.Rehearsals, ctx.Err}
	go func() { defer close(died); _ = dying.Step(ctx) }()
	deadline := time.Now().Add(localstack.Patience(t))
	for w.Number(`select coalesce(max((progress ->> 'fired')::int), 0) from rehearsals`) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no reminder of the rehearsal was fired")
		}
		<-time.After(20 * time.Millisecond)
	}
	if _, err := s.Stores.Rehearsals.Ask(t.Context(), rehearsal.Rehearsal{TemplateID: drop.ID}, staff.Entry{Actor: staff.System(), Action: "template.rehearse"}); err == nil {
		t.Error("two rehearsals run at a time")
	}
	kill()
	<-died
	if got := w.Number(`select count(*) from rehearsals where state = 'running'`); got != 1 {
		t.Fatal("the killed worker stored an end")
	}
	w.Exec(`update rehearsals set lease_until = now() - interval '1 second'`)
	other := s.runner("other")
	w.Must(other.Step(t.Context())) // ends it
	w.Must(other.Step(t.Context())) // removes its world
	list, err := s.Stores.Rehearsals.Of(t.Context(), drop.ID, 5)
	w.Must(err)
	if len(list) != 1 || list[0].State != rehearsal.Failed || list[0].Detail == "" || !list[0].Removed || list[0].ID != asked.ID {
		t.Errorf("%+v", list)
	}
	for table, rows := range everything(w) {
		if rows != before[table] {
			t.Errorf("%s: %d rows, %d before", table, rows, before[table])
		}
	}
	if n := w.Number(`select count(*) from information_schema.schemata where schema_name like 'rehearsal_%'`); n != 0 || connections.Load() != 0 {
		t.Errorf("%d worlds and %d connections", n, connections.Load())
	}
	ask(w, s, drop)
}

// deaf is the store of a process that dies with its context: nothing is stored after it.
type deaf struct {
	rehearsal.RunStore
	died func() error
}

func (d deaf) End(ctx context.Context, id int64, token string, r *rehearsal.Report, detail string) error {
	if err := d.died(); err != nil {
		return err
	}
	return d.RunStore.End(ctx, id, token, r, detail)
}
