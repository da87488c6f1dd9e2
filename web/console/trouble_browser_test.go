package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
)

// A road is what lies between a browser and the console: it can lose the
// viewer's session, or answer itself.
type road struct {
	*httptest.Server
	signedOut, foreign atomic.Bool
}

func (g *rig) road() *road {
	way := &road{}
	way.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if way.foreign.Load() && r.Header.Get("HX-Request") != "" {
			http.Error(w, "<h1>502 Bad Gateway</h1>", http.StatusBadGateway)
			return
		}
		if way.signedOut.Load() {
			r.Header.Del("Cookie")
		}
		g.ServeHTTP(w, r)
	}))
	g.Cleanup(way.Close)
	return way
}

func (b *tab) path() string { return evaluate[string](b, `location.pathname + location.search`) }

func TestRequestsThatNobodyAnswersAreSpokenOf(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 4*time.Hour)
	way := g.road()
	b := newTab(t)
	b.expected = "htmx: htmx:"
	b.signIn(g, g.hire(staff.Marketer))

	b.open(way.URL + "/templates")
	b.sees("#results", d.Name)
	way.foreign.Store(true)
	b.fill("#q", "nothing like it")
	b.sees("#trouble", "The server could not be reached", "nothing was changed as far as we know")
	if text := b.text("#results"); !strings.Contains(text, d.Name) || strings.Contains(text, "Bad Gateway") {
		t.Errorf("the list became\n%s", text)
	}
	b.accessible("a request that a proxy answered")
	way.foreign.Store(false)
	b.fill("#q", "nothing like that")
	b.sees("#results", "No matches")
	within(t, "the end of the warning", func() bool { return b.text("#trouble") == "" })

	b.open(way.URL + templateURL(d.ID))
	b.press("#drop-head", "Publish")
	b.sees("#dialog", "Publish “")
	way.Config.SetKeepAlivesEnabled(false)
	way.Listener.Close()
	way.CloseClientConnections()
	b.press("#dialog", "Publish")
	b.sees("#dialog #trouble", "The server could not be reached")
	b.accessible("a dialog whose answer did not come")
	b.click("#dialog #trouble [data-dismiss]")
	b.press("#dialog", "Cancel")
	within(t, "the place for warnings to leave the dialog", func() bool { return evaluate[bool](b, `!!document.querySelector("body > #trouble")`) })
}

func TestWhoIsSignedOutKeepsWhatIsTyped(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	way := g.road()
	b := newTab(t)
	b.expected = "htmx: htmx:"
	b.signIn(g, g.hire(staff.Marketer))

	b.open(way.URL + "/templates/new")
	b.sees("h1", "New template")
	way.signedOut.Store(true)
	b.fill("#f-name", "Moon cake night")
	b.sees("#trouble", "You are signed out", "Sign in")
	if to := evaluate[string](b, `document.querySelector("#trouble a").getAttribute("href")`); to != "/signin?return=%2Ftemplates%2Fnew" {
		t.Errorf("the sign-in leads to %s", to)
	}
	if b.path() != "/templates/new" || evaluate[string](b, `document.querySelector("#f-name").value`) != "Moon cake night" {
		t.Errorf("what was typed is gone; the page is %s", b.path())
	}
	b.accessible("a form of somebody who has been signed out")
	way.signedOut.Store(false)
	b.fill("#f-name", "Moon cake evening")
	b.sees("#preview", "Moon cake evening")
	within(t, "the end of the warning", func() bool { return b.text("#trouble") == "" })
	evaluate[chromedp.Void](b, `document.querySelector("form[data-guard]").remove()`) // whoever has typed is asked before leaving

	// A page that keeps itself up to date stays as well.
	b.open(way.URL + "/channels")
	b.sees("h1", "Channels")
	within(t, "the stream", func() bool { return g.WatchedParts() > 0 })
	way.signedOut.Store(true)
	way.CloseClientConnections()
	b.sees("#trouble", "You are signed out")
	if b.path() != "/channels" {
		t.Errorf("the live page went to %s", b.path())
	}

	// Who asks for something is led to the sign-in and back.
	way.signedOut.Store(false)
	b.open(way.URL + "/templates?sort=latest")
	b.sees("h1", "Templates")
	way.signedOut.Store(true)
	b.fill("#q", "moon")
	b.sees("h1", "Sign in")
	if to := evaluate[string](b, `document.querySelector("[name=return]").value`); to != "/templates?sort=latest" {
		t.Errorf("the sign-in leads back to %q", to)
	}
}
