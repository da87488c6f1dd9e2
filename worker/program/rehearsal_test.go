package program

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/webhook"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/event/hook"
	"dropbell/domain/rehearsal"
	"dropbell/domain/seal"
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
	a, err := app.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), app.Options{Name: "worker"})
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

// opensFully gives the drop everything that an opening can have but a draw: the claim gate, three doors of which none is for all, protection, and a
// waitlist. Users up to early come through the first door, which opens earlier, and all others through the last door.
func opensFully(w *pgtest.Fixture, drop template.Template, early int) {
	w.Exec(`update templates set claim_mode = 'gate', waitlist = 'issue', doors = 3, protection = 'standard' where id = $1`, drop.ID)
	w.Exec(`insert into door_codes (serial, template_id, batch_id, user_id) select n, $1, 1, n from generate_series(1, $2::int) n`, drop.ID, early)
	w.Exec(`insert into segments (id, name, kind, rule, created_by) overriding system value values (1, 'All', 'rules', '{"all": []}', 'test'), (2, 'Empty', 'list', '{"all": []}', 'test')`)
	w.Exec(`insert into doors (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts, booked_share)
		select $1, n, 'Door ' || n, (array['codes', 'list', 'segment'])[n], (array[null, 2, 1])[n], (array[90, 0, 0])[n], (array[10, 0, 0])[n], 0, '{}', 100 from generate_series(1, 3) n`, drop.ID)
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
	return &rehearsal.Runner{Store: s.Stores.Rehearsals, Stage: s, Token: token, Lease: 15 * time.Second, Every: 200 * time.Millisecond,
		Failed: func(id int64, err error) { s.Log.Error("a rehearsal failed", "rehearsal", id, "error", err) }}
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
	const n, early = 40, 5 // most customers come through the later doors, more than there are coupons
	opensFully(w, drop, early)
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
	if r.Claims < n || r.Failed != 0 || r.Issued != r.Stock || r.Rate == 0 || r.Expected < r.Rate || r.Twice == 0 || r.SoldOut == 0 || r.ClaimP99 == 0 && r.Claims == 0 {
		t.Errorf("claims: %+v", r)
	}
	var kinds []rehearsal.PartKind
	var through int64
	for _, p := range r.Parts {
		kinds = append(kinds, p.Kind)
		if p.Kind == rehearsal.OfDoor {
			through += p.Got
		}
		if refused := p.Kind == rehearsal.OfStrangers || p.Kind == rehearsal.OfPass; p.Came == 0 || (p.Got == 0) != refused || refused && p.Refused != p.Came {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(kinds, []rehearsal.PartKind{rehearsal.OfDoor, rehearsal.OfDoor, rehearsal.OfDoor, rehearsal.OfStrangers, rehearsal.OfPass, rehearsal.OfGate, rehearsal.OfWaitlist, rehearsal.OfEarly}) || through != r.Issued {
		t.Errorf("%v; %d coupons through doors", kinds, through)
	}
	if p, _ := r.Part(rehearsal.OfEarly); p.Came != early*3*delivery.Channels {
		t.Errorf("reminders of the door that opens earlier: %+v", p)
	}
	if p, _ := r.Part(rehearsal.OfPass); p.Took == 0 {
		t.Errorf("no puzzle was solved: %+v", p)
	}
	if keys := gateKeys(t, s, asked.ID); keys != 0 {
		t.Errorf("%d keys of the gate are left", keys)
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

// rushing lets further customers come to the copy, which has coupons for shops that try their checkout. It is refused above half of the capacity, about another rehearsal, and
// before the opening of a drop.
func rushing(w *pgtest.Fixture, env map[string]string, id int64) {
	w.T.Helper()
	rush := func(args ...string) (string, error) {
		var out strings.Builder
		err := commands.Do(w.T.Context(), append([]string{"rush"}, args...), func(name string) string { return env[name] }, &out)
		return out.String(), err
	}
	if said, err := rush("-customers", "40", fmt.Sprint(id)); err != nil || !strings.Contains(said, "40 customers came, ") || strings.Contains(said, ": 0 got a coupon") || !strings.Contains(said, ", 0 got no answer; 5 tapped twice, and 0 of them got two") || !strings.Contains(said, "second 1: ") {
		w.T.Errorf("%s %v", said, err)
	}
	for _, args := range [][]string{{}, {"-customers", "0", "1"}, {"-customers", "100000000", fmt.Sprint(id)}, {fmt.Sprint(id + 1)}, {"-to", "here", fmt.Sprint(id)}, {"-to", "http://127.0.0.1:1", fmt.Sprint(id)}} {
		if said, err := rush(args...); err == nil {
			w.T.Errorf("%v: %s", args, said)
		}
	}
	shop, asked := overHTTP(w.T, id)
	env["RUSH_KEY"] = staff.TestPrefix + "abcdefghijklmnopqrstuvwxyz234567"
	if said, err := rush("-customers", "40", "-to", shop, fmt.Sprint(id)); err != nil || !strings.Contains(said, ": 3 got a coupon, 37 were refused, 0 got no answer; 5 tapped twice") || asked.Load() != 45 {
		w.T.Errorf("over HTTP: %s %v, %d requests", said, err, asked.Load())
	}
	near := w.Published(30 * time.Minute)
	if _, err := rush(fmt.Sprint(id)); !errors.Is(err, rehearsal.ErrNear) {
		w.T.Errorf("half an hour before an opening: %v", err)
	}
	w.Exec(`update templates set state = 'cancelled' where id = $1`, near.ID)
}

// overHTTP is a server whose first three claims get a coupon.
func overHTTP(t *testing.T, id int64) (url string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	var mu sync.Mutex
	keys, customers := map[string]bool{}, map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(q.Body)
		key, by := q.Header.Get("Idempotency-Key"), q.Header.Get("X-User-ID")
		if q.URL.Path != "/api/v1/claims" || !strings.HasPrefix(q.Header.Get("Authorization"), "Bearer "+staff.TestPrefix) || string(body) != fmt.Sprintf(`{"template_id":"%d"}`, id) || keys[key] || len(by) != 19 {
			t.Errorf("%s %v %s", q.URL, q.Header, body)
		}
		asked.Add(1)
		keys[key] = true
		if !customers[by] && len(customers) < 3 {
			customers[by] = true
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.WriteHeader(http.StatusConflict)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// gateKeys counts the keys of the claim gate of a rehearsal.
func gateKeys(t *testing.T, s *stage, id int64) int {
	t.Helper()
	keys, err := s.Redis.Keys(t.Context(), fmt.Sprintf("gate:{%d:*", id)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

// shopServer is a server of the shop with an endpoint, which asks to be told of rehearsals or does not.
func shopServer(w *pgtest.Fixture, env map[string]string, rehearsals bool) *receiver {
	w.Helper()
	box, err := seal.New(hook.SealPurpose, env["EVENTS_KEY"])
	w.Must(err)
	shop := &receiver{t: w.T}
	shop.status.Store(200)
	target := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if q.Header.Get(webhook.RehearsalHeader) == "" {
			w.Errorf("a request without the header: %v", q.Header)
		}
		shop.ServeHTTP(out, q)
	}))
	w.Cleanup(target.Close)
	service := &hook.Service{Store: workdb.NewHooks(w.DB), Box: box, Insecure: true, Now: app.Clock, Wake: func(context.Context, int64) {}}
	_, secret, err := service.Create(w.Context(), staff.Actor{Label: "staff:1", Role: staff.Operator}, 10, hook.Input{URL: target.URL, Enabled: true, Rehearsals: rehearsals}, "")
	w.Must(err)
	shop.secret.Store(&secret)
	return shop
}

// A rehearsal of a draw takes entries, seals them and draws with a secret that is committed to; winners accept their coupons, and entries that did
// not win are on the waitlist, where offers reach them. The server of the shop that asked for it is told in marked events.
func TestARehearsalOfADraw(t *testing.T) {
	env := armed(t, "127.0.0.1:1")
	env["EVENTS_KEY"], env["EVENTS_INSECURE"] = "a key with at least thirty-two bytes", "on"
	w := pgtest.On(t, env["DATABASE_URL"])
	drop := w.Published(3 * time.Hour)
	told, untold := shopServer(w, env, true), shopServer(w, env, false)
	w.Exec(`update templates set opening_mode = 'shuffled', entry_minutes = 10, draw_source = 'drand', per_user_limit = 1, stock = 20, waitlist = 'offer', accept_minutes = 30 where id = $1`, drop.ID)
	reachable(w, drop, 5)
	s := stageOf(t, env)
	ask(w, s, drop)
	w.Must(s.runner("here").Step(t.Context()))
	list, err := s.Stores.Rehearsals.Of(t.Context(), drop.ID, 5)
	w.Must(err)
	if len(list) != 1 || list[0].Report == nil {
		t.Fatalf("%+v", list)
	}
	r := *list[0].Report
	t.Logf("%+v", r)
	for _, want := range []hook.Type{hook.DropPublished, hook.DropOpened, hook.CouponIssued, hook.DrawSealed, hook.DrawDrawn} {
		list := told.of(want)
		if len(list) == 0 {
			t.Errorf("the shop was not told of %s", want)
		}
		for _, one := range list {
			if !one.Rehearsal || !strings.HasPrefix(one.id, "rehearsal_") {
				t.Errorf("%+v is not marked", one)
			}
		}
	}
	if n := w.Number(`select count(*) from hook_events`); n != 0 || len(untold.got) != 0 {
		t.Errorf("%d real events, %d events for an endpoint that did not ask", n, len(untold.got))
	}
	drawn, _ := r.Part(rehearsal.OfDraw)
	waited, _ := r.Part(rehearsal.OfWaitlist)
	if told, _ := r.Part(rehearsal.OfResult); told.Came != drawn.Came || told.Got != told.Came {
		t.Errorf("the result was told to %+v", told)
	}
	if !r.Sound() || r.Issued != 20 || drawn.Got != 20 || drawn.Came <= 20 || waited.Came == 0 || waited.Got != waited.Back || waited.Got == 0 {
		t.Errorf("%+v", r)
	}
}
