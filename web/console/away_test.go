package console_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// awaySessions are sessions in a database that does not answer at times.
type awaySessions struct {
	shell.SessionStore
	away atomic.Bool
}

func (s *awaySessions) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	if s.away.Load() {
		return nil, false, postgres.ErrUnavailable
	}
	return s.SessionStore.FindCtx(ctx, token)
}

// TestWithoutItsDatabase: while PostgreSQL does not answer, no session can be read. Every page
// names the problem and reloads itself; parts of pages and changes get the same text; nothing
// panics. Afterwards the member is still signed in.
func TestWithoutItsDatabase(t *testing.T) {
	sessions := &awaySessions{}
	g := consoletest.New(t, func(d *console.Deps) { sessions.SessionStore = d.Sessions; d.Sessions = sessions })
	b := g.As(staff.Admin)
	b.Get("/templates").Is(http.StatusOK)
	sessions.away.Store(true)
	for _, path := range []string{"/", "/templates", "/channels", "/account", "/signin", "/nowhere"} {
		a := b.Get(path).Is(http.StatusServiceUnavailable).Has("PostgreSQL", "does not answer", "loads again every")
		if a.Header.Get("Refresh") != "5" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: Refresh %q, Retry-After %q", path, a.Header.Get("Refresh"), a.Header.Get("Retry-After"))
		}
	}
	a := b.Post("/account/password", nil).Is(http.StatusServiceUnavailable).Has("PostgreSQL")
	if a.Header.Get("Refresh") != "" {
		t.Error("a change that failed would be loaded again as a page")
	}
	b.Header.Set("HX-Request", "true")
	part := b.Get("/templates")
	b.Header.Del("HX-Request")
	if part.Header.Get("Refresh") != "" || strings.Contains(part.Body, "<html") {
		t.Errorf("a part of a page is answered by\n%s", part.Body)
	}
	part.Is(http.StatusServiceUnavailable).Has("PostgreSQL")
	sessions.away.Store(false)
	b.Get("/templates").Is(http.StatusOK)
}
