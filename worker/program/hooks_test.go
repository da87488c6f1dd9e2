package program

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest/rows"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// receiver is a shop's server. It keeps what is signed with its secret.
type receiver struct {
	t      *testing.T
	secret atomic.Pointer[string]
	status atomic.Int64 // of its answers

	mu  sync.Mutex
	got []received
}

type received struct {
	id       string
	Type     string
	Subject  string
	Sequence int64
	// Rehearsal is set in events of rehearsals.
	Rehearsal bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	verifier, err := standardwebhooks.NewWebhook(*r.secret.Load())
	if err == nil {
		err = verifier.Verify(body, q.Header)
	}
	one := received{id: q.Header.Get("webhook-id")}
	if err := errors.Join(err, json.Unmarshal(body, &one)); err != nil {
		r.t.Errorf("%s: %v", body, err)
	}
	r.mu.Lock()
	r.got = append(r.got, one)
	r.mu.Unlock()
	w.WriteHeader(int(r.status.Load()))
	_, _ = io.WriteString(w, "seen")
}

// of returns what was received of a type.
func (r *receiver) of(t hook.Type) (list []received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.got {
		if one.Type == string(t) {
			list = append(list, one)
		}
	}
	return list
}

// TestEventsReachAShopsServer: two workers send the events of the bus, signed. They continue
// after Redis was emptied, resend failed events with the same id, and sign with both secrets
// after a rotation. They stop sending to an endpoint that answers that it is gone.
func TestEventsReachAShopsServer(t *testing.T) {
	server := localstack.RedisServer(t)
	url := localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := sql.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	rows.Drop{Name: "Half price", Issued: 10, OpensAt: time.Now().Add(2 * time.Hour)}.Add(t, sql)

	const key = "a key with at least thirty-two bytes"
	box, err := seal.New(hook.SealPurpose, key)
	musttest.OK(t, err)
	db, err := postgres.Open(t.Context(), url, postgres.Options{})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	service := &hook.Service{Store: workdb.NewHooks(db), Box: box, Insecure: true, Now: app.Clock, Wake: func(context.Context, int64) {}}
	shop := &receiver{t: t}
	shop.status.Store(200)
	target := httptest.NewServer(shop)
	t.Cleanup(target.Close)
	operator := staff.Actor{Label: "staff:1", Role: staff.Operator}
	endpoint, secret, err := service.Create(t.Context(), operator, 10, hook.Input{URL: target.URL, Enabled: true}, "")
	musttest.OK(t, err)
	shop.secret.Store(&secret)

	env := map[string]string{"DATABASE_URL": url, "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "EVENTS_KEY": key, "EVENTS_INSECURE": "on"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	}
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	announce := func(topic, payload string) {
		t.Helper()
		exec(`insert into outbox (topic, payload) values ($1, $2)`, topic, payload)
	}
	arrives := func(what hook.Type, n int) (list []received) {
		t.Helper()
		poll(t, string(what), func() error {
			if list = shop.of(what); len(list) < n {
				return fmt.Errorf("%d of %d arrived", len(list), n)
			}
			return nil
		})
		return list
	}
	announce("template.published.v1", `{"template_id":"1","version":2,"opens_at":"2026-11-20T12:00:00Z","sequence":"41","at":"2026-11-20T11:00:00Z"}`)
	if first := arrives(hook.DropPublished, 1)[0]; first.Subject != "drop/1" || first.Sequence != 41 {
		t.Errorf("%+v", first)
	}
	for n := range 60 {
		announce("coupon.changed.v1", fmt.Sprintf(`{"coupon_id":"7","template_id":"1","user_id":"5","order_id":"A","step":"lock","from":"unused","to":"locked","discount":1,"operation_id":"%d","at":"2026-11-20T12:00:00Z"}`, n+1))
		announce("reservations.listed.v1", fmt.Sprintf(`{"template_id":"1","items":[{"user_id":"%d","bits":"1","sequence":"%d","at":"2026-11-20T11:30:00Z"}]}`, n+1, n+1))
	}
	announce("coupons.issued.v1", `{"at":"2026-11-20T12:00:01Z","issued":[{"template_id":"1","issued":1,"total":9}]}`)
	announce("coupons.issued.v1", `{"at":"2026-11-20T12:00:02Z","issued":[{"template_id":"1","issued":1,"total":10}]}`)
	var numbers []int64
	for _, one := range arrives(hook.CouponLocked, 60) {
		numbers = append(numbers, one.Sequence)
	}
	slices.Sort(numbers)
	if n := len(slices.Compact(numbers)); n != 60 {
		t.Errorf("%d of 60 numbers", n)
	}
	if list := arrives(hook.DropSoldOut, 1); len(list) != 1 {
		t.Errorf("sold out %d times", len(list))
	}
	poll(t, "reservations", func() error {
		var items int
		err := sql.QueryRow(t.Context(), `select coalesce(sum(v.items), 0) from hook_deliveries d join hook_events v on v.id = d.event_id where v.type = 'reservation.made' and d.state = 'delivered'`).Scan(&items)
		if err == nil && items != 60 {
			err = fmt.Errorf("%d of 60 reservations", items)
		}
		return err
	})

	// A delivery whose task is lost with all of Redis is found, and has the same id.
	options, err := goredis.ParseURL(server.URL())
	musttest.OK(t, err)
	client := goredis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	// Without wallets and APNS_LIVE their consumer groups read all the same, so that Redis keeps
	// no event for them.
	for topic, name := range map[string]string{event.CouponChanged: "wallets", event.TemplatePublished: "live-activities"} {
		poll(t, name, func() error {
			groups, err := client.XInfoGroups(t.Context(), topic).Result()
			i := slices.IndexFunc(groups, func(g goredis.XInfoGroup) bool { return g.Name == name })
			if err == nil && (i < 0 || groups[i].EntriesRead == 0 || groups[i].Lag+groups[i].Pending != 0) {
				err = fmt.Errorf("%+v", groups)
			}
			return err
		})
	}
	before := shop.of(hook.DropPublished)[0]
	shop.status.Store(500)
	var id int64
	musttest.OK(t, sql.QueryRow(t.Context(), `select d.id from hook_deliveries d join hook_events v on v.id = d.event_id where v.type = 'drop.published'`).Scan(&id))
	musttest.OK(t, errors.Join(service.Replay(t.Context(), operator, endpoint.ID, id), client.FlushAll(t.Context()).Err()))
	if again := arrives(hook.DropPublished, 2)[1]; again != before {
		t.Errorf("sent again as %+v, was %+v", again, before)
	}
	poll(t, "the failure is recorded", func() error {
		e, err := service.Endpoint(t.Context(), operator, endpoint.ID)
		if err == nil && e.State() != hook.Failing {
			err = errors.New(string(e.State()))
		}
		return err
	})
	// After a rotation the receiver that still has the old secret goes on.
	shop.status.Store(200)
	if _, _, err := service.Rotate(t.Context(), operator, endpoint.ID, 0); err != nil {
		t.Fatal(err)
	}
	exec(`update hook_deliveries set next_at = now() where state = 'waiting'`)
	arrives(hook.DropPublished, 3)

	shop.status.Store(410)
	if _, err := service.Test(t.Context(), operator, endpoint.ID); err != nil {
		t.Fatal(err)
	}
	arrives(hook.TestEvent, 1)
	poll(t, "it is disabled", func() error {
		e, err := service.Endpoint(t.Context(), operator, endpoint.ID)
		if err == nil && e.Why != hook.ByGone {
			err = errors.New(string(e.State()))
		}
		return err
	})
	var kept []byte
	musttest.OK(t, sql.QueryRow(t.Context(), `select secret from hook_endpoints`).Scan(&kept))
	if plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); len(plain) != 32 || strings.Contains(string(kept), string(plain)) {
		t.Error("the secret is stored as it is")
	}
}
