package console

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// A marketer generates codes, watches them become ready without touching the
// page, looks one up, and revokes them in a dialog.
func TestCodesInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.byCode(g.published(10, 5*time.Hour))
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + fmt.Sprintf("/templates/%d/codes", d.ID))
	b.sees("main", "No redeem codes yet")
	b.fill("#f-count", "50")
	b.press("main", "Generate")
	b.sees("main", "50 codes are being generated.", "0 of 50 generated")
	b.accessible("generating")
	g.makeCodes()
	b.sees("#batches", "0 of 50 used", "Download CSV")
	if evaluate[bool](b, `!!document.querySelector("[data-live]")`) {
		t.Error("the page goes on asking although nothing is generated")
	}
	code, err := codeKeys(t).Code(1, 7)
	g.must(err)
	b.fill("#f-code", code.Text())
	b.press("#code-check", "Check")
	b.sees("#code-check", "Not now: the drop has not opened yet", "code 7 of 50")
	b.accessible("a code that was looked up")
	b.press("#batches", "Revoke")
	b.sees("#dialog", "50 unused codes become invalid")
	b.press("#dialog", "Revoke")
	b.sees("#dialog", "is required")
	b.fill("#dialog #f-reason", "leaked")
	b.press("#dialog", "Revoke")
	b.sees("main", "The batch is revoked", "0 used, 50 invalid", "leaked")
	b.accessible("revoked codes")
}
