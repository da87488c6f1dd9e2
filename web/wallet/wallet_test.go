package wallet_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/lookup"
	couponsdb "dropbell/adapters/postgres/coupons"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/wallet/pkpass"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/user"
	"dropbell/musttest"
	walletweb "dropbell/web/wallet"
)

// fixture is the web service of passes over a database, with a coupon of user 5.
type fixture struct {
	*pgtest.Fixture
	http.Handler
	passes *wallet.Service
	store  couponsdb.Wallet
	id     int64
	token  string // of the pass
	logs   bytes.Buffer
	late   time.Duration
}

const passType = "pass.com.example.coupons"

func newFixture(t *testing.T) *fixture {
	w := &fixture{Fixture: pgtest.New(t)}
	identity, err := wallettest.NewIdentity(passType, "ABCDE12345")
	w.Must(err)
	issuer, err := pkpass.New(pkpass.Config{TypeID: passType, TeamID: "ABCDE12345", Certificate: identity.Certificate, Key: identity.Key, WWDR: identity.WWDR,
		Service: "https://drops.example/wallet"})
	w.Must(err)
	texts, err := lookup.NewBooks(messagesdb.NewMessages(w.DB))
	w.Must(err)
	w.store = couponsdb.NewWallet(w.DB)
	clock := func() time.Time { return time.Now().Add(w.late) }
	w.passes = &wallet.Service{Store: w.store, Texts: texts, Apple: issuer, Signed: user.NewLinks("a secret of at least thirty-two bytes"),
		Address: "https://drops.example", Now: clock}
	mux := chi.NewMux()
	mux.Mount(walletweb.Prefix, walletweb.New(walletweb.Deps{Passes: w.passes, PassType: passType, Now: clock,
		Log: slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))}))
	w.Handler = mux
	w.id = w.ID("coupons", pgtest.Row{"template_id": w.Published(time.Hour).ID, "user_id": 5})
	file, err := w.passes.File(t.Context(), 5, w.id)
	w.Must(err)
	var described struct {
		AuthenticationToken string
	}
	w.Must(json.Unmarshal(file.Described(), &described))
	w.token = described.AuthenticationToken
	return w
}

