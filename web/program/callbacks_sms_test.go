package program

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

// smsEnv is the environment of a web process with an SMS provider, behind a proxy with another host
// name.
func smsEnv(t *testing.T, more ...string) map[string]string {
	t.Helper()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "LINK_SECRET": "a secret of tests with 32 bytes and more",
		"PUBLIC_URL": "https://drops.example/shop"}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

// smsWeb returns the handler for the environment, and its database.
func smsWeb(t *testing.T, env map[string]string) (http.Handler, *pgxpool.Pool) {
	t.Helper()
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	handler, err := p.handler(t.Context())
	musttest.OK(t, err)
	sql, err := pgxpool.New(context.WithoutCancel(t.Context()), env["DATABASE_URL"])
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	return handler, sql
}

// passed is the answer to a provider's call that came by way of the proxy.
func passed(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	r.URL.Path, r.URL.Scheme, r.URL.Host, r.Host = strings.TrimPrefix(r.URL.Path, "/shop"), "", "", "10.0.0.7:8080"
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func value[T any](t *testing.T, sql *pgxpool.Pool, query string) (v T) {
	t.Helper()
	musttest.OK(t, sql.QueryRow(t.Context(), query).Scan(&v))
	return v
}

// Receipts that come twice and out of order, forged receipts, STOP and START.
func TestCallbacksOfTwilio(t *testing.T) {
	handler, sql := smsWeb(t, smsEnv(t, "SMS_PROVIDER", "twilio", "SMS_KEY_ID", smstest.TwilioAccount, "SMS_KEY_SECRET", smstest.TwilioToken, "SMS_FROM", "MG1"))
	if _, err := sql.Exec(t.Context(), `insert into users (id, phone) values (5, '+14155552671'), (6, '+14155552672')`); err != nil {
		t.Fatal(err)
	}
	due, err := roaring64.BitmapOf(5).ToBytes()
	musttest.OK(t, err)
	batch := rows.ID(t, sql, "batches", rows.Row{"channel": 2, "from_user": 5, "to_user": 5, "due": due, "sent_count": 1})
	twilio := smstest.NewTwilio()
	defer twilio.Close()
	const address = "https://drops.example/shop/callbacks/twilio"
	sent := smstest.Sent{ID: "SM1", To: "+14155552671", Callback: address + "?ref=" + feedback.NewRefs("a secret of tests with 32 bytes and more").Text(feedback.Ref{Batch: batch, User: 5})}
	for range 2 {
		for _, status := range []string{"delivered", "sent", "queued"} {
			if w := passed(handler, twilio.Receipt(sent, status, "")); w.Code != 200 || !strings.Contains(w.Body.String(), "<Response></Response>") {
				t.Errorf("%s: %d %s", status, w.Code, w.Body)
			}
		}
	}
	if n := value[int](t, sql, `select delivered_count from batch_feedback`); n != 1 {
		t.Errorf("%d are delivered", n)
	}
	forged := twilio.Inbound(address, "+14155552671", "STOP", "SM2")
	forged.Header.Set("X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8=")
	if w := passed(handler, forged); w.Code != 401 {
		t.Errorf("a forged STOP: %d", w.Code)
	}
	out := func(step string, want bool) {
		t.Helper()
		if got := value[bool](t, sql, `select opt_outs & 4 <> 0 from users where id = 5`); got != want {
			t.Errorf("%s: has opted out is %v", step, got)
		}
		if value[int](t, sql, `select opt_outs from users where id = 6`) != 0 {
			t.Errorf("%s: another number has opted out", step)
		}
	}
	out("forged", false)
	for _, c := range []struct {
		text, id string
		want     bool
	}{{"please stop by", "SM3", false}, {" Stop. ", "SM4", true}, {"HELP", "SM5", true}, {"START", "SM6", false}, {"Stop", "SM4", false}, {"退订", "SM7", true}} {
		if w := passed(handler, twilio.Inbound(address, "+14155552671", c.text, c.id)); w.Code != 200 {
			t.Errorf("%s: %d %s", c.text, w.Code, w.Body)
		}
		out(c.text, c.want)
	}
}

// A provider that signs nothing is believed only at the address with the secret.
func TestCallbacksOfTencent(t *testing.T) {
	env := smsEnv(t, "SMS_PROVIDER", "tencent", "SMS_KEY_ID", "a", "SMS_KEY_SECRET", "b", "SMS_APP_ID", "1", "SMS_SIGNATURE", "s", "SMS_TEMPLATES", `{"*":{"*":{"id":"1"}}}`, "SMS_TOKEN", "a-secret-of-callbacks")
	handler, sql := smsWeb(t, env)
	if _, err := sql.Exec(t.Context(), `insert into users (id, phone) values (5, '+8613800000001')`); err != nil {
		t.Fatal(err)
	}
	tencent := &smstest.Tencent{}
	for key, want := range map[string]int{"": 401, "a-secret-of-callback": 401} {
		if w := passed(handler, smstest.Posted("https://drops.example/shop/callbacks/tencent?key="+key, tencent.Inbound("+8613800000001", "TD"))); w.Code != want {
			t.Errorf("with the key %q: %d", key, w.Code)
		}
	}
	const address = "https://drops.example/shop/callbacks/tencent?key=a-secret-of-callbacks"
	for range 2 {
		if w := passed(handler, smstest.Posted(address, tencent.Inbound("+8613800000001", "TD"))); w.Code != 200 || w.Body.String() != `{"result":0,"errmsg":"OK"}` {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if got := value[int](t, sql, `select opt_outs from users where id = 5`); got != 4 {
		t.Errorf("the opt-outs are %d", got)
	}
	if w := passed(handler, smstest.Posted(address, "x")); w.Code != 422 && w.Code != 400 {
		t.Errorf("malformed: %d", w.Code)
	}
	if w := passed(handler, smstest.Posted(address, strings.Repeat("x", 2<<20))); w.Code != 422 && w.Code != 413 && w.Code != 400 {
		t.Errorf("huge: %d", w.Code)
	}
	if w := passed(handler, smstest.Posted("https://drops.example/shop/callbacks/twilio", "x")); w.Code != 404 {
		t.Errorf("a provider that is not configured: %d", w.Code)
	}
}
