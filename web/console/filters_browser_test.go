package console_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// On a wide screen all filters are visible. On a phone only the search field is visible, and a
// button shows the other filters; if one of them is set, they are visible at once.
func TestFiltersAreFoldedOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	shown := func(selector string) bool {
		return consoletest.Evaluate[bool](b, `document.querySelector("`+selector+`").checkVisibility({contentVisibilityAuto: true})`)
	}
	const chip, shop = ".chips .chip", "[name=shop]"
	b.Do(chromedp.EmulateViewport(1280, 900))
	b.Open(g.Server.URL + "/templates")
	consoletest.Within(t, "on a wide screen the states are there without being asked for, the shop is not", func() bool {
		return shown("#q") && shown(chip) && !shown(shop) && !shown(".folded > summary")
	})
	b.Do(chromedp.EmulateViewport(390, 844))
	consoletest.Within(t, "on a phone everything but the search field waits", func() bool { return shown("#q") && !shown(chip) && !shown(shop) })
	b.Click(".folded > summary")
	consoletest.Within(t, "one press opens all of them", func() bool { return shown(chip) && shown(shop) })
	b.Accessible("open filters")
	b.Click(".chips label:nth-of-type(3)")
	b.Sees("#results", "No matches")
	b.Open(g.Server.URL + "/templates?state=open")
	consoletest.Within(t, "what is set is shown", func() bool { return shown(chip) })
}
