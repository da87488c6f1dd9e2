package coupons_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/views/ui"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The page of codes of a drop whose coupons are not obtained by code says only that.
func TestNoCodesForOtherDrops(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.As(staff.Marketer).Get(fmt.Sprintf("/templates/%d/codes", d.ID)).Is(200).Has("Coupons of this drop are not obtained by code.").
		HasNot("Generate the first ones", `name="count"`)
}

func TestCodesInTheConsole(t *testing.T) {
	g := consoletest.New(t)
	d := g.ByCode(g.Published(10, 5*time.Hour))
	page := fmt.Sprintf("/templates/%d/codes", d.ID)
	marketer, viewer := g.As(staff.Marketer), g.As(staff.Viewer)
	marketer.Get(shell.TemplateURL(d.ID)).Is(200).Has(page)
	a := marketer.Get(page).Is(200).Has("No redeem codes yet", "Generate codes", "Check a code")
	viewer.Get(page).Is(200).HasNot("Generate codes")
	viewer.Post(page, url.Values{"count": {"1"}}).Is(http.StatusForbidden)
	for _, count := range []string{"", "ten", "0", "-1", "1000001", "1.5"} {
		marketer.Post(page, url.Values{"count": {count}}).Is(http.StatusUnprocessableEntity).Has("must be a whole number between 1 and 1,000,000", `value="`+count+`"`)
	}
	marketer.Post(page, url.Values{"count": {"１，５００，０００"}}).Is(http.StatusUnprocessableEntity).Has("between 1 and 1,000,000", `value="１，５００，０００"`)
	form := url.Values{"count": {"１，２００"}, "request_key": {a.Field("request_key")}}
	for range 2 { // by an impatient finger
		marketer.Post(page, form).To(page)
	}
	marketer.Get(page).Is(200).Has("1,200 codes are being generated.", "0 of 1,200 generated", `data-live="`, "more codes than coupons").HasNot("Download CSV")
	for _, at := range []string{page, "/codes"} { // the page says where it comes from, and there it is
		path := at + "?before=99"
		marketer.Get(at).Is(200).Has(`data-live="` + at + `"`)
		marketer.Get(path).Is(200).Has(`data-live="` + path + `"`)
		if _, err := g.LookAtPart(t.Context(), g.KeyOf(&ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Viewer}}, path), nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	var batches int
	g.Must(g.SQL.QueryRow(t.Context(), `select count(*) from code_batches`).Scan(&batches))
	if batches != 1 {
		t.Fatalf("%d batches", batches)
	}
	marketer.Get(page + ".csv?batch=1").Is(http.StatusConflict).Has("still being generated")
	g.MakeCodes()
	g.As(staff.Viewer).Htmx().Get(page).Is(200).Has("0 of 1,200 used").HasNot("<html", "data-live", "Download CSV", "Revoke")
	marketer.Get(page).Is(200).Has("Download CSV", page+".csv?batch=1").HasNot("data-live")
	viewer.Get(page + ".csv?batch=1").Is(http.StatusForbidden)
	csv := marketer.Get(page + ".csv?batch=1").Is(200)
	lines := strings.Split(csv.Body, "\n")
	if len(lines) != 1202 || lines[0] != "code,batch_id" || !strings.Contains(csv.Header.Get("Content-Disposition"), "codes-1-1.csv") {
		t.Fatalf("%d lines, %v", len(lines), csv.Header)
	}
	marketer.Get(page + ".csv?batch=99").Is(http.StatusNotFound)
	marketer.Get(page + ".csv?batch=x").Is(http.StatusNotFound)
	marketer.Get("/audit").Is(200).Has("exported redeem codes of", "generated redeem codes for")
	g.CheckCodes(marketer, lines)

	revoke := page + "/1/revoke"
	viewer.Get(revoke).Is(http.StatusForbidden)
	marketer.Get(revoke).Is(200).Has("Revoke batch #1", "1,200 unused codes become invalid", "0 coupons")
	marketer.Post(revoke, nil).Is(http.StatusUnprocessableEntity).Has("Say why")
	marketer.Post(revoke, url.Values{"reason": {"leaked"}}).To(page)
	marketer.Get(page).Is(200).Has("Revoked", "leaked", "0 used, 1,200 invalid").HasNot("Download CSV", revoke)
	// The second member finds the batch revoked, with the reason of the first member.
	marketer.Get(revoke).To(page)
	marketer.Post(revoke, url.Values{"reason": {"much too late"}}).To(page)
	marketer.Get(page).Is(200).Has("Batch #1 is already revoked", "leaked").HasNot("much too late")
	code, _, _ := strings.Cut(lines[2], ",")
	marketer.Post("/codes/check", url.Values{"code": {code}}).Is(200).Has("Revoked", "leaked")
	marketer.Get(page + "/99/revoke").Is(http.StatusNotFound)
	marketer.Get(page + "/x/revoke").Is(http.StatusNotFound)
}

// Why there can be no more codes is said in the reader's language.
func TestNoMoreCodesForADropThatIsOver(t *testing.T) {
	g := consoletest.New(t)
	d := g.ByCode(g.Published(10, 5*time.Hour))
	page := fmt.Sprintf("/templates/%d/codes", d.ID)
	g.Exec(`update templates set state = 'closed', ended_at = now() where id = $1`, d.ID)
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has("This drop is over or was cancelled; new codes could not be used.").HasNot("this drop is over", `name="count"`)
	b.Post(page, url.Values{"count": {"1"}}).Is(http.StatusConflict).Has("The drop is over, cancelled or paused.")
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get(page).Is(200).Has("抢券活动已结束或已取消，新的兑换码无法使用。").HasNot("could not be used")
	b.Post(page, url.Values{"count": {"1"}}).Is(http.StatusConflict).Has("抢券活动已结束、已取消或已暂停。")
}

func TestCodesOfAllTemplates(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/codes").Is(200).Has("No redeem codes yet")
	mine, theirs := g.ByCode(g.Published(10, 5*time.Hour)), g.ByCode(g.Published(11, 5*time.Hour))
	for range shell.PageSize {
		b.Post(fmt.Sprintf("/templates/%d/codes", mine.ID), url.Values{"count": {"1"}}).To(fmt.Sprintf("/templates/%d/codes", mine.ID))
	}
	b.Post(fmt.Sprintf("/templates/%d/codes", theirs.ID), url.Values{"count": {"7"}}).To(fmt.Sprintf("/templates/%d/codes", theirs.ID))
	b.Get("/codes").Is(200).Has("7 codes", "/codes?before=65")
	b.Get("/codes?before=65").Is(200).Has("#1").HasNot("7 codes")
	limited := g.As(staff.Viewer, 10)
	limited.Get("/codes").Is(200).Has("1 code").HasNot("7 codes", "/codes?before")
	limited.Get(fmt.Sprintf("/templates/%d/codes", theirs.ID)).Is(http.StatusForbidden)
}

func TestNoCodesHere(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Coupons.Codes.Keys = &redeemcode.Keyring{} })
	tap := g.Published(10, 5*time.Hour)
	b := g.As(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/codes", tap.ID)
	b.Get(page).Is(200).Has("not obtained by code").HasNot(`name="count"`)
	b.Post(page, url.Values{"count": {"1"}}).Is(http.StatusConflict)
	g.ByCode(tap)
	b.Get(page).Is(200).Has("CODE_KEYS").HasNot(`name="count"`)
	b.Post(page, url.Values{"count": {"1"}}).Is(http.StatusConflict).Has("CODE_KEYS")
}
