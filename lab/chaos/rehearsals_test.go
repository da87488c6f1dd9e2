package chaos_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/killpoint"
	"dropbell/lab/bench/stack"

	goredis "github.com/redis/go-redis/v9"
)

// rehearsals are rehearsals of a drop, one after the other, of which some are killed.
type rehearsals struct {
	*system
	f      *pgtest.Fixture
	stores app.Stores
	redis  goredis.UniversalClient
	dir    string
	drop   template.Template
	// connections counts the connections to the providers of all channels but the app.
	connections *atomic.Int64
	before      map[string]int64
}

// TestRehearsalsShort kills a worker with SIGKILL in rehearsals: at a random choice of the points around their writes, while reminders are
// sent, while customers come, and at the end. All workers have a provider for each channel. No provider is called, no row of the
// real drops changes and the shop's server is told nothing; another worker removes the schema and the keys in Redis, and the rehearsal is called interrupted.
// At last a rehearsal that is not killed passes every point, and the drop itself reaches the providers.
func TestRehearsalsShort(t *testing.T) {
	t.Parallel()
	r := newRehearsals(t)
	list := r.kills(rehearsalPoints(t))
	r.random(5).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, f := range append(list[:3], failing{"rehearsal.end", killpoint.BeforeIt, killpoint.Kill}) {
		r.killAt(f)
	}
	r.killWhen("reminders are sent", func(p rehearsal.Progress) bool { return p.Sent > 0 })
	r.killWhen("customers come", func(p rehearsal.Progress) bool { return p.Claims > 0 })
	r.undisturbed()
}

func newRehearsals(t *testing.T) *rehearsals {
	w := &system{size: &size{}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	var err error
	if w.stack, err = stack.StartNew(w.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stack.Close)
	r := &rehearsals{system: w, dir: t.TempDir(), f: pgtest.On(t, w.stack.PostgresURL)}
	r.stores = app.NewStores(r.f.DB)
	if r.redis, err = redis.Open(w.stack.RedisURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.redis.Close() })
	var env []string
	env, r.connections = armedSenders(t)
	w.fleet = launch(w.ctx, &fleet{t: t, stack: w.stack, killable: true,
		env: append(env, "REHEARSAL_OPENS_IN=10s", killpoint.Variable+"="+r.dir)}, 0, 2)
	r.drop = r.f.Published(3 * time.Hour)
	r.f.Exec(`update templates set claim_mode = 'gate', waitlist = 'issue' where id = $1`, r.drop.ID)
	const users = 20
	r.f.Exec(`insert into users (id, name, email, phone, devices) select n, 'Customer ' || n, 'c' || n || '@shop.example', '+4912345' || n,
		jsonb_build_array(jsonb_build_object('platform', 'ios', 'token', lpad(n::text, 64, '0'), 'app', '', 'version', '', 'language', '')) from generate_series(1, $1) n`, users)
	for id := range user.ID(users) {
		for _, c := range delivery.AllChannels() {
			r.f.Reserve(r.drop, id+1, pgtest.Reminders(c, 5, 30)...)
		}
	}
	r.f.Exec(`truncate chaos_reservations`) // they were stored without the programs, which tell the shop's server
	r.until("the gate of the drop is built", func() bool { return r.f.Number(`select count(*) from gates where state = 'standing'`) == 1 })
	r.before = r.everything()
	return r
}

