package shop

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
)

// TestLastStepIsRepeated: an order that was paid is kept even if Dropbell fails right then, and
// its coupon is used as soon as Dropbell answers. After a failed payment, the coupon is released
// in the same way.
func TestLastStepIsRepeated(t *testing.T) {
	for outcome, step := range map[string]string{"pay": "/confirm", "fail": "/release"} {
		var well atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, step) && !well.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, `{"coupon_id":"7","discount":2000}`)
		}))
		t.Cleanup(server.Close)
		s, err := New(Config{Server: server.URL, Key: "dbk_x", Log: slog.New(slog.DiscardHandler)}, "http://shop.example")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.end)
		s.again = time.Millisecond
		ask := func(method, path, form string) *httptest.ResponseRecorder {
			r, w := httptest.NewRequest(method, path, strings.NewReader(form)), httptest.NewRecorder()
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(&http.Cookie{Name: userCookie, Value: "1001"})
			s.Handler().ServeHTTP(w, r)
			return w
		}
		placed := ask("POST", "/orders", url.Values{"coupon": {"7"}, "outcome": {outcome}}.Encode())
		receipt := placed.Header().Get("Location")
		if page := ask("GET", receipt, "").Body.String(); placed.Code != http.StatusSeeOther || !strings.Contains(page, "The coupon follows") {
			t.Fatalf("%s: %d %s", outcome, placed.Code, page)
		}
		if refund := ask("POST", receipt+"/refund", ""); refund.Code != http.StatusNotFound {
			t.Errorf("%s: refunded before the coupon was used: %d", outcome, refund.Code)
		}
		well.Store(true)
		want := map[string]string{"pay": "The coupon is used.", "fail": "The coupon was given back."}[outcome]
		for end := time.Now().Add(localstack.Patience(t)); !strings.Contains(ask("GET", receipt, "").Body.String(), want); <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the receipt never says %q", outcome, want)
			}
		}
	}
}
