package linkcheck

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestCall(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	mux := http.NewServeMux()
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { calls.Add(1); w.WriteHeader(status) }
	}
	mux.HandleFunc("/ok", answer(http.StatusOK))
	mux.HandleFunc("/gone", answer(http.StatusGone))
	mux.HandleFunc("GET /page", answer(http.StatusOK))
	mux.HandleFunc("/no-head", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
	mux.Handle("/moved", http.RedirectHandler("/ok", http.StatusFound))
	mux.Handle("/around", http.RedirectHandler("/around", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	private := New(true)
	t.Cleanup(func() { _ = private.Close() })
	for path, want := range map[string]int{"/ok": 200, "/gone": 410, "/no-head": 200, "/moved": 200, "/around": 0, "/none": 404} {
		if got := private.Call(t.Context(), server.URL+path); got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}
	if got := private.Call(t.Context(), "ftp://shop.example/"); got != 0 {
		t.Errorf("ftp answers %d", got)
	}
	before := calls.Load()
	public := New(false)
	t.Cleanup(func() { _ = public.Close() })
	if got := public.Call(t.Context(), server.URL+"/ok"); got != 0 || calls.Load() != before {
		t.Errorf("a private address answered %d", got)
	}
}
