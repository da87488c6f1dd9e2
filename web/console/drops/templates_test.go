package drops_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/drops"
	"dropbell/web/console/shell"
)

func TestCreateTemplate(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/templates/new").Is(200).Has("Create a shop first")
	g.Shop(10)
	form := g.TypedForm(48 * time.Hour)
	form.Set("request_key", b.Get("/templates/new").Is(200).Field("request_key"))
	b.Post("/templates", form).To("/templates/1")
	b.Post("/templates", form).To("/templates/1") // sent twice by an impatient finger
	b.Get("/templates/1").Is(200).Has("Moon cake night", "Draft", "¥20.50 off from ¥1,000", "50,000", "The draft of “Moon cake night” has been saved.")
	b.Get("/templates/1").Is(200).HasNot("has been saved") // a flash is seen once
	got, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.Must(err)
	if got.AmountOff != 2050 || got.Threshold != 100000 || got.MaxOff != 0 || got.Product != "" || got.Description != "Line one\nLine two" || got.Currency != "CNY" {
		t.Errorf("stored %+v", got.Spec)
	}
	other := g.As(staff.Marketer)
	a := other.Post("/templates", form).Is(http.StatusSeeOther) // another member's form is another template
	if a.Header.Get("Location") == "/templates/1" {
		t.Error("a form opened somebody else's template")
	}
}

// An opening in the past is refused beside the other errors of the form, not after they are repaired.
func TestAPastOpeningIsRefusedAtOnce(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	form := g.TypedForm(48 * time.Hour)
	form.Set("opens_at", "2020-01-01T10:00")
	form.Set("stock", "-1")
	g.As(staff.Marketer).Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("must lie in the future", "2 things need your attention")
	form.Set("stock", "10")
	g.As(staff.Marketer).Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("must lie in the future")
}

func TestNothingTypedIsLost(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	for k, v := range map[string]string{"name": "", "amount_off": "12.345", "threshold": "x", "stock": "-1", "per_user_limit": "0", "currency": "C",
		"closes_at": "2026-03-29T02:30", "opens_at": "2026-10-25T02:30", "claim_url": "javascript:alert(1)", "description": `"><script>alert(1)</script>`} {
		form.Set(k, v)
	}
	a := b.Post("/templates", form).Is(http.StatusUnprocessableEntity)
	a.Has("Enter a name", "must be a number such as 10 or 10.50, with at most 2 decimals", "must be between 1 and 1,000", "must be three letters such as CNY",
		"does not exist that day", "happens twice that day", "This time happens twice that night", "must be an http or https address",
		`value="12.345"`, `value="x"`, `value="-1"`, `value="2026-03-29T02:30"`, `value="2026-10-25T02:30"`, `value="javascript:alert(1)"`, `name="opens_at_fold"`, "&lt;script&gt;")
	a.HasNot("<script>alert")
	form = g.TypedForm(48 * time.Hour)
	form.Set("opens_at", "2055-10-31T02:30")
	form.Set("closes_at", "2055-11-01T02:30")
	form.Set("opens_at_fold", "second")
	b.Post("/templates", form).To("/templates/1")
	got, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.Must(err)
	if want := "2055-10-31T01:30:00Z"; got.OpensAt.UTC().Format(time.RFC3339) != want {
		t.Errorf("opens at %s, want %s", got.OpensAt.UTC(), want)
	}
	b.Get("/templates/1/edit").Is(200).Has(`value="2055-10-31T02:30"`, `value="second" checked`)
}

func TestPreview(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	form := g.TypedForm(30 * time.Minute)
	a := b.Post("/templates/preview", form).Is(200)
	a.Has("¥20.50 off", "Shop 10", "(in ", "reminder times are already past", "Valid for 3 days").HasNot("<html")
	b.Post("/templates/preview", nil).Is(200).Has("Unnamed coupon")
}

