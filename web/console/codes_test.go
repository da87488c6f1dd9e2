package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// codeKeys holds a key that everybody may know.
func codeKeys(t *testing.T) *redeemcode.Keyring {
	t.Helper()
	k, err := redeemcode.ParseKeys("1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU=")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// byCode makes the template one that is obtained by code.
func (g *rig) byCode(t template.Template) template.Template {
	g.Helper()
	g.exec(`update templates set obtain = 'code' where id = $1`, t.ID)
	t.Obtain = template.ByCode
	return t
}

// makeCodes does what workers would with batches that wait.
func (g *rig) makeCodes() {
	g.Helper()
	jobs := postgres.NewJobs(g.db)
	runner := &redeemcode.Generator{Store: postgres.NewCodes(g.db), Keys: codeKeys(g.T)}
	kinds := []string{redeemcode.JobKind}
	due, err := jobs.DueJobs(g.Context(), kinds, 10)
	g.must(err)
	for _, id := range due {
		l, err := jobs.LeaseJob(g.Context(), id, kinds, time.Minute)
		g.must(err)
		var p job.Progress
		for !p.Finished {
			p, err = runner.Step(g.Context(), l.Job)
			g.must(err)
			l.Job, err = jobs.SaveJob(g.Context(), l, p, time.Minute)
			g.must(err)
		}
	}
}

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
	marketer.get(templateURL(d.ID)).is(200).has(page)
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
	marketer.get(revoke).is(200).has("Revoke batch #1", "1,200 unused codes become invalid", "0 coupons")
	marketer.post(revoke, nil).is(http.StatusUnprocessableEntity).has("is required")
	marketer.post(revoke, url.Values{"reason": {"leaked"}}).to(page)
	marketer.get(page).is(200).has("revoked", "leaked", "0 used, 1,200 invalid").hasNot("Download CSV", revoke)
	// Who was slower finds it done, by the reason of who was faster.
	marketer.get(revoke).to(page)
	marketer.post(revoke, url.Values{"reason": {"much too late"}}).to(page)
	marketer.get(page).is(200).has("Batch #1 is already revoked", "leaked").hasNot("much too late")
	code, _, _ := strings.Cut(lines[2], ",")
	marketer.post("/codes/check", url.Values{"code": {code}}).is(200).has("Revoked", "leaked")
	marketer.get(page + "/99/revoke").is(http.StatusNotFound)
	marketer.get(page + "/x/revoke").is(http.StatusNotFound)
}

// checkCodes looks up codes of every kind.
func (g *rig) checkCodes(b *browser, lines []string) {
	g.Helper()
	first, _, _ := strings.Cut(lines[1], ",")
	check := func(code string) answer { return b.post("/codes/check", url.Values{"code": {code}}).is(200) }
	check("hello").has("This is not a code", `value="hello"`)
	check("0000 0000 0000 0000").has("Not one of our codes")
	check(strings.ToLower(first)).has("Not now: the drop has not opened yet", first, "code 1 of 1,200", "Opening", "<html")
	g.checkDrops(check, first)
	g.exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		values (1, 1001, 5, 'code', '1', now(), now() + interval '1 day')`)
	check(first).has("A code works once", "/users/1001")
	part := g.as(staff.Marketer).htmx().post("/codes/check", url.Values{"code": {first}}).is(200)
	part.has("A code works once").hasNot("<html")
	elsewhere := g.as(staff.Viewer, 11)
	elsewhere.post("/codes/check", url.Values{"code": {first}}).is(200).has("A code of another shop").hasNot("1001")
}

// checkDrops looks up a good code in every state of its drop.
func (g *rig) checkDrops(check func(string) answer, code string) {
	g.Helper()
	set := func(change string) { g.Helper(); g.exec(`update templates set ` + change + ` where id = 1`) }
	now, never := `class="notice is-warn"`, `class="notice is-bad"`
	set(`state = 'draft'`)
	check(code).has(now, "Not now: the template is a draft")
	set(`state = 'published', opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '1 hour'`)
	check(code).has("Valid and unused", "It can be redeemed now").hasNot(now, never)
	set(`state = 'paused'`)
	check(code).has(now, "Not now: the drop is paused")
	set(`state = 'published', issued = stock`)
	check(code).has(now, "Not now: all coupons are gone")
	set(`state = 'closed', issued = 0, ended_at = '2026-03-04 05:06:07Z'`)
	check(code).has(never, "Invalid: the drop is over", "Ended", "4 Mar 2026")
	set(`state = 'cancelled'`)
	check(code).has(never, "Invalid: the drop was cancelled", "4 Mar 2026").hasNot("Valid and unused")
	set(`state = 'published', ended_at = null, obtain = 'claim'`)
	check(code).has(never, "Invalid: the drop takes no codes")
	set(`obtain = 'code'`)
}

// Why there can be no more codes is said in the reader's language.
func TestNoMoreCodesForADropThatIsOver(t *testing.T) {
	g := newRig(t)
	d := g.byCode(g.published(10, 5*time.Hour))
	page := fmt.Sprintf("/templates/%d/codes", d.ID)
	g.exec(`update templates set state = 'closed', ended_at = now() where id = $1`, d.ID)
	b := g.as(staff.Marketer)
	b.get(page).is(200).has("This drop is over or was cancelled; new codes could not be used.").hasNot("this drop is over", `name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict).has("The drop is over, cancelled or paused.")
	b.header.Set("Accept-Language", "zh-CN")
	b.get(page).is(200).has("开抢已结束或已取消，新的兑换码无法使用。").hasNot("could not be used")
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
	g := newRig(t, func(d *Deps) { d.Codes.Keys = &redeemcode.Keyring{} })
	tap := g.published(10, 5*time.Hour)
	b := g.as(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/codes", tap.ID)
	b.get(page).is(200).has("not obtained by code").hasNot(`name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict)
	g.byCode(tap)
	b.get(page).is(200).has("CODE_KEYS").hasNot(`name="count"`)
	b.post(page, url.Values{"count": {"1"}}).is(http.StatusConflict).has("CODE_KEYS")
}
