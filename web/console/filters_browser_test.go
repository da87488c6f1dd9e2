package console

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
)

// Filters are simply there on a wide screen. On a phone the search field is,
// and the others are one press away, unless one of them is set.
func TestFiltersAreFoldedOnAPhone(t *testing.T) {
	g := newRig(t)
	g.published(10, time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	shown := func(selector string) bool {
		return evaluate[bool](b, `document.querySelector("`+selector+`").checkVisibility({contentVisibilityAuto: true})`)
	}
	const chip, shop = ".chips .chip", "[name=shop]"
	b.do(chromedp.EmulateViewport(1280, 900))
	b.open(g.server.URL + "/templates")
	within(t, "on a wide screen the states are there without being asked for, the shop is not", func() bool {
		return shown("#q") && shown(chip) && !shown(shop) && !shown(".folded > summary")
	})
	b.do(chromedp.EmulateViewport(390, 844))
	within(t, "on a phone everything but the search field waits", func() bool { return shown("#q") && !shown(chip) && !shown(shop) })
	b.click(".folded > summary")
	within(t, "one press opens all of them", func() bool { return shown(chip) && shown(shop) })
	b.accessible("open filters")
	b.click(".chips label:nth-of-type(3)")
	b.sees("#results", "No matches")
	b.open(g.server.URL + "/templates?state=open")
	within(t, "what is set is shown", func() bool { return shown(chip) })
}
