package search_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A member opens the search with the keyboard, moves through its results, and opens a drop. The
// drop is then among the recent objects.
func TestSearchByKeyboard(t *testing.T) {
	g := consoletest.New(t)
	first, second := g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/campaigns")
	b.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.Sees("#find", "New drop", "New campaign")
	b.Fill("#find-q", "moon cake")
	b.Sees("#find", "Drops", "Moon cake night")
	b.Accessible("the search with results")
	chosen := func() string {
		return consoletest.Evaluate[string](b, `document.getElementById(document.getElementById("find-q").getAttribute("aria-activedescendant"))?.getAttribute("href") ?? ""`)
	}
	if got := chosen(); got != shell.TemplateURL(second.ID) { // opens last
		t.Errorf("at first %q is chosen", got)
	}
	b.Types(kb.ArrowDown)
	if got := chosen(); got != shell.TemplateURL(first.ID) {
		t.Errorf("below it is %q", got)
	}
	b.Types(kb.ArrowDown) // from the last to the first
	b.Types(kb.ArrowUp)   // and back
	b.Types(kb.Enter)
	b.Sees("main", "Moon cake night", "Reminders")
	b.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.Sees("#find", "Recent", "Moon cake night")
	b.Types(kb.Escape)
	consoletest.Within(t, "the dialog is closed", func() bool {
		return !consoletest.Evaluate[bool](b, `document.getElementById("find").open`)
	})
}