// call sends a request as a device does; headers are names and values.
func (w *fixture) call(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// TestProtocol walks Apple's web service for passes in the order of a device's calls.
func TestProtocol(t *testing.T) {
	w := newFixture(t)
	serial := strconv.FormatInt(w.id, 10)
	registration, pass := "/wallet/v1/devices/d1/registrations/"+passType, "/wallet/v1/passes/"+passType+"/"+serial
	other := w.passes.Signed.Seal("dropbell wallet pass", make([]byte, 8))
	right, push := "ApplePass "+w.token, `{"pushToken":"aabb"}`
	for _, c := range []struct {
		name, method, path, body, proof string
		want                            int
	}{
		{"no token", "POST", registration + "/" + serial, push, "", 401},
		{"wrong token", "POST", registration + "/" + serial, push, "ApplePass x", 401},
		{"a token with a changed letter", "POST", registration + "/" + serial, push, right[:len(right)-2] + "AA", 401},
		{"the token of another pass", "POST", registration + "/" + serial, push, "ApplePass " + other, 401},
		{"another scheme", "POST", registration + "/" + serial, push, "Bearer " + w.token, 401},
		{"another serial number", "POST", registration + "/1" + serial, push, right, 401},
		{"another pass type", "POST", "/wallet/v1/devices/d1/registrations/pass.other/" + serial, push, right, 404},
		{"no body", "POST", registration + "/" + serial, "", right, 400},
		{"no push token", "POST", registration + "/" + serial, `{}`, right, 400},
		{"a push token too long", "POST", registration + "/" + serial, `{"pushToken":"` + strings.Repeat("a", 201) + `"}`, right, 400},
		{"a device's name too long", "POST", "/wallet/v1/devices/" + strings.Repeat("d", 201) + "/registrations/" + passType + "/" + serial, push, right, 400},
		{"nothing registered", "GET", registration, "", "", 204},
		{"registered", "POST", registration + "/" + serial, push, right, 201},
		{"registered again", "POST", registration + "/" + serial, push, right, 200},
		{"its passes", "GET", registration, "", "", 200},
		{"an odd tag", "GET", registration + "?passesUpdatedSince=x%27", "", "", 200},
		{"an odd tag that overflows", "GET", registration + "?passesUpdatedSince=99999999999999999999", "", "", 200},
		{"the pass", "GET", pass, "", right, 200},
		{"the pass without the token", "GET", pass, "", "", 401},
		{"a report", "POST", "/wallet/v1/log", `{"logs":["it failed for d1"]}`, "", 200},
		{"a report that is none", "POST", "/wallet/v1/log", `[`, "", 400},
		{"a report too long", "POST", "/wallet/v1/log", `{"logs":["` + strings.Repeat("a", 70_000) + `"]}`, "", 400},
		{"unregistered without the token", "DELETE", registration + "/" + serial, "", "", 401},
		{"unregistered", "DELETE", registration + "/" + serial, "", right, 200},
		{"unregistered again", "DELETE", registration + "/" + serial, "", right, 200},
		{"nothing again", "GET", registration, "", "", 204},
		{"another method", "PUT", pass, "", right, 405},
		{"nothing there", "GET", "/wallet/v2/x", "", right, 404},
	} {
		a := w.call(c.method, c.path, c.body, "Authorization", c.proof)
		if a.Code != c.want {
			t.Errorf("%s: %d %s", c.name, a.Code, a.Body)
		}
		if problem := a.Code >= 400; problem != (a.Header().Get("Content-Type") == "application/problem+json") {
			t.Errorf("%s: answered as %s", c.name, a.Header().Get("Content-Type"))
		}
	}
	if strings.Contains(w.logs.String(), "d1") || strings.Contains(w.logs.String(), w.token) {
		t.Errorf("the log names devices: %s", w.logs.String())
	}
}

// TestChangedPass: a device asks with the tag of the last answer and gets the passes changed since.
// It gets the file only if the file differs.
func TestChangedPass(t *testing.T) {
	w := newFixture(t)
	serial := strconv.FormatInt(w.id, 10)
	registration, pass, right := "/wallet/v1/devices/d1/registrations/"+passType, "/wallet/v1/passes/"+passType+"/"+serial, "ApplePass "+w.token
	w.call("POST", registration+"/"+serial, `{"pushToken":"aabb"}`, "Authorization", right)
	w.Exec(`update wallet_passes set modified_at = modified_at - interval '1 hour'`)
	ask := func(tag string) (status int, serials []string, next string) {
		a := w.call("GET", registration+"?passesUpdatedSince="+tag, "")
		var in struct {
			SerialNumbers []string
			LastUpdated   string
		}
		if a.Code == 200 {
			w.Must(json.Unmarshal(a.Body.Bytes(), &in))
		}
		return a.Code, in.SerialNumbers, in.LastUpdated
	}
	_, serials, tag := ask("")
	if len(serials) != 1 || serials[0] != serial {
		t.Fatalf("%v", serials)
	}
	fetch := func(headers ...string) *httptest.ResponseRecorder {
		return w.call("GET", pass, "", append([]string{"Authorization", right}, headers...)...)
	}
	first := fetch()
	tagged, modified := first.Header().Get("ETag"), first.Header().Get("Last-Modified")
	if first.Header().Get("Content-Type") != "application/vnd.apple.pkpass" || tagged == "" || modified == "" {
		t.Fatalf("%v", first.Header())
	}
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"the same": {[]string{"If-None-Match", tagged}, 304}, "one of several": {[]string{"If-None-Match", `"x", ` + tagged}, 304}, "another": {[]string{"If-None-Match", `"x"`}, 200},
		"unmodified": {[]string{"If-Modified-Since", modified}, 304}, "older": {[]string{"If-Modified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"}, 200},
		"the tag decides": {[]string{"If-None-Match", `"x"`, "If-Modified-Since", modified}, 200}, "no date": {[]string{"If-Modified-Since", "x"}, 200},
	} {
		if a := fetch(c.headers...); a.Code != c.want {
			t.Errorf("%s: %d", name, a.Code)
		}
	}
	steps := &coupon.Service{Store: w.Payments, LockFor: time.Hour}
	_, err := steps.Lock(t.Context(), "test", w.id, coupon.Order{ID: "A-1", Amount: 100_000, Currency: "CNY"})
	w.Must(err)
	_, err = steps.Confirm(t.Context(), "test", w.id, "A-1")
	w.Must(err)
	_, err = w.store.Note(t.Context(), []int64{w.id})
	w.Must(err)
	if _, serials, next := ask(tag); len(serials) != 1 || next <= tag {
		t.Errorf("changed: %v, tag %s after %s", serials, next, tag)
	}
	changed := fetch("If-Modified-Since", modified)
	if changed.Code != 200 || changed.Header().Get("ETag") == tagged {
		t.Fatalf("%d %v", changed.Code, changed.Header())
	}
	if raw := passJSON(t, changed.Body.Bytes()); !strings.Contains(raw, `"voided":true`) {
		t.Errorf("%s", raw)
	}
}

func passJSON(t *testing.T, raw []byte) string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	musttest.OK(t, err)
	f, err := archive.Open("pass.json")
	musttest.OK(t, err)
	content, err := io.ReadAll(f)
	musttest.OK(t, err)
	return string(content)
}

// TestLinkOfAPass: a link opens the pass for an hour without credentials. An altered link, or the
// token of a pass, opens no pass.
func TestLinkOfAPass(t *testing.T) {
	w := newFixture(t)
	l, err := w.passes.Links(t.Context(), 5, w.id)
	w.Must(err)
	path, ok := strings.CutPrefix(l.Apple, "https://drops.example")
	if !ok || l.Google != "" {
		t.Fatalf("%+v", l)
	}
	if a := w.call("GET", path, ""); a.Code != 200 || !strings.Contains(passJSON(t, a.Body.Bytes()), `"serialNumber"`) {
		t.Errorf("%d", a.Code)
	}
	for _, wrong := range []string{strings.Replace(path, "/passes/A", "/passes/B", 1), path[:len(path)-len(".pkpass")], walletweb.Prefix + "/passes/" + w.token + ".pkpass"} {
		if a := w.call("GET", wrong, ""); a.Code != 404 {
			t.Errorf("%s: %d", wrong, a.Code)
		}
	}
	w.late = wallet.LinkLasts + time.Second
	if a := w.call("GET", path, ""); a.Code != 404 {
		t.Errorf("ended: %d", a.Code)
	}
	if _, err := w.passes.Links(t.Context(), 6, w.id); err == nil {
		t.Error("another user's coupon")
	}
}