// armedSenders returns the environment of a worker with a provider for each channel, and counts the connections to them.
func armedSenders(t *testing.T) (env []string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	apple, err1 := pushtest.NewAPNs()
	google, err2 := pushtest.NewFCM()
	if err != nil || err1 != nil || err2 != nil {
		t.Fatal(err, err1, err2)
	}
	t.Cleanup(func() { _ = l.Close(); apple.Close(); google.Close() })
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
	at := l.Addr().String()
	return []string{"SMTP_URL=smtp://" + at + "?from=shop@shop.example", "SMS_URL=http://" + at, "SMS_TOKEN=token", "WEBHOOK_URL=http://" + at, "WEBHOOK_SECRET=whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"APNS_KEY=" + string(apple.Key), "APNS_KEY_ID=" + apple.KeyID, "APNS_TEAM_ID=" + apple.TeamID, "APNS_TOPIC=" + apple.Topic, "APNS_URL=https://" + at,
		"FCM_SERVICE_ACCOUNT=" + string(google.Account), "FCM_URL=https://" + at}, connections
}

// kills returns the kills at the points.
func (r *rehearsals) kills(points []string) (list []failing) {
	for _, f := range everyFailing(points) {
		if f.failure == killpoint.Kill {
			list = append(list, f)
		}
	}
	return list
}

// everything counts the rows of each table of the real drops that a rehearsal must leave alone.
func (r *rehearsals) everything() map[string]int64 {
	rows := map[string]int64{}
	for _, table := range []string{"templates", "slots", "batches", "slot_results", "coupons", "claim_seconds", "claim_counts", "claim_results", "draw_entries", "waiters", "waitlists", "exceptions", "channel_rates",
		"budgets", "coupon_tallies", "users", "accepted_messages", "provider_calls", "sms_spent", "dead_messages", "inbox_reads"} {
		rows[table] = r.f.Number(`select count(*) from ` + table)
	}
	rows["stock"] = r.f.Number(`select stock - issued from templates where id = $1`, r.drop.ID)
	return rows
}

func (r *rehearsals) until(what string, ok func() bool) {
	r.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !ok(); wait(50*time.Millisecond, r.ctx.Done()) {
		if time.Now().After(limit) {
			r.t.Fatalf("never: %s", what)
		}
	}
}

func (r *rehearsals) ask() rehearsal.Rehearsal {
	r.t.Helper()
	one, err := r.stores.Rehearsals.Ask(r.ctx, rehearsal.Rehearsal{TemplateID: r.drop.ID, Shop: r.drop.ShopNumber, By: "test"}, staff.Entry{Actor: staff.System(), Action: "template.rehearse", ObjectKind: "template", ObjectID: fmt.Sprint(r.drop.ID)})
	r.f.Must(err)
	return one
}

// now returns the rehearsal as it is.
func (r *rehearsals) now(id int64) rehearsal.Rehearsal {
	r.t.Helper()
	list, err := r.stores.Rehearsals.Of(r.ctx, r.drop.ID, 20)
	r.f.Must(err)
	return list[slices.IndexFunc(list, func(one rehearsal.Rehearsal) bool { return one.ID == id })]
}

// killAt lets a rehearsal be killed at a point. Points of the removal are passed after its end.
func (r *rehearsals) killAt(f failing) {
	r.t.Helper()
	name := filepath.Join(r.dir, killpoint.Armed(f.point, f.phase, f.failure))
	r.f.Must(os.WriteFile(name, nil, 0o600))
	one := r.ask()
	if strings.Contains(f.point, "drop_") || strings.HasSuffix(f.point, "removed") { // a second kill, so that there is something to remove soon
		r.until("the copy is made", func() bool { return r.now(one.ID).OpensAt != nil })
		r.killWorkers()
		r.endLease(one.ID)
	}
	r.until(f.String(), func() bool {
		_, err := os.Stat(name)
		return err != nil
	})
	r.leavesNothing(one, f.String(), f.point == "rehearsal.end" && f.phase == killpoint.AfterIt)
}

// killWhen kills the workers once a rehearsal has come so far.
func (r *rehearsals) killWhen(what string, far func(rehearsal.Progress) bool) {
	r.t.Helper()
	one := r.ask()
	r.until(what, func() bool { return far(r.now(one.ID).Progress) })
	r.killWorkers()
	r.leavesNothing(one, what, false)
}

