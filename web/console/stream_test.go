package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// A stream may be open for days: what is known of its viewer does not pile up.
func TestLiveForgetsWhoTheViewerWas(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	d := g.published(10, 2*time.Hour)
	depth := make(chan [2]int, 1)
	g.present = newPresence(func(context.Context, string) (staff.Presence, error) { return staff.Presence{Member: m}, nil }, g.now)
	h := g.protect(g.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		frame(r).Member = m
		g.must(r.ParseForm())
		s, err := g.openStream(w, r)
		g.must(err)
		defer s.close()
		deep := func() int { return strings.Count(fmt.Sprint(s.r.Context()), ".With") }
		g.must(g.stillWelcome(s))
		first := deep()
		for range 100 {
			g.must(g.stillWelcome(s))
		}
		depth <- [2]int{first, deep()}
	})))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, liveURL(templateURL(d.ID)), nil))
	if got := <-depth; got[0] != got[1] || got[0] == 0 {
		t.Errorf("contexts within each other: %d, then %d", got[0], got[1])
	}
}

// What is sent to many viewers is nobody's to write in.
func TestEventLeavesItsDataAlone(t *testing.T) {
	shared := append(make([]byte, 0, 16), "a\n\nb"...)
	w := httptest.NewRecorder()
	s := &stream{w: w, out: http.NewResponseController(w), seen: []string{"1"}}
	if err := s.event("", shared); err != nil {
		t.Fatal(err)
	}
	if rest := shared[:cap(shared)]; rest[len(shared)] != 0 {
		t.Errorf("behind the data stands %q", rest)
	}
	if err := s.event("x", nil); err != nil {
		t.Fatal(err)
	}
	want := "id: 1\nretry: 1000\ndata: a\ndata: \ndata: b\n\nid: 1\nretry: 1000\nevent: x\ndata: \n\n"
	if got := w.Body.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nobody is sent away because the database has trouble.
func TestLiveTroubleIsNoSignOut(t *testing.T) {
	g := newRig(t)
	g.present = newPresence(func(context.Context, string) (staff.Presence, error) {
		return staff.Presence{}, errors.New("no database")
	}, g.now)
	h := g.protect(g.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &stream{w: w, out: http.NewResponseController(w), r: r, first: r, seen: []string{""}}
		if err := g.stillWelcome(s); err == nil {
			t.Error("the stream goes on")
		}
	})))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/live", nil))
	if w.Body.Len() > 0 {
		t.Errorf("sent %q", w.Body)
	}
}