// A browser shows a date in the browser's language. So the instant is written out in the viewer's
// language below each field, while it is typed and on the page itself.
func TestTypedTimesAreWrittenOut(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Exec(`update shops set timezone = 'Asia/Shanghai'`)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	day := time.Date(g.Now().Year()+1, 11, 19, 0, 0, 0, 0, time.UTC) // a move is at most two years ahead
	form.Set("opens_at", day.Format(time.DateOnly)+"T20:00")
	form.Set("closes_at", "")
	b.Post("/templates/preview", form).Is(200).Has(`<hx-partial hx-target="#f-opens_at-said">`+day.Format("Mon 2 Jan 2006")+`, 20:00 Beijing time</hx-partial>`,
		`<hx-partial hx-target="#f-closes_at-said"></hx-partial>`)
	form.Set("closes_at", day.Format("2006-01-")+"20T20:00")
	b.Post("/templates", form).To("/templates/1")
	b.Post("/preferences", url.Values{"locale": {"zh-CN"}, "return": {"/"}})
	said := `id="f-opens_at-said">` + day.Format("2006年1月2日 周") + strings.Fields("日 一 二 三 四 五 六")[day.Weekday()]
	b.Get("/templates/1/edit").Is(200).Has(said + " 20:00 北京时间<")
	b.Htmx().Get("/templates/1/move?part=blast&opens_at=" + day.Format(time.DateOnly) + "T21:00").Is(200).Has(strings.Replace(said, `id="`, `hx-target="#`, 1) + " 21:00 北京时间<")
}

func TestLifeOfADrop(t *testing.T) {
	g := consoletest.New(t)
	g.AtNoon(consoletest.Berlin(t))
	d := g.Draft(10, 2*time.Hour)
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID)
	for _, step := range []string{"publish", "pause", "resume"} {
		asked := b.Get(page+"/"+step).Is(200).Has("Reason", "Cancel")
		b.Post(page+"/"+step, url.Values{"reason": {"because of " + step}, "version": {asked.Field("version")}}).To(page)
	}
	b.Get(page).Is(200).Has("Scheduled", "Reminders by time and channel")
	b.Get(page + "?tab=history").Is(200).Has("because of pause")
	b.Post(page+"/resume", nil).Is(http.StatusConflict).Has("The drop is published and has not opened yet.")
	b.Post(page+"/publish", nil).To(page) // sent once more: it is published
	g.Book(d, 1001, delivery.App, 5, 60)
	g.Book(d, 1002, delivery.Email, 5)
	b.Get(page + "/cancel").Is(200).Has("Waiting reminders, which are not sent: 3")
	b.Get(page + "/close").Is(200).Has("Waiting reminders, which are not sent: 3")
	b.Post(page+"/cancel", url.Values{"reason": {strings.Repeat("长", 5000)}}).To(page)
	b.Get(page).Is(200).Has("Cancelled", "“Moon cake night” is cancelled.", "Copy to a new drop").HasNot(page+"/publish", page+"/pause\"")
	for _, path := range []string{"/edit", "/move", "/stock"} {
		b.Get(page + path).Is(http.StatusConflict)
	}
	b.Get("/templates/new?from=1").Is(200).Has(`value="Moon cake night"`, `name="opens_at" type="datetime-local" value="`+nextDay(t, d.OpensAt, g.Now())+`"`)
	b.Get(page + "/explode").Is(http.StatusNotFound)
	b.Get("/templates/01").Is(http.StatusNotFound)
	b.Get("/templates/99").Is(http.StatusNotFound).Has("There is no such drop.")
	b.Get("/templates/99999999999999999999").Is(http.StatusNotFound)
}

