package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// countedKeys counts look-ups.
type countedKeys struct {
	pipeline.Keys
	asked atomic.Int64
}

func (c *countedKeys) Key(ctx context.Context, hash []byte) (staff.Key, error) {
	c.asked.Add(1)
	return c.Keys.Key(ctx, hash)
}

// from calls GET /admin/templates from an address and returns the status.
func (r *fixture) from(address, credential string) int {
	q := httptest.NewRequest(http.MethodGet, "/api/v1/admin/templates", nil)
	q.RemoteAddr, q.Header = address+":4711", as(credential)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w.Code
}

// Wrong keys, sequential and concurrent, cost a bounded number of look-ups and then none. They
// affect neither clients at other addresses nor a key that was used before from the same address.
func TestWrongKeysCostFewLookUps(t *testing.T) {
	counted := &countedKeys{}
	r := newFixture(t, func(d *api.Deps) { counted.Keys, d.Keys = d.Keys, counted })
	const attacker, elsewhere = "198.51.100.7", "203.0.113.9"
	admin, reader := r.keys[staff.ScopeAdmin], r.keys[staff.ScopeRead]
	if code := r.from(attacker, admin); code != 200 {
		t.Fatalf("the key: %d", code)
	}
	counted.asked.Store(0)
	for range 300 {
		if code := r.from(attacker, staff.NewSecret()); code != 401 && code != 429 {
			t.Fatalf("a wrong key: %d", code)
		}
	}
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() { r.from(attacker, staff.NewSecret()) })
	}
	all.Wait()
	// 20 at once, and another every 3 s for as long as that took.
	if n := counted.asked.Load(); n < 20 || n > 40 {
		t.Errorf("600 wrong keys cost %d look-ups", n)
	}
	if code := r.from(attacker, staff.NewSecret()); code != 429 {
		t.Errorf("the next wrong key: %d", code)
	}
	if code := r.from(attacker, admin); code != 200 {
		t.Errorf("a key that was used before, from the attacker's address: %d", code)
	}
	if code := r.from(elsewhere, reader); code != 200 {
		t.Errorf("a key from elsewhere: %d", code)
	}
	if code := r.from(elsewhere, staff.NewSecret()); code != 401 {
		t.Errorf("a wrong key from elsewhere: %d", code)
	}
}

// One wrong key sent again and again is looked up once in a while. A good key that many concurrent
// requests send is looked up once.
func TestLookUpsAreShared(t *testing.T) {
	counted := &countedKeys{}
	r := newFixture(t, func(d *api.Deps) { counted.Keys, d.Keys = d.Keys, counted })
	wrong := staff.NewSecret()
	for range 50 {
		r.from("198.51.100.7", wrong)
	}
	if n := counted.asked.Swap(0); n > 5 {
		t.Errorf("one wrong key was looked up %d times", n)
	}
	for _, nonsense := range []string{"nonsense", "Basic", "dbk"} {
		if code := r.from("198.51.100.8", nonsense); code != 401 {
			t.Errorf("%s: %d", nonsense, code)
		}
	}
	if n := counted.asked.Swap(0); n != 0 {
		t.Errorf("what cannot be a key was looked up %d times", n)
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if code := r.from("198.51.100.9", r.keys[staff.ScopeAdmin]); code != 200 {
				t.Errorf("the key: %d", code)
			}
		})
	}
	all.Wait()
	if n := counted.asked.Load(); n > 5 {
		t.Errorf("one key was looked up %d times", n)
	}
}
