package coupons_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// A marketer generates codes, watches them become ready without reloading the page, looks up a
// code, and revokes the codes in a dialog.
func TestCodesInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.ByCode(g.Published(10, 5*time.Hour))
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + fmt.Sprintf("/templates/%d/codes", d.ID))
	b.Sees("main", "No redeem codes yet")
	b.Fill("#f-count", "50")
	b.Press("main", "Generate")
	b.Sees("main", "50 codes are being generated.", "0 of 50 generated")
	b.Accessible("generating")
	g.MakeCodes()
	b.Sees("#batches", "0 of 50 used", "Download CSV")
	if consoletest.Evaluate[bool](b, `!!document.querySelector("[data-live]")`) {
		t.Error("the page goes on asking although nothing is generated")
	}
	code, err := consoletest.CodeKeys(t).Code(1, redeemcode.Serial(g.Number(`select first_serial + 6 from code_batches`)))
	g.Must(err)
	b.Fill("#f-code", code.Text())
	b.Press("#code-check", "Check")
	b.Sees("#code-check", "Not now: the drop has not opened yet", "code 7 of 50")
	b.Accessible("a code that was looked up")
	b.Press("#batches", "Revoke")
	b.Sees("#dialog", "50 unused codes become invalid")
	b.Press("#dialog", "Revoke")
	b.Sees("#dialog", "Say why")
	b.Fill("#dialog #f-reason", "leaked")
	b.Press("#dialog", "Revoke")
	b.Sees("main", "The batch is revoked", "0 used, 50 invalid", "leaked")
	b.Accessible("revoked codes")
}