// TestPublishingWhatNobodySaw: a draft that was changed after the publication form was shown is
// shown again first.
func TestPublishingWhatNobodySaw(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 2*time.Hour)
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID)
	seen := b.Get(page + "/publish").Is(200).Has("a stock of 100.").Field("version")
	changed := d.Spec
	changed.Stock = 9999
	if _, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: d.Version, Spec: changed}); err != nil {
		t.Fatal(err)
	}
	for _, old := range []url.Values{{"version": {seen}}, nil} {
		again := b.Post(page+"/publish", old).Is(http.StatusConflict).Has("Another person changed this in the meantime", "a stock of 9,999.")
		seen = again.Field("version")
	}
	b.Get(page).Is(200).Has("Draft")
	b.Post(page+"/publish", url.Values{"version": {seen}}).To(page)
	b.Post(page+"/publish", url.Values{"version": {seen}}).To(page) // the other half of a double click
	b.Get(page).Is(200).Has("Scheduled")
}

func TestPublishInThePastIsExplained(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, time.Hour)
	g.Wait(90 * time.Minute)
	b := g.As(staff.Marketer)
	asked := b.Get(shell.TemplateURL(d.ID) + "/publish").Is(200).Has("12 of 12 reminder times are already past")
	b.Post(shell.TemplateURL(d.ID)+"/publish", url.Values{"version": {asked.Field("version")}}).Is(http.StatusUnprocessableEntity).Has("Opening: must lie in the future")
}

func TestMove(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 5, 60)
	g.Book(d, 1002, delivery.Email, 60)
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID) + "/move"
	typed := func(in time.Duration) string {
		text, _ := shell.TypedTime(g.Now().Add(in).Truncate(time.Minute), consoletest.Berlin(t))
		return text
	}
	form := b.Get(page).Is(200).Has("Move the opening of", "Enter the new opening").Body
	version := consoletest.Answer{T: t, Body: form}.Field("version")
	b.Get(page+"?follow=1&opens_at="+typed(30*time.Minute)).Is(200).Has("3 reminders are reserved", "No customer has been reminded", "2 reminders would be in the past", "earlier than now planned")
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	b.Get(page+"?part=blast&opens_at="+typed(6*time.Hour)).Is(200).Has("All waiting reminders are still ahead", "later than now planned").HasNot("<form")
	b.Header = http.Header{}
	b.Post(page, url.Values{"version": {version}, "opens_at": {typed(-time.Hour)}}).Is(422).Has("must lie in the future")
	b.Post(page, url.Values{"version": {version}, "opens_at": {typed(8 * time.Hour)}}).Is(422).Has("Closing: must be after the opening")
	b.Post(page, url.Values{"version": {version}, "opens_at": {typed(-time.Hour)}, "reason": {"late truck"}}).Is(422).Has(`value="late truck"`)
	b.Post(page, url.Values{"version": {version}, "opens_at": {typed(8 * time.Hour)}, "follow": {"1"}, "reason": {"late truck"}}).To(shell.TemplateURL(d.ID))
	b.Get(shell.TemplateURL(d.ID) + "?tab=history").Is(200).Has("late truck")
	b.Post(page, url.Values{"version": {version}, "opens_at": {typed(9 * time.Hour)}, "follow": {"1"}}).Is(http.StatusConflict).Has("Another person changed this")
	got, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.Must(err)
	if shift := got.OpensAt.Sub(d.OpensAt).Round(time.Hour); shift != 3*time.Hour || got.ClosesAt.Sub(got.OpensAt) != d.ClosesAt.Sub(d.OpensAt) {
		t.Errorf("opening moved by %v, window %v", shift, got.ClosesAt.Sub(got.OpensAt))
	}
	again, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: got.Version, Spec: got.Spec})
	g.Must(err)
	b.Get(page + "?remind_once=1&opens_at=" + typed(10*time.Hour)).Is(200).Has(`name="remind_once" value="1" checked`)
	b.Post(page, url.Values{"version": {strconv.FormatInt(again.Version, 10)}, "opens_at": {typed(10 * time.Hour)}, "follow": {"1"}, "remind_once": {"1"}}).To(shell.TemplateURL(d.ID))
	if got, err = g.Templates.Template(t.Context(), staff.System(), d.ID); err != nil || !got.RemindOnce {
		t.Errorf("%+v %v", got, err)
	}
	g.Wait(11 * time.Hour)
	b.Get(page).Is(http.StatusConflict)
}

