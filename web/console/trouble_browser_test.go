package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestRequestsThatNobodyAnswersAreSpokenOf(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 4*time.Hour)
	way := g.Road()
	b := consoletest.NewTab(t)
	b.Expected = "htmx: htmx:"
	b.SignIn(g, g.Hire(staff.Marketer))

	b.Open(way.URL + "/templates")
	b.Sees("#results", d.Name)
	way.Foreign.Store(true)
	b.Fill("#q", "nothing like it")
	b.Sees("#trouble", "The server could not be reached", "as far as known nothing was changed")
	if text := b.Text("#results"); !strings.Contains(text, d.Name) || strings.Contains(text, "Bad Gateway") {
		t.Errorf("the list became\n%s", text)
	}
	b.Accessible("a request that a proxy answered")
	way.Foreign.Store(false)
	b.Fill("#q", "nothing like that")
	b.Sees("#results", "No matches")
	consoletest.Within(t, "the end of the warning", func() bool { return b.Text("#trouble") == "" })

	b.Open(way.URL + shell.TemplateURL(d.ID))
	b.Press("#drop-head", "Publish")
	b.Sees("#dialog", "Publish “")
	way.Config.SetKeepAlivesEnabled(false)
	way.Listener.Close()
	way.CloseClientConnections()
	b.Press("#dialog", "Publish without looking")
	b.Sees("#dialog #trouble", "The server could not be reached")
	b.Accessible("a dialog whose answer did not come")
	b.Click("#dialog #trouble [data-dismiss]")
	b.Press("#dialog", "Cancel")
	consoletest.Within(t, "the place for warnings to leave the dialog", func() bool { return consoletest.Evaluate[bool](b, `!!document.querySelector("body > #trouble")`) })
}

func TestWhoIsSignedOutKeepsWhatIsTyped(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	way := g.Road()
	b := consoletest.NewTab(t)
	b.Expected = "htmx: htmx:"
	b.SignIn(g, g.Hire(staff.Marketer))

	b.Open(way.URL + "/templates/new")
	b.Sees("h1", "New drop")
	way.SignedOut.Store(true)
	b.Fill("#f-name", "Moon cake night")
	b.Sees("#trouble", "You are signed out", "Sign in")
	if to := consoletest.Evaluate[string](b, `document.querySelector("#trouble a").getAttribute("href")`); to != "/signin?return=%2Ftemplates%2Fnew" {
		t.Errorf("the sign-in leads to %s", to)
	}
	if b.Path() != "/templates/new" || consoletest.Evaluate[string](b, `document.querySelector("#f-name").value`) != "Moon cake night" {
		t.Errorf("what was typed is gone; the page is %s", b.Path())
	}
	b.Accessible("a form of somebody who has been signed out")
	way.SignedOut.Store(false)
	b.Fill("#f-name", "Moon cake evening")
	b.Sees("#preview", "Moon cake evening")
	consoletest.Within(t, "the end of the warning", func() bool { return b.Text("#trouble") == "" })
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("form[data-guard]").remove()`) // a form with typed values warns before leaving

	// A page that keeps itself up to date stays as well.
	b.Open(way.URL + "/channels")
	b.Sees("h1", "Channels")
	consoletest.Within(t, "the stream", func() bool { return g.Watched() > 0 })
	way.SignedOut.Store(true)
	way.CloseClientConnections()
	b.Sees("#trouble", "You are signed out")
	if b.Path() != "/channels" {
		t.Errorf("the live page went to %s", b.Path())
	}

	// A request without a session leads to the sign-in and back.
	way.SignedOut.Store(false)
	b.Open(way.URL + "/templates?sort=latest")
	b.Sees("h1", "Drops")
	way.SignedOut.Store(true)
	b.Fill("#q", "moon")
	b.Sees("h1", "Sign in")
	if to := consoletest.Evaluate[string](b, `document.querySelector("[name=return]").value`); to != "/templates?sort=latest" {
		t.Errorf("the sign-in leads back to %q", to)
	}
}
