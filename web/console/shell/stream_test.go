package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// noSessions is a store of sessions that keeps nothing.
type noSessions struct{}

func (noSessions) Delete(string) error                    { return nil }
func (noSessions) Find(string) ([]byte, bool, error)      { return nil, false, nil }
func (noSessions) Commit(string, []byte, time.Time) error { return nil }
func (noSessions) DeleteCtx(context.Context, string) error {
	return nil
}
func (noSessions) FindCtx(context.Context, string) ([]byte, bool, error) {
	return nil, false, nil
}
func (noSessions) CommitCtx(context.Context, string, []byte, time.Time) error { return nil }
func (noSessions) ExtendCtx(context.Context, string, time.Time) error         { return nil }

// newShell returns a shell with one live part, "/thing". ask returns the members of sign-ins.
func newShell(t *testing.T, ask func(context.Context, string) (staff.Presence, error)) *Shell {
	t.Helper()
	sh := New(Deps{Staff: &staff.Service{}, Sessions: noSessions{}, PublicURL: "http://127.0.0.1", DefaultZone: time.UTC, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(sh.Close)
	sh.present = newAccessCache(ask, time.Now)
	sh.Mount([]Route{Live(time.Hour, Get("/thing", staff.View, func(w http.ResponseWriter, _ *http.Request) error {
		_, err := fmt.Fprint(w, `<div id="thing">here</div>`)
		return err
	}))})
	return sh
}

// framed serves one request inside a frame and a session.
func framed(t *testing.T, sh *Shell, path string, h http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	sh.protect(sh.Sessions.LoadAndSave(h)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// A stream may be open for days: memory about its viewer does not pile up.
func TestLiveForgetsWhoTheViewerWas(t *testing.T) {
	m := staff.Member{ID: 1, Role: staff.Viewer}
	sh := newShell(t, func(context.Context, string) (staff.Presence, error) { return staff.Presence{Member: m}, nil })
	depth := make(chan [2]int, 1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	w := framed(t, sh, "/live?of="+url.QueryEscape("/thing"), func(w http.ResponseWriter, r *http.Request) {
		Frame(r).Member = m
		must(r.ParseForm())
		s, err := sh.OpenStream(w, r)
		if err != nil {
			t.Error(err)
			depth <- [2]int{}
			return
		}
		defer s.Close()
		deep := func() int { return strings.Count(fmt.Sprint(s.Request.Context()), ".With") }
		must(sh.stillWelcome(s))
		first := deep()
		for range 100 {
			must(sh.stillWelcome(s))
		}
		depth <- [2]int{first, deep()}
	})
	if got := <-depth; got[0] != got[1] || got[0] == 0 {
		t.Errorf("contexts within each other: %d, then %d (%s)", got[0], got[1], w.Body)
	}
}

// Data that is sent to many viewers must not be written to.
func TestEventLeavesItsDataAlone(t *testing.T) {
	shared := append(make([]byte, 0, 16), "a\n\nb"...)
	w := httptest.NewRecorder()
	s := &Stream{w: w, out: http.NewResponseController(w), Seen: []string{"1"}}
	if err := s.Event("", shared); err != nil {
		t.Fatal(err)
	}
	if rest := shared[:cap(shared)]; rest[len(shared)] != 0 {
		t.Errorf("behind the data stands %q", rest)
	}
	if err := s.Event("x", nil); err != nil {
		t.Fatal(err)
	}
	want := "id: 1\nretry: 1000\ndata: a\ndata: \ndata: b\n\nid: 1\nretry: 1000\nevent: x\ndata: \n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A failing database signs no member out.
func TestLiveTroubleIsNoSignOut(t *testing.T) {
	sh := newShell(t, func(context.Context, string) (staff.Presence, error) {
		return staff.Presence{}, errors.New("no database")
	})
	w := framed(t, sh, "/live", func(w http.ResponseWriter, r *http.Request) {
		s := &Stream{w: w, out: http.NewResponseController(w), Request: r, first: r, Seen: []string{""}}
		if err := sh.stillWelcome(s); err == nil {
			t.Error("the stream goes on")
		}
	})
	if w.Body.Len() > 0 {
		t.Errorf("sent %q", w.Body)
	}
}