func TestChangeStock(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID) + "/stock"
	version := b.Get(page).Is(200).Has("Now 100, 0 of them issued").Field("version")
	g.Exec(`update templates set issued = 3 where id = $1`, d.ID)
	b.Post(page, url.Values{"version": {version}, "stock": {"2"}}).Is(http.StatusConflict).Has("Stock cannot be lower than the number issued", `value="2"`)
	b.Post(page, url.Values{"version": {version}, "stock": {"many"}}).Is(422).Has("must be a whole number")
	b.Post(page, url.Values{"version": {version}, "stock": {"99999999999999"}}).Is(422)
	b.Post(page, url.Values{"version": {version}, "stock": {"1,500"}}).To(shell.TemplateURL(d.ID))
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has("1,500")
}

func TestStaleForm(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 48*time.Hour)
	mine, theirs := g.As(staff.Marketer), g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID) + "/edit"
	version := mine.Get(page).Is(200).Field("version")
	form := g.TypedForm(48 * time.Hour)
	form.Set("version", version)
	form.Set("name", "Theirs")
	form.Set("stock", "7")
	theirs.Post(page, form).To(shell.TemplateURL(d.ID))
	form.Set("name", "Mine")
	form.Set("stock", "9")
	a := mine.Post(page, form).Is(http.StatusConflict).Has("This was changed in the meantime", "The marketer changed this", "Theirs", "Mine", "Use mine", "Use theirs")
	again := url.Values{}
	for k := range form {
		again.Set(k, form.Get(k))
	}
	again.Set("version", a.Field("version"))
	keep := url.Values{"again": {"1"}}
	for k, v := range again {
		keep[k] = v
	}
	mine.Post(page, keep).Is(200).Has(`value="Mine"`)
	mine.Post(page, again).To(shell.TemplateURL(d.ID))
	got, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.Must(err)
	if got.Name != "Mine" || got.Stock != 9 {
		t.Errorf("stored %q %d", got.Name, got.Stock)
	}
}

func TestEditPublished(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 48*time.Hour)
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID) + "/edit"
	form := url.Values{}
	for k, v := range drops.ValuesOf(d) {
		form.Set(k, v)
	}
	form.Set("version", b.Get(page).Is(200).Has("This drop is published").Field("version"))
	form.Set("amount_off", "99")
	form.Set("stock", "5")
	b.Post(page, form).Is(422).Has("cannot change once the drop is published")
	form.Set("amount_off", "10")
	g.Exec(`update templates set issued = 6 where id = $1`, d.ID)
	b.Post(page, form).Is(http.StatusConflict).Has("Stock cannot be lower than the number issued")
	form.Set("stock", "500")
	form.Set("name", "New name")
	b.Post(page, form).To(shell.TemplateURL(d.ID))
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has("New name", "“New name” has been saved.")
}

