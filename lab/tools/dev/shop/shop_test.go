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
	"dropbell/musttest"
)

// TestShopKnowsItsOwn: a shop that starts again finds its own drop and draw among those of the shop's number, and
// the page of a new draw comes once the card of the draw is published.
func TestShopKnowsItsOwn(t *testing.T) {
	var cards atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch _, step, _ := strings.Cut(r.URL.Path, "/api/v1/"); {
		case step == "admin/templates" && r.Method == http.MethodGet:
			fmt.Fprintf(w, `{"templates":[{"id":"1","name":"Partner codes"},{"id":"2","name":%q},{"id":"3","name":%q},{"id":"4","name":%[1]q}]}`, DropName, drawName)
		case step == "admin/webhooks" && r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"1","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`)
		case step == "admin/webhooks":
			fmt.Fprint(w, `{"webhooks":[]}`)
		case step == "admin/templates":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"5"}`)
		case step == "draws/5/card" && cards.Add(1) < 3:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"draw_not_found"}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{Server: server.URL, Key: "dbk_x", Log: slog.New(slog.DiscardHandler)}, "http://shop.example")
	musttest.OK(t, err)
	t.Cleanup(s.end)
	if err := s.Register(t.Context()); err != nil || s.drop != "2" || s.draw != "3" {
		t.Errorf("drop %s, draw %s (%v)", s.drop, s.draw, err)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/draws", nil))
	if w.Header().Get("Location") != "/" || s.draw != "5" || cards.Load() != 3 {
		t.Errorf("%v, draw %s, its card was read %d times", w.Header(), s.draw, cards.Load())
	}
}

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
			fmt.Fprint(w, `{"discount":2000,"lines":[{"id":"tea","discount":2000}]}`)
		}))
		t.Cleanup(server.Close)
		s, err := New(Config{Server: server.URL, Key: "dbk_x", Log: slog.New(slog.DiscardHandler)}, "http://shop.example")
		musttest.OK(t, err)
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
		if refund := ask("POST", receipt+"/refund", "line=tea&pieces=1"); refund.Code != http.StatusNotFound {
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

// TestCheckoutOffersAndReturns: the checkout says which coupons are best and what is missing for another one,
// and a line of a paid order comes back in two parts.
func TestCheckoutOffersAndReturns(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch _, step, _ := strings.Cut(r.URL.Path, "/api/v1/"); {
		case step == "coupons":
			fmt.Fprint(w, `{"coupons":[{"coupon_id":"7","template_name":"Welcome","shop_number":"20"},{"coupon_id":"8","template_name":"Big cart","shop_number":"20"}]}`)
		case step == "coupons/qualify":
			fmt.Fprint(w, `{"usable":[{"coupon":"7","discount":2000,"lines":[]}],"unusable":[{"coupon":"8","reason":"below_threshold","missing":1200}],
				"best":{"coupons":["7"],"discount":2000,"lines":[],"uses":[],"exact":true},"expires_soon":[]}`)
		case strings.HasSuffix(step, "/lock"):
			fmt.Fprint(w, `{"discount":2000,"lines":[{"id":"tea","discount":2000}]}`)
		case strings.HasSuffix(step, "/refund"):
			fmt.Fprint(w, `{"refund_id":"r","pay_back":5300,"clawback":500,"lines":[],"coupons":[],"order":{}}`)
		case strings.HasSuffix(step, "/pass"):
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{Server: server.URL, Key: "dbk_x", Log: slog.New(slog.DiscardHandler)}, "http://shop.example")
	musttest.OK(t, err)
	t.Cleanup(s.end)
	ask := func(method, path, form string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(method, path, strings.NewReader(form)), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: userCookie, Value: "1001"})
		s.Handler().ServeHTTP(w, r)
		return w
	}
	checkout := ask("GET", "/checkout?tea=2&cup=0", "").Body.String()
	for _, text := range []string{"¥136.00", "−¥20.00", `value="7" checked`, `value="8"  disabled`, "¥12.00 more for this coupon"} {
		if !strings.Contains(checkout, text) {
			t.Errorf("the checkout lacks %q: %s", text, checkout)
		}
	}
	receipt := ask("POST", "/orders", "tea=2&cup=0&coupon=7&outcome=pay").Header().Get("Location")
	for _, wrong := range []string{"line=tea&pieces=3", "line=cup&pieces=1", "line=tea&pieces=0"} {
		if refused := ask("POST", receipt+"/refund", wrong); refused.Code != http.StatusNotFound {
			t.Errorf("%s: %d", wrong, refused.Code)
		}
	}
	for _, want := range []string{"Paid. Thank you!", "Refunded."} {
		if back := ask("POST", receipt+"/refund", "line=tea&pieces=1"); back.Code != http.StatusSeeOther {
			t.Errorf("returned: %d %s", back.Code, back.Body)
		}
		if page := ask("GET", receipt, "").Body.String(); !strings.Contains(page, want) || !strings.Contains(page, "¥53.00 are paid back") || !strings.Contains(page, "¥5.00 of the discount are lost") {
			t.Errorf("the receipt: %s", page)
		}
	}
	if empty := ask("POST", "/orders", "tea=0&cup=0&outcome=pay"); !strings.Contains(empty.Header().Get("Location"), "empty") {
		t.Errorf("an empty cart: %d %s", empty.Code, empty.Header())
	}
}
