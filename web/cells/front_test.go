package cells

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/cell"
)

// echo answers with its name, and what it was sent.
func echo(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Program", name)
		fmt.Fprintf(w, "%s", body)
	})
}

// TestRequestsFindTheirCell: an id, a shop or a code decides, in the path, the query or the body.
func TestRequestsFindTheirCell(t *testing.T) {
	f := newFront(&places{Map_: Map{Shops: map[int64]cell.Number{10: 0, 20: 1}, Older: []int64{0, 128}}}, echo("a"), echo("b"))
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/api/v1/templates/1", "", "a"}, {"GET", "/api/v1/templates/130", "", "b"}, {"GET", "/api/v1/templates/66", "", "a"}, // older than cells
		{"GET", "/api/v1/templates/131", "", "a"}, // of a cell that there is not
		{"POST", "/api/v1/claims", `{"template_id":"130"}`, "b"}, {"POST", "/api/v1/claims", `{"template_id":"129"}`, "a"}, {"POST", "/api/v1/claims", `{"template_id":`, "a"},
		{"POST", "/api/v1/reservations", `{"template_id":"130","shop_number":"10","reminders":[]}`, "b"},
		{"GET", "/api/v1/claims/" + fmt.Sprint(1<<40|130), "", "b"}, {"GET", "/api/v1/claims/x", "", "a"},
		{"DELETE", "/api/v1/reservations/130?channel=app", "", "b"}, {"PUT", "/api/v1/waitlist/130", "", "b"}, {"PUT", "/api/v1/series/130/reservation", "", "b"}, {"POST", "/api/v1/passes/130", "", "b"},
		{"POST", "/api/v1/coupons/194/lock", `{"order_id":"1"}`, "b"}, {"POST", "/api/v1/redemptions", `{"code":"1XBE"}`, "b"}, {"POST", "/api/v1/redemptions", `{"code":"?"}`, "a"},
		{"POST", "/api/v1/access-codes", `{"template_id":"130","code":"0"}`, "b"},
		{"POST", "/api/v1/orders", `{"shop_number":"20","order_id":"1"}`, "b"}, {"POST", "/api/v1/orders/A-1/lock", `{"coupons":["130"]}`, "b"},
		{"POST", "/api/v1/coupons/qualify", `{"order":{"shop_number":"20"}}`, "b"}, {"POST", "/api/v1/phone/verification", `{"phone":"1"}`, "a"},
		{"POST", "/api/v1/admin/templates", `{"shop_number":"20"}`, "b"}, {"POST", "/api/v1/admin/campaigns", `{"shop_number":"10"}`, "a"},
		{"POST", "/api/v1/admin/dead-letters/replay", `{"filter":{"campaign_id":"130"}}`, "b"}, {"GET", "/api/v1/admin/money?shop=20", "", "b"},
		{"PATCH", "/api/v1/admin/campaigns/130", `{}`, "b"}, {"PUT", "/api/v1/admin/shops/20", `{}`, "b"},
		{"PUT", "/api/v1/admin/shops/20/budget", `{}`, "b"}, {"GET", "/api/v1/admin/shops/20/pictures", "", "b"}, {"GET", "/api/v1/admin/events?shop=20", "", "b"},
		{"GET", "/api/v1/admin/templates?shop=20", "", "b"}, {"GET", "/d/130", "", "b"}, {"GET", "/l/130", "", "b"}, {"GET", "/draw/130", "", "b"}, {"GET", "/u/x", "", "a"},
		{"GET", "/templates/130", "", "b"}, {"GET", "/campaigns/new?shop=20", "", "a"}, {"POST", "/campaigns", "shop=20", "a"}, {"POST", "/templates", "shop_number=20", "a"}, {"POST", "/templates/message", "drop=130", "b"}, {"POST", "/templates/models/130/rename", "", "b"}, {"GET", "/campaigns", "", "a"}, {"GET", "/users", "", "a"},
		{"GET", "/templates?shop=20", "", "a"}, {"GET", "/live?of=%2Ftemplates%3Fshop%3D20", "", "a"}, {"GET", "/series?shop=20", "", "a"}, {"GET", "/recipes?shop=20", "", "a"}, {"GET", "/deliveries?shop=20", "", "b"}, {"GET", "/users/7?cell=b", "", "b"}, {"GET", "/account?cell=b", "", "a"}, {"GET", "/results.csv?drop=130", "", "b"}, {"GET", "/jobs?cell=b", "", "b"}, {"GET", "/jobs?cell=c", "", "a"},
		{"GET", "/dead-letters?template=130", "", "b"}, {"GET", "/dead-letters/jobs", "", "a"}, {"POST", "/dead-letters/jobs/130/cancel", "", "b"},
		{"POST", "/dead-letters/replay", "channel=sms&template=130", "b"}, {"POST", "/dead-letters/replay", "channel=sms", "a"}, {"POST", "/templates/bulk", "id=130&id=65", "a"},
		{"POST", "/templates/bulk", "undo=130", "b"},
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if got := w.Header().Get("Program"); got != c.want || w.Body.String() != c.body {
			t.Errorf("%s %s %s: %q answers %q, want %q", c.method, c.path, c.body, got, w.Body, c.want)
		}
	}
	for _, path := range []string{"POST /api/v1/coupons/qualify", "POST /api/v1/orders/A-1/lock", "POST /api/v1/admin/dead-letters/replay", "GET /api/v1/admin/money"} {
		method, path, _ := strings.Cut(path, " ")
		if status, o, _ := call(f, method, path, ""); status != 422 || o["code"] != "invalid_request" {
			t.Errorf("%s: %d %v", path, status, o)
		}
	}
	r := httptest.NewRequest("GET", "/jobs", nil)
	r.AddCookie(&http.Cookie{Name: CellCookie, Value: "b"})
	w := httptest.NewRecorder()
	if f.ServeHTTP(w, r); w.Header().Get("Program") != "b" {
		t.Error("the cookie does not choose the cell of a list")
	}
	r.URL.Path = "/campaigns"
	w = httptest.NewRecorder()
	if f.ServeHTTP(w, r); w.Header().Get("Program") != "a" {
		t.Error("the cookie chooses the cell of a list of all cells")
	}
	big := strings.Repeat("x", maxBody+10)
	w = httptest.NewRecorder()
	if f.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/admin/lists", strings.NewReader(big))); w.Body.String() != big {
		t.Error("a large body does not reach home")
	}
}