// In the unsorted list, future and active drops come before ended drops, and paging neither loses
// nor repeats a drop.
func TestListBeginsWithWhatIsAhead(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	named := func(name string, id int64) { g.Exec(`update templates set name = $2 where id = $1`, id, name) }
	for i := range 12 {
		named(fmt.Sprintf("Ahead %02d", i), g.Published(10, time.Duration(i+1)*time.Hour).ID)
		named(fmt.Sprintf("Idea %02d", i), g.Draft(10, time.Duration(i+1)*time.Hour).ID)
	}
	for i := range 12 {
		over := g.Published(10, time.Duration(i+1)*time.Hour).ID
		named(fmt.Sprintf("Over %02d", i), over)
		g.Exec(`update templates set opens_at = opens_at - interval '90 days', closes_at = closes_at - interval '90 days', state = 'closed' where id = $1`, over)
		old := g.Draft(10, time.Duration(i+1)*time.Hour).ID
		named(fmt.Sprintf("Stale %02d", i), old)
		g.Exec(`update templates set opens_at = opens_at - interval '90 days', closes_at = closes_at - interval '90 days' where id = $1`, old)
	}
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("Ahead %02d", i))
	}
	for i := range 12 {
		want = append(want, fmt.Sprintf("Idea %02d", i))
	}
	for i := range 12 {
		want = append(want, fmt.Sprintf("Over %02d", 11-i))
	}
	for i := range 12 {
		want = append(want, fmt.Sprintf("Stale %02d", 11-i))
	}
	var got []string
	for page := "/templates"; page != ""; {
		a := b.Get(page).Is(200)
		for _, m := range regexp.MustCompile(`class="row-link"[^>]*>([^<]+)<`).FindAllStringSubmatch(a.Body, -1) {
			got = append(got, m[1])
		}
		page = ""
		for _, m := range regexp.MustCompile(`href="(/templates\?after=[^"]+)"`).FindAllStringSubmatch(a.Body, -1) {
			page = html.UnescapeString(m[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages list\n%q, want\n%q", got, want)
	}
	b.Get("/templates?state=closed&state=draft").Is(200).Has("Idea 00", "Over 11").HasNot("Ahead")
	if body := b.Get("/templates?sort=soonest").Is(200).Body; !strings.Contains(body, "Stale 00") || strings.Contains(body, "Idea 00") {
		t.Error("the earliest opening is not first although that was asked for")
	}
}

func TestListOfTemplates(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Get("/templates").Is(200).Has("No drops yet").HasNot("/templates/new")
	g.Shop(10)
	for i := range shell.PageSize + 3 {
		s := g.Spec(10, time.Duration(i+1)*time.Hour)
		s.Name = fmt.Sprintf("Drop %02d 100%%", i)
		_, err := g.Templates.Create(t.Context(), staff.System(), s, "")
		g.Must(err)
	}
	a := b.Get("/templates").Is(200).Has("Drop 00", "Drop 24").HasNot("Drop 25")
	next := strings.ReplaceAll(consoletest.Between(a.Body, `<nav class="pager"`, `</nav>`), "&amp;", "&")
	b.Get(consoletest.Between(next, `href="`, `"`)).Is(200).Has("Drop 25", "Drop 27", "First page").HasNot("Drop 24")
	b.Get("/templates?sort=latest").Is(200).Has("Drop 27").HasNot("Drop 02")
	b.Get("/templates?q=drop+03").Is(200).Has("Drop 03").HasNot("Drop 04")
	b.Get("/templates?q=100%25").Is(200).Has("Drop 00")
	b.Get("/templates?q=100_").Is(200).Has("No matches")
	b.Get("/templates?state=open").Is(200).Has("No matches")
	b.Get("/templates?state=draft&shop=10&from=2026-01-01&to=2099-01-01").Is(200).Has("Drop 00")
	b.Get("/templates?after=x_y&after=99999999999999999999_1").Is(200).Has("Drop 00")
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	b.Get("/templates?q=drop+03").Is(200).Has("Drop 03").HasNot("<html", "Sign out")
	b.Header.Set("HX-History-Restore-Request", "true")
	b.Get("/templates?q=drop+03").Is(200).Has("<html")
}

func TestOverview(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	b.Get("/").Is(200).Has("Welcome to Dropbell")
	d := g.Published(10, 30*time.Minute)
	g.Book(d, 1001, delivery.App, 5)
	g.Book(d, 1002, delivery.App, 5)
	b.Get("/").Is(200).Has("Moon cake night", "Opens in", "All is well.", "Reserved 2")
	g.Exec(`insert into bookings values ($1, 5, 4, 3)`, d.ID) // a webhook booking whose sender is gone
	g.Exec(`update channel_settings set paused = true where channel = 1`)
	g.Exec(`insert into dead_messages (message_id, topic, handler, reason, payload) values ('a', 't', 'h', 'r', '\x00ff')`)
	b.Get("/").Is(200).Has("“Moon cake night”: Webhook has no sender; reminders reserved on it: 3", "E-mail is paused", "1 message is stuck").
		Has("1 message is stuck “Moon cake night”: Webhook has no sender").HasNot("All is well") // failures come first
	g.As(staff.Viewer).Get("/").Is(200).HasNot("is stuck")
	b.Get("/").Is(200).HasNot("a decision")
	g.Exec(`insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, 'f', 7, now(), now(), 's')`)
	g.Exec(`insert into bookings values ($1, 3, 0, 500)`, d.ID)
	b.Get("/").Is(200).Has("7 failed messages of other drops, campaigns or notices await a decision", "Reminders due by the hour: at most")
	g.As(staff.Viewer, 10).Get("/").Is(200).HasNot("a decision")
	g.Wait(26 * time.Minute)
	b.Get("/").Is(200).Has("“Moon cake night”: the reminders 5 minutes before have not started")
	g.Wait(10 * time.Minute)
	g.Exec(`update templates set opens_at = opens_at - interval '31 minutes'`) // the store goes by its own clock
	b.Get("/").Is(200).Has("Open", "Left")
}

// The first page names the work that waits for the member: campaigns to approve, but not the
// member's own, alerts that are not read, and drops that open soon with the built-in text.
func TestOverviewNamesTheWorkThatWaits(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	asker, other := g.As(staff.Marketer), g.As(staff.Marketer)
	page := asker.Do("POST", "/campaigns", consoletest.CampaignForm("name", "Spring tea")).Is(http.StatusSeeOther).Header.Get("Location")
	asker.Get(page + "/publish").Is(200)
	asker.Post(page+"/publish", asker.Publishing(page)).To(page)
	other.Get("/").Is(200).Has("For your information", "Approve “Spring tea”: to", "All is well.", "“"+d.Name+"” opens soon and has no text of its own", fmt.Sprintf(`href="/templates/%d/message"`, d.ID))
	asker.Get("/").Is(200).HasNot("Approve “Spring tea”")
	for _, b := range []*consoletest.Browser{g.As(staff.Viewer), g.As(staff.Marketer, 11)} {
		b.Get("/").Is(200).HasNot("Approve “Spring tea”", "has no text of its own")
	}
	g.Exec(`insert into alerts (kind, key, shop_number, template_id, name, count, path) values ('balance', 'balance:1', 10, $1, 'Moon', 3, '/templates/1/balance')`, d.ID)
	other.Get("/").Is(200).Has(`href="/templates/1/balance"`)
	other.Get("/alerts").Is(200)
	other.Get("/").Is(200).HasNot(`href="/templates/1/balance"`)
}

// Days are days in the zone of the chosen shop: on the page, in the file and for bulk steps. The
// page names the zone.
func TestDaysOfTheTemplatesListAreTheShops(t *testing.T) {
	g := consoletest.New(t) // Shanghai is the console's zone
	g.Exec(`insert into shops (number, name, timezone) values (10, 'Shop 10', 'Europe/Berlin'), (11, 'Shop 11', 'America/New_York')
		on conflict (number) do update set name = excluded.name, timezone = excluded.timezone`)
	inBerlin, inShanghai := g.Draft(10, 24*time.Hour), g.Draft(10, 24*time.Hour)
	g.Exec(`update templates set name = 'In Berlin', opens_at = '2055-03-10T16:30:00Z', closes_at = '2055-03-12T00:00:00Z' where id = $1`, inBerlin.ID)     // the 10th in Berlin, the 11th in Shanghai
	g.Exec(`update templates set name = 'In Shanghai', opens_at = '2055-03-09T16:30:00Z', closes_at = '2055-03-12T00:00:00Z' where id = $1`, inShanghai.ID) // the 9th in Berlin, the 10th in Shanghai
	b, day := g.As(staff.Admin), "/templates?from=2055-03-10&to=2055-03-10"
	b.Get(day).Is(200).Has(">In Shanghai<", "Dates are in Beijing time. With a shop chosen, they are in the time zone of the shop.").HasNot(">In Berlin<")
	b.Get(day+"&shop=10").Is(200).Has(">In Berlin<", "Dates are in the time zone of Shop 10: Berlin time").HasNot(">In Shanghai<")
	b.Get(strings.Replace(day, "?", ".csv?", 1) + "&shop=10").Is(200).Has("In Berlin").HasNot("In Shanghai")
	b.Get(day + "&shop=77").Is(200).Has("Dates are in Beijing time.")
	third := g.Draft(10, 24*time.Hour)
	g.Exec(`update templates set opens_at = '2055-03-10T16:30:00Z', closes_at = '2055-03-12T00:00:00Z' where id = $1`, third.ID)
	b.Get("/templates/bulk?step=cancel&all=1&shop=10&from=2055-03-10&to=2055-03-10").Is(200).Has("Cancel 2 drops")
	part := g.As(staff.Viewer, 10).Htmx()
	part.Get(day).Is(200).Has(`<hx-partial hx-target="#days-of">Dates are in the time zone of Shop 10: Berlin time`, ">In Berlin<").HasNot("<html")
}

// The review of a published template shows the effect of saving on its reminders.
func TestReviewOfAPublishedTemplate(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60, 5)
	b := g.As(staff.Marketer)
	page := b.Get(shell.TemplateURL(d.ID) + "/edit").Is(200).Has("so changes take effect at once").HasNot("Customers see it only after")
	form := url.Values{"template": {page.Field("template")}, "version": {page.Field("version")}}
	for name, value := range drops.ValuesOf(d) {
		form.Set(name, value)
	}
	b.Post("/templates/preview", form).Is(200).HasNot("This moves the opening")
	opens, _ := shell.TypedTime(g.Now().Add(30*time.Minute), consoletest.Berlin(t))
	form.Set("opens_at", opens)
	b.Post("/templates/preview", form).Is(200).Has("This moves the opening", "2 reminders are reserved", "1 reminder would be in the past: it is sent at once", "are reminded again")
	g.As(staff.Marketer, 11).Post("/templates/preview", form).Is(200).HasNot("2 reminders are reserved")
	b.Get("/templates/new").Is(200).Has("Customers see it only after it is published.")
}

// A step that the state does not allow has no confirmation.
func TestImpossibleStepsOfADrop(t *testing.T) {
	g := consoletest.New(t)
	page := shell.TemplateURL(g.Published(10, time.Hour).ID)
	b, refused := g.Refusing(page)
	refused("resume", "“Moon cake night” cannot be resumed", "The drop is published and has not opened yet. It can be edited, paused, closed or cancelled.")
	refused("publish", "cannot be published", "has not opened yet")
	b.Post(page+"/pause", nil).To(page)
	refused("pause", "cannot be paused", "The drop is paused. It can be edited, resumed or closed.")
	g.Wait(70 * time.Minute)
	refused("cancel", "cannot be cancelled", "The drop has opened: it can no longer be cancelled. Close it instead.")
	b.Post(page+"/cancel", nil).Is(http.StatusConflict).Has("Close it instead.").HasNot(`name="reason"`)
	b.Post(page+"/close", nil).To(page)
	for _, step := range []string{"pause", "resume", "cancel", "close", "publish"} {
		refused(step, "cannot be", "The drop is closed and can no longer be changed.")
	}
	b.Header.Set("Accept-Language", "zh-CN")
	refused("pause", "「Moon cake night」不能暂停", "抢券活动已结束，不能再更改。")
}

// nextDay is the time of day of an opening in Berlin, on the day after now.
func nextDay(t *testing.T, opened, now time.Time) string {
	zone := consoletest.Berlin(t)
	o, n := opened.In(zone), now.In(zone)
	return time.Date(n.Year(), n.Month(), n.Day()+1, o.Hour(), o.Minute(), 0, 0, zone).Format("2006-01-02T15:04")
}