// killWorkers kills the workers, and starts others.
func (r *rehearsals) killWorkers() {
	for _, m := range r.fleet.workers {
		if _, ok := r.fleet.kill(m); ok {
			r.fleet.start(m)
		}
	}
}

// endLease ends the lease of a worker that was killed, so that the test need not wait for its end.
func (r *rehearsals) endLease(id int64) {
	r.f.Exec(`update rehearsals set lease_until = now() - interval '1 second' where id = $1 and state = 'running'`, id)
}

// leavesNothing waits for the end of a rehearsal that was killed, and looks at what it leaves.
func (r *rehearsals) leavesNothing(one rehearsal.Rehearsal, killed string, ended bool) {
	r.t.Helper()
	r.endLease(one.ID)
	r.until("the end of a rehearsal that was killed at "+killed, func() bool {
		now := r.now(one.ID)
		if now.State == rehearsal.Done { // it was asked for still when the worker was killed, or had ended
			r.f.Exec(`update rehearsals set ended_at = now() - interval '25 hours' where id = $1`, one.ID)
		}
		return now.Removed
	})
	now := r.now(one.ID)
	interrupted := now.State == rehearsal.Failed && now.Detail == rehearsal.Interrupted
	if whole := now.State == rehearsal.Done && now.Report.Sound(); !interrupted && !whole || ended && !whole {
		r.t.Errorf("killed at %s: %+v", killed, now)
	}
	r.nothingIsLeft(killed)
	if n := r.f.Number(`select count(*) from hook_events where payload like '%"' || $1 || '"%'`, fmt.Sprint(one.ID)); n != 0 {
		r.t.Errorf("killed at %s: the shop's server is told %d events", killed, n)
	}
	r.say("a rehearsal was killed at %s and left nothing; it is %s", killed, now.State)
}

func (r *rehearsals) nothingIsLeft(killed string) {
	r.t.Helper()
	for what, rows := range r.everything() {
		if rows != r.before[what] {
			r.t.Errorf("killed at %s: %s: %d, %d before", killed, what, rows, r.before[what])
		}
	}
	if n := r.f.Number(`select count(*) from information_schema.schemata where schema_name like 'rehearsal\_%'`); n != 0 {
		r.t.Errorf("killed at %s: %d schemas are left", killed, n)
	}
	keys, err := r.redis.Keys(r.ctx, "*").Result()
	r.f.Must(err)
	for _, key := range keys {
		if number, of := strings.CutPrefix(key, "gate:{"); of && !strings.HasPrefix(number, fmt.Sprintf("%d:", r.drop.ID)) {
			r.t.Errorf("killed at %s: the key %s is left", killed, key)
		}
	}
	if n := r.connections.Load(); n != 0 {
		r.t.Fatalf("killed at %s: %d connections to providers", killed, n)
	}
}

// undisturbed lets a rehearsal end. Then all points have been passed, and the drop itself reaches the providers.
func (r *rehearsals) undisturbed() {
	r.t.Helper()
	one := r.ask()
	r.until("the rehearsal ends", func() bool { return r.now(one.ID).State == rehearsal.Done })
	if now := r.now(one.ID); now.Report == nil || !now.Report.Sound() || now.Report.Issued == 0 || now.Report.Sent == 0 {
		r.t.Errorf("%+v", now)
	}
	r.f.Exec(`update rehearsals set ended_at = now() - interval '25 hours' where id = $1`, one.ID)
	r.until("the schema is removed", func() bool { return r.now(one.ID).Removed })
	r.nothingIsLeft("nothing")
	passed := reachedPoints(r.t, r.dir)
	for _, p := range rehearsalPoints(r.t) {
		if !slices.Contains(passed, p) {
			r.t.Errorf("no rehearsal has passed the point %q", p)
		}
	}
	r.f.DueNow(r.drop, 1)
	r.until("the drop itself reaches a provider", func() bool { return r.connections.Load() > 0 })
}