// refusing answers with the status and code, and counts its calls.
func refusing(status int, code string, calls *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q}`, code)
	})
}

// TestAShopThatMoved: its ids name the first cell; the front asks the cell that took shops, once, and
// remembers it. As long as no shop has moved, no other cell is asked.
func TestAShopThatMoved(t *testing.T) {
	var calls atomic.Int64
	p := &places{}
	f := newFront(p, refusing(404, "template_not_found", &calls), echo("b"))
	if status, _, _ := call(f, "POST", "/api/v1/claims", `{"template_id":"65"}`); status != 404 {
		t.Errorf("%d", status)
	}
	p.Map_.Moved = []cell.Number{1}
	for range 3 {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/claims", strings.NewReader(`{"template_id":"65"}`)))
		if w.Header().Get("Program") != "b" || w.Body.String() != `{"template_id":"65"}` {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
	}
	if calls.Load() != 2 {
		t.Errorf("the first cell was asked %d times", calls.Load())
	}
	calls.Store(0)
	f = newFront(&places{}, echo("a"), refusing(422, "code_invalid", &calls))
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/redemptions", strings.NewReader(`{"code":"1XBE"}`)))
	if w.Header().Get("Program") != "a" || calls.Load() != 1 {
		t.Errorf("a code that home made before there was the cell: %v, %d calls of the cell", w.Header(), calls.Load())
	}
	var moved atomic.Int64
	f = newFront(p, refusing(409, "shop_moved", &moved), refusing(404, "template_not_found", &calls))
	if status, o, _ := call(f, "GET", "/api/v1/templates/65", ""); status != 404 || o["code"] != "template_not_found" {
		t.Errorf("%d %v", status, o)
	}
	p = &places{Map_: Map{Shops: map[int64]cell.Number{10: 0}}, later: map[int64]cell.Number{10: 1}}
	moved.Store(0)
	f = newFront(p, refusing(409, "shop_moved", &moved), echo("b"))
	for range 2 {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/admin/templates", strings.NewReader(`{"shop_number":"10"}`)))
		if w.Header().Get("Program") != "b" || w.Body.String() != `{"shop_number":"10"}` || moved.Load() != 1 {
			t.Errorf("a drop of a shop whose move the map does not have: %v %s, %d calls of the former cell", w.Header(), w.Body, moved.Load())
		}
	}
	p.later = map[int64]cell.Number{10: 0}
	if status, o, _ := call(f, "PUT", "/api/v1/admin/shops/10", `{}`); status != 200 {
		t.Errorf("%d %v", status, o)
	}
}

// TestOthersDoNotWait: while a cell is halted, calls for ids of the other cell, orders that it has and
// lists of users do not wait for it longer than once; changes for all cells are made at home.
func TestOthersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		halted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !back.Load() {
				<-r.Context().Done()
				w.WriteHeader(503)
			}
		})
		f := newFront(&places{}, echo("a"), halted)
		began := time.Now()
		for _, path := range []string{"POST /api/v1/claims", "POST /api/v1/orders/A-1/confirm", "GET /api/v1/templates/65", "GET /pictures/x"} {
			method, path, _ := strings.Cut(path, " ")
			if status, _, _ := call(f, method, path, `{"template_id":"1"}`); status != 200 {
				t.Errorf("%s: %d", path, status)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("they waited for %v", waited)
		}
		for i := range 3 {
			status, _, _ := call(f, "PUT", "/api/v1/preferences", `{}`)
			if waited := time.Since(began); status != 200 || waited != patience {
				t.Errorf("change %d: %d after %v", i, status, waited)
			}
		}
		f = newFront(&places{}, halted, echo("b"))
		if status, _, h := call(f, "PUT", "/api/v1/preferences", `{}`); status != 503 || h.Get(MissingHeader) != "a" || h.Get("Retry-After") == "" {
			t.Errorf("without home: %d %v", status, h)
		}
		if status, _, _ := call(f, "POST", "/callbacks/ses", `{}`); status != 503 {
			t.Errorf("a callback that a cell did not take: %d", status)
		}
		back.Store(true)
		<-time.After(silentFor)
		for i := range 3 {
			if status, _, _ := call(f, "PUT", "/api/v1/preferences", `{}`); status != 200 {
				t.Errorf("change %d after home is back: %d", i, status)
			}
		}
	})
}

// TestStreamsOfAllCells: the events of all cells come over one stream, and its ids lead on in all of them. A
// cell that was away is tried again; a refusal of all cells is the client's.
func TestStreamsOfAllCells(t *testing.T) {
	lasts := make(chan string, 4)
	program := func(event string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lasts <- event + ":" + r.Header.Get("Last-Event-ID")
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			fmt.Fprintf(w, "retry: 1\nevent: ready\nid: %s0\ndata: {}\n\n", event)
			fmt.Fprintf(w, "event: message\nid: %s1\ndata: {\"id\":%q}\n\n", event, event)
			<-r.Context().Done()
		})
	}
	var tries atomic.Int64
	y := program("y")
	f := newFront(&places{}, program("x"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 { // away at first
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		y.ServeHTTP(w, r)
	}))
	f.retry = time.Millisecond
	server := httptest.NewServer(f)
	defer server.Close()
	read := func(last string) (id string, events int) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/api/v1/inbox/stream", nil)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		var text strings.Builder
		for b := make([]byte, 1); strings.Count(text.String(), "event: message") < 2 || !strings.HasSuffix(text.String(), "\n\n"); {
			if _, err := a.Body.Read(b); err != nil {
				t.Fatal(err, text.String())
			}
			text.Write(b)
		}
		for line := range strings.Lines(text.String()) {
			if rest, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(rest)
			}
		}
		return id, strings.Count(text.String(), "event: ready")
	}
	id, ready := read("")
	if got := f.cursors(id); ready != 1 || got[0] != "x1" || got[1] != "y1" {
		t.Errorf("%d %q", ready, got)
	}
	<-lasts
	<-lasts
	read(id)
	var calls atomic.Int64
	w := httptest.NewRecorder()
	newFront(&places{}, refusing(503, "overloaded", &calls), refusing(401, "unauthenticated", &calls)).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/inbox/stream", nil))
	if w.Code != http.StatusUnauthorized && w.Code != http.StatusServiceUnavailable {
		t.Errorf("refused by all: %d", w.Code)
	}
	if got := map[string]bool{<-lasts: true, <-lasts: true}; !got["x:x1"] || !got["y:y1"] {
		t.Error(got)
	}
}
