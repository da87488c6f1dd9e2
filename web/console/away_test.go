package console

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alexedwards/scs/v2"

	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
)

// awaySessions are sessions in a database that does not answer at times.
type awaySessions struct {
	scs.CtxStore
	away atomic.Bool
}

func (s *awaySessions) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	if s.away.Load() {
		return nil, false, postgres.ErrUnavailable
	}
	return s.CtxStore.FindCtx(ctx, token)
}

// TestWithoutItsDatabase: while PostgreSQL does not answer, no session can be
// read. Every page says what is wrong and loads itself again; parts of pages
// and changes get the same words; nothing panics. Afterwards the member is
// still signed in.
func TestWithoutItsDatabase(t *testing.T) {
	sessions := &awaySessions{}
	g := newRig(t, func(d *Deps) { sessions.CtxStore = d.Sessions; d.Sessions = sessions })
	b := g.as(staff.Admin)
	b.get("/templates").is(http.StatusOK)
	sessions.away.Store(true)
	for _, path := range []string{"/", "/templates", "/channels", "/account", "/signin", "/nowhere"} {
		a := b.get(path).is(http.StatusServiceUnavailable).has("PostgreSQL", "does not answer", "loads again by itself")
		if a.header.Get("Refresh") != "5" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: Refresh %q, Retry-After %q", path, a.header.Get("Refresh"), a.header.Get("Retry-After"))
		}
	}
	a := b.post("/account/password", nil).is(http.StatusServiceUnavailable).has("PostgreSQL")
	if a.header.Get("Refresh") != "" {
		t.Error("a change that failed would be loaded again as a page")
	}
	b.header.Set("HX-Request", "true")
	part := b.get("/templates")
	b.header.Del("HX-Request")
	if part.header.Get("Refresh") != "" || strings.Contains(part.body, "<html") {
		t.Errorf("a part of a page is answered by\n%s", part.body)
	}
	part.is(http.StatusServiceUnavailable).has("PostgreSQL")
	sessions.away.Store(false)
	b.get("/templates").is(http.StatusOK)
}
