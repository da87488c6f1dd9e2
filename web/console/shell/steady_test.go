package shell

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// kept keeps sessions in memory.
type kept struct {
	noSessions
	mu   sync.Mutex
	data map[string][]byte
}

func (k *kept) FindCtx(_ context.Context, token string) ([]byte, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, found := k.data[token]
	return data, found, nil
}

func (k *kept) CommitCtx(_ context.Context, token string, data []byte, _ time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data[token] = data
	return nil
}

func (k *kept) DeleteCtx(_ context.Context, token string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.data, token)
	return nil
}

// A request that changes nothing does not overwrite data that another request of the same session
// has stored meanwhile, and does not restore a session that was ended.
func TestReadingLeavesTheSessionAlone(t *testing.T) {
	store := &kept{data: map[string][]byte{}}
	s := newSessions(Deps{Sessions: store}, func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) })
	var cookie *http.Cookie
	serve := func(do func(ctx context.Context)) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if cookie != nil {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		steady(s.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { do(r.Context()) }))).ServeHTTP(w, r)
		if set := w.Result().Cookies(); cookie == nil && len(set) > 0 {
			cookie = set[0]
		}
	}
	serve(func(ctx context.Context) { s.Put(ctx, SignInKey, "1"); s.Put(ctx, "a", "b") })
	serve(func(ctx context.Context) { // reads, and has not ended when the next request does
		if s.GetString(ctx, SignInKey) != "1" {
			t.Error("the session is not there")
		}
		serve(func(ctx context.Context) { s.Put(ctx, flashKey, "saved") })
	})
	serve(func(ctx context.Context) {
		if said := s.PopString(ctx, flashKey); said != "saved" {
			t.Errorf("the message is %q", said)
		}
	})
	serve(func(ctx context.Context) {
		if said := s.PopString(ctx, flashKey); said != "" {
			t.Errorf("the message comes again: %q", said)
		}
		serve(func(ctx context.Context) {
			if err := s.Destroy(ctx); err != nil {
				t.Error(err)
			}
		})
	})
	if len(store.data) != 0 {
		t.Error("a session that was ended is back")
	}
}
