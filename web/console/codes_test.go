package console

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
	"dropbell/web/console/shell"
)

// A drop whose coupons are not obtained by code says that, and nothing else.
func TestNoCodesForOtherDrops(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.as(staff.Marketer).get(fmt.Sprintf("/templates/%d/codes", d.ID)).is(200).has("Coupons of this template are not obtained by code.").
		hasNot("Generate the first ones", `name="count"`)
}

func TestCodesInTheConsole(t *testing.T) {
	g := newRig(t)
	d := g.byCode(g.published(10, 5*time.Hour))
	page := fmt.Sprintf("/templates/%d/codes", d.ID)
	marketer, viewer := g.as(staff.Marketer), g.as(staff.Viewer)
	marketer.get(shell.TemplateURL(d.ID)).is(200).has(page)
	a := marketer.get(page).is(200).has("No redeem codes yet", "Generate codes", "Check a code")
	viewer.get(page).is(200).hasNot("Generate codes")
	viewer.post(page, url.Values{"count": {"1"}}).is(http.StatusForbidden)
	for _, count := range []string{"", "ten", "0", "-1", "1000001", "1.5"} {
		marketer.post(page, url.Values{"count": {count}}).is(http.StatusUnprocessableEntity).has("must be a whole number between 1 and 1,000,000", `value="`+count+`"`)
	}
	marketer.post(page, url.Values{"count": {"１，５００，０００"}}).is(http.StatusUnprocessableEntity).has("between 1 and 1,000,000", `value="１，５００，０００"`)
	form := url.Values{"count": {"１，２００"}, "request_key": {a.field("request_key")}}
	for range 2 { // by an impatient finger
		marketer.post(page, form).to(page)
	}
	marketer.get(page).is(200).has("1,200 codes are being generated.", "0 of 1,200 generated", `data-live="`, "more than there are coupons").hasNot("Download CSV")
	for _, at := range []string{page, "/codes"} { // the page says where it comes from, and there it is
		path := at + "?before=99"
		marketer.get(at).is(200).has(`data-live="` + at + `"`)
		marketer.get(path).is(200).has(`data-live="` + path + `"`)
		if _, err := g.LookAtPart(t.Context(), g.KeyOf(&ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Viewer}}, path), nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	var batches int
	g.must(g.sql.QueryRow(t.Context(), `select count(*) from code_batches`).Scan(&batches))
	if batches != 1 {
		t.Fatalf("%d batches", batches)
	}
	marketer.get(page + ".csv?batch=1").is(http.StatusConflict).has("still being generated")
	g.makeCodes()
	g.as(staff.Viewer).htmx().get(page).is(200).has("0 of 1,200 used").hasNot("<html", "data-live", "Download CSV", "Revoke")
	marketer.get(page).is(200).has("Download CSV", page+".csv?batch=1").hasNot("data-live")
	viewer.get(page + ".csv?batch=1").is(http.StatusForbidden)
	csv := marketer.get(page + ".csv?batch=1").is(200)
	lines := strings.Split(csv.body, "\n")
	if len(lines) != 1202 || lines[0] != "code,batch_id" || !strings.Contains(csv.header.Get("Content-Disposition"), "codes-1-1.csv") {
		t.Fatalf("%d lines, %v", len(lines), csv.header)
	}
	marketer.get(page + ".csv?batch=99").is(http.StatusNotFound)
	marketer.get(page + ".csv?batch=x").is(http.StatusNotFound)
	marketer.get("/audit").is(200).has("exported redeem codes of", "generated redeem codes for")
	g.checkCodes(marketer, lines)

	revoke := page + "/1/revoke"
	viewer.get(revoke).is(http.StatusForbidden)
	marketer.get(revoke).is(200).has("Revoke batch #1", "1,200 codes that nobody has used become worthless", "0 coupons")
	marketer.post(revoke, nil).is(http.StatusUnprocessableEntity).has("is required")
	marketer.post(revoke, url.Values{"reason": {"leaked"}}).to(page)
	marketer.get(page).is(200).has("revoked", "leaked", "0 used, 1,200 worthless").hasNot("Download CSV", revoke)
	// Who was slower finds it done, by the reason of who was faster.
	marketer.get(revoke).to(page)
	marketer.post(revoke, url.Values{"reason": {"much too late"}}).to(page)
	marketer.get(page).is(200).has("Batch #1 is revoked already", "leaked").hasNot("much too late")
	code, _, _ := strings.Cut(lines[2], ",")
	marketer.post("/codes/check", url.Values{"code": {code}}).is(200).has("Revoked", "leaked")
	marketer.get(page + "/99/revoke").is(http.StatusNotFound)
	marketer.get(page + "/x/revoke").is(http.StatusNotFound)
}

// Why there can be no more codes is said in the reader's language.
func TestNoMoreCodesForADropThatIsOver(t *testing.T) {
	g := newRig(t)
	d := g.byCode(g.published(10, 5*time.Hour))
	page := fmt.Sprintf("/templates/%d/codes", d.ID)
	g.exec(`update templates set state = 'closed', ended_at = now() where id = $1`, d.ID)
	b := g.as(staff.Marketer)
	b.get(page).is(200).has("This drop is over or was cancelled; nobody could use new codes.").hasNot("this drop is over", `name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict).has("The drop is over, cancelled or paused.")
	b.header.Set("Accept-Language", "zh-CN")
	b.get(page).is(200).has("开抢已结束或已取消，新的兑换码无法使用。").hasNot("nobody could use")
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict).has("开抢已结束、已取消或已暂停。")
}

func TestCodesOfAllTemplates(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.get("/codes").is(200).has("No redeem codes yet")
	mine, theirs := g.byCode(g.published(10, 5*time.Hour)), g.byCode(g.published(11, 5*time.Hour))
	for range shell.PageSize {
		b.post(fmt.Sprintf("/templates/%d/codes", mine.ID), url.Values{"count": {"1"}}).to(fmt.Sprintf("/templates/%d/codes", mine.ID))
	}
	b.post(fmt.Sprintf("/templates/%d/codes", theirs.ID), url.Values{"count": {"7"}}).to(fmt.Sprintf("/templates/%d/codes", theirs.ID))
	b.get("/codes").is(200).has("7 codes", "/codes?before=2")
	b.get("/codes?before=2").is(200).has("#1").hasNot("7 codes")
	limited := g.as(staff.Viewer, 10)
	limited.get("/codes").is(200).has("1 code").hasNot("7 codes", "/codes?before")
	limited.get(fmt.Sprintf("/templates/%d/codes", theirs.ID)).is(http.StatusForbidden)
}

func TestNoCodesHere(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Coupons.Codes.Keys = &redeemcode.Keyring{} })
	tap := g.published(10, 5*time.Hour)
	b := g.as(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/codes", tap.ID)
	b.get(page).is(200).has("not obtained by code").hasNot(`name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict)
	g.byCode(tap)
	b.get(page).is(200).has("CODE_KEYS").hasNot(`name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict).has("CODE_KEYS")
}
