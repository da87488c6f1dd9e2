package console

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
	"dropbell/web/console/shell"
)

func berlin(t *testing.T) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// typedForm is a form that can be saved.
func (g *rig) typedForm(opensIn time.Duration) url.Values {
	opens := g.now().Add(opensIn).Truncate(time.Minute)
	f := url.Values{}
	for k, v := range map[string]string{"name": "Moon cake night", "shop_number": "10", "description": "Line one\r\nLine two", "kind": "threshold_off",
		"amount_off": "20.50", "threshold": "1,000", "max_off": "left over", "percent_off": "nonsense", "currency": "cny", "target": "shop", "product": "left over",
		"validity": "hours", "valid_hours": "72", "stock": "50,000", "per_user_limit": "1", "obtain": "claim", "claim_mode": "durable",
		"claim_url": "https://shop.example/claim"} {
		f.Set(k, v)
	}
	f.Set("opens_at", opens.In(berlin(g.T)).Format("2006-01-02T15:04"))
	f.Set("closes_at", opens.Add(4*time.Hour).In(berlin(g.T)).Format("2006-01-02T15:04"))
	return f
}

func TestCreateTemplate(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.get("/templates/new").is(200).has("Create a shop first")
	g.shop(10)
	form := g.typedForm(48 * time.Hour)
	form.Set("request_key", b.get("/templates/new").is(200).field("request_key"))
	b.post("/templates", form).to("/templates/1")
	b.post("/templates", form).to("/templates/1") // sent twice by an impatient finger
	b.get("/templates/1").is(200).has("Moon cake night", "Draft", "CN¥20.50 off from CN¥1,000", "50,000", "The draft of “Moon cake night” has been saved.")
	b.get("/templates/1").is(200).hasNot("has been saved") // a flash is seen once
	got, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.must(err)
	if got.AmountOff != 2050 || got.Threshold != 100000 || got.MaxOff != 0 || got.Product != "" || got.Description != "Line one\nLine two" || got.Currency != "CNY" {
		t.Errorf("stored %+v", got.Spec)
	}
	other := g.as(staff.Marketer)
	a := other.post("/templates", form).is(http.StatusSeeOther) // another person's form is another template
	if a.header.Get("Location") == "/templates/1" {
		t.Error("a form opened somebody else's template")
	}
}

func TestNothingTypedIsLost(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := g.as(staff.Marketer)
	form := g.typedForm(48 * time.Hour)
	for k, v := range map[string]string{"name": "", "amount_off": "12.345", "threshold": "x", "stock": "-1", "per_user_limit": "0", "currency": "C",
		"closes_at": "2026-03-29T02:30", "opens_at": "2026-10-25T02:30", "claim_url": "javascript:alert(1)", "description": `"><script>alert(1)</script>`} {
		form.Set(k, v)
	}
	a := b.post("/templates", form).is(http.StatusUnprocessableEntity)
	a.has("is required", "must be a number such as 10 or 10.50, with at most 2 decimals", "must be between 1 and 1,000", "must be three letters such as CNY",
		"does not exist that day", "happens twice that day", "This time happens twice that night", "must be an http or https address",
		`value="12.345"`, `value="x"`, `value="-1"`, `value="2026-03-29T02:30"`, `value="2026-10-25T02:30"`, `value="javascript:alert(1)"`, `name="opens_at_fold"`, "&lt;script&gt;")
	a.hasNot("<script>alert")
	form = g.typedForm(48 * time.Hour)
	form.Set("opens_at", "2027-10-31T02:30")
	form.Set("closes_at", "2027-11-01T02:30")
	form.Set("opens_at_fold", "second")
	b.post("/templates", form).to("/templates/1")
	got, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.must(err)
	if want := "2027-10-31T01:30:00Z"; got.OpensAt.UTC().Format(time.RFC3339) != want {
		t.Errorf("opens at %s, want %s", got.OpensAt.UTC(), want)
	}
	b.get("/templates/1/edit").is(200).has(`value="2027-10-31T02:30"`, `value="second" checked`)
}

func TestPreview(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := g.as(staff.Marketer)
	form := g.typedForm(30 * time.Minute)
	a := b.post("/templates/preview", form).is(200)
	a.has("CN¥20.50 off", "Shop 10", "(in ", "slots are already past", "Valid for 3 days").hasNot("<html")
	b.post("/templates/preview", nil).is(200).has("Unnamed coupon")
}

func TestLifeOfADrop(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 2*time.Hour)
	b := g.as(staff.Marketer)
	page := templateURL(d.ID)
	for _, step := range []string{"publish", "pause", "resume"} {
		asked := b.get(page+"/"+step).is(200).has("Reason", "Cancel")
		b.post(page+"/"+step, url.Values{"reason": {"because of " + step}, "version": {asked.field("version")}}).to(page)
	}
	b.get(page).is(200).has("Scheduled", "because of pause", "Reminders by slot and channel")
	b.post(page+"/resume", nil).is(http.StatusConflict).has("The template is published and has not opened yet.")
	b.post(page+"/publish", nil).to(page) // sent once more: it is published
	g.book(d, 1001, delivery.App, 5, 60)
	g.book(d, 1002, delivery.Email, 5)
	b.get(page + "/cancel").is(200).has("The 3 waiting reminders are not sent")
	b.get(page + "/close").is(200).has("The 3 waiting reminders are not sent")
	b.post(page+"/cancel", url.Values{"reason": {strings.Repeat("长", 5000)}}).to(page)
	b.get(page).is(200).has("Cancelled", "“Moon cake night” is cancelled.", "Use as a model").hasNot(page+"/publish", page+"/pause\"")
	for _, path := range []string{"/edit", "/move", "/stock"} {
		b.get(page + path).is(http.StatusConflict)
	}
	b.get("/templates/new?from=1").is(200).has(`value="Moon cake night"`, `name="opens_at" type="datetime-local" value=""`)
	b.get(page + "/explode").is(http.StatusNotFound)
	b.get("/templates/01").is(http.StatusNotFound)
	b.get("/templates/99").is(http.StatusNotFound).has("There is no such template.")
	b.get("/templates/99999999999999999999").is(http.StatusNotFound)
}

// TestPublishingWhatNobodySaw: a draft that was changed after somebody had
// asked to publish it is shown again first.
func TestPublishingWhatNobodySaw(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 2*time.Hour)
	b := g.as(staff.Marketer)
	page := templateURL(d.ID)
	seen := b.get(page + "/publish").is(200).has("a stock of 100.").field("version")
	changed := d.Spec
	changed.Stock = 9999
	if _, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: d.Version, Spec: changed}); err != nil {
		t.Fatal(err)
	}
	for _, old := range []url.Values{{"version": {seen}}, nil} {
		again := b.post(page+"/publish", old).is(http.StatusConflict).has("Somebody changed this in the meantime", "a stock of 9,999.")
		seen = again.field("version")
	}
	b.get(page).is(200).has("Draft")
	b.post(page+"/publish", url.Values{"version": {seen}}).to(page)
	b.post(page+"/publish", url.Values{"version": {seen}}).to(page) // the other half of a double click
	b.get(page).is(200).has("Scheduled")
}

func TestPublishInThePastIsExplained(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, time.Hour)
	g.wait(90 * time.Minute)
	b := g.as(staff.Marketer)
	asked := b.get(templateURL(d.ID) + "/publish").is(200).has("12 of 12 reminder slots are already past")
	b.post(templateURL(d.ID)+"/publish", url.Values{"version": {asked.field("version")}}).is(http.StatusUnprocessableEntity).has("Opening: must lie in the future")
}

func TestMove(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 5, 60)
	g.book(d, 1002, delivery.Email, 60)
	b := g.as(staff.Marketer)
	page := templateURL(d.ID) + "/move"
	typed := func(in time.Duration) string {
		text, _ := shell.TypedTime(g.now().Add(in).Truncate(time.Minute), berlin(t))
		return text
	}
	form := b.get(page).is(200).has("Move the opening of", "Enter the new opening").body
	version := answer{T: t, body: form}.field("version")
	b.get(page+"?follow=1&opens_at="+typed(30*time.Minute)).is(200).has("3 reminders are booked", "Nobody has been reminded", "2 reminders would be in the past", "earlier than now planned")
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	b.get(page+"?part=blast&opens_at="+typed(6*time.Hour)).is(200).has("All waiting reminders are still in the future", "later than now planned").hasNot("<form")
	b.header = http.Header{}
	b.post(page, url.Values{"version": {version}, "opens_at": {typed(-time.Hour)}}).is(422).has("must lie in the future")
	b.post(page, url.Values{"version": {version}, "opens_at": {typed(8 * time.Hour)}}).is(422).has("Closing: must be after the opening")
	b.post(page, url.Values{"version": {version}, "opens_at": {typed(-time.Hour)}, "reason": {"late truck"}}).is(422).has(`value="late truck"`)
	b.post(page, url.Values{"version": {version}, "opens_at": {typed(8 * time.Hour)}, "follow": {"1"}, "reason": {"late truck"}}).to(templateURL(d.ID))
	b.get(templateURL(d.ID)).is(200).has("late truck")
	b.post(page, url.Values{"version": {version}, "opens_at": {typed(9 * time.Hour)}, "follow": {"1"}}).is(http.StatusConflict).has("Somebody changed this")
	got, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.must(err)
	if shift := got.OpensAt.Sub(d.OpensAt).Round(time.Hour); shift != 3*time.Hour || got.ClosesAt.Sub(got.OpensAt) != d.ClosesAt.Sub(d.OpensAt) {
		t.Errorf("opening moved by %v, window %v", shift, got.ClosesAt.Sub(got.OpensAt))
	}
	again, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: got.Version, Spec: got.Spec})
	g.must(err)
	b.get(page + "?remind_once=1&opens_at=" + typed(10*time.Hour)).is(200).has(`name="remind_once" value="1" checked`)
	b.post(page, url.Values{"version": {strconv.FormatInt(again.Version, 10)}, "opens_at": {typed(10 * time.Hour)}, "follow": {"1"}, "remind_once": {"1"}}).to(templateURL(d.ID))
	if got, err = g.Templates.Template(t.Context(), staff.System(), d.ID); err != nil || !got.RemindOnce {
		t.Errorf("%+v %v", got, err)
	}
	g.wait(11 * time.Hour)
	b.get(page).is(http.StatusConflict)
}

func TestChangeStock(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Marketer)
	page := templateURL(d.ID) + "/stock"
	version := b.get(page).is(200).has("Now 100, of which 0 are issued").field("version")
	g.exec(`update templates set issued = 3 where id = $1`, d.ID)
	b.post(page, url.Values{"version": {version}, "stock": {"2"}}).is(http.StatusConflict).has("Stock cannot be lower than the number issued", `value="2"`)
	b.post(page, url.Values{"version": {version}, "stock": {"many"}}).is(422).has("must be a whole number")
	b.post(page, url.Values{"version": {version}, "stock": {"99999999999999"}}).is(422)
	b.post(page, url.Values{"version": {version}, "stock": {"1,500"}}).to(templateURL(d.ID))
	b.get(templateURL(d.ID)).is(200).has("1,500")
}

func TestStaleForm(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 48*time.Hour)
	mine, theirs := g.as(staff.Marketer), g.as(staff.Marketer)
	page := templateURL(d.ID) + "/edit"
	version := mine.get(page).is(200).field("version")
	form := g.typedForm(48 * time.Hour)
	form.Set("version", version)
	form.Set("name", "Theirs")
	form.Set("stock", "7")
	theirs.post(page, form).to(templateURL(d.ID))
	form.Set("name", "Mine")
	form.Set("stock", "9")
	a := mine.post(page, form).is(http.StatusConflict).has("Somebody was faster", "The marketer changed this", "Theirs", "Mine", "Take mine", "Take theirs")
	again := url.Values{}
	for k := range form {
		again.Set(k, form.Get(k))
	}
	again.Set("version", a.field("version"))
	keep := url.Values{"again": {"1"}}
	for k, v := range again {
		keep[k] = v
	}
	mine.post(page, keep).is(200).has(`value="Mine"`)
	mine.post(page, again).to(templateURL(d.ID))
	got, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.must(err)
	if got.Name != "Mine" || got.Stock != 9 {
		t.Errorf("stored %q %d", got.Name, got.Stock)
	}
}

func TestEditPublished(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 48*time.Hour)
	b := g.as(staff.Marketer)
	page := templateURL(d.ID) + "/edit"
	form := url.Values{}
	for k, v := range valuesOf(d) {
		form.Set(k, v)
	}
	form.Set("version", b.get(page).is(200).has("This template is published").field("version"))
	form.Set("amount_off", "99")
	form.Set("stock", "5")
	b.post(page, form).is(422).has("cannot change once the template is published")
	form.Set("amount_off", "10")
	g.exec(`update templates set issued = 6 where id = $1`, d.ID)
	b.post(page, form).is(http.StatusConflict).has("Stock cannot be lower than the number issued")
	form.Set("stock", "500")
	form.Set("name", "New name")
	b.post(page, form).to(templateURL(d.ID))
	b.get(templateURL(d.ID)).is(200).has("New name", "“New name” has been saved.")
}

// Unsorted, what is ahead comes before what is over, and nothing is lost or
// shown twice between pages.
func TestListBeginsWithWhatIsAhead(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	named := func(name string, id int64) { g.exec(`update templates set name = $2 where id = $1`, id, name) }
	for i := range 12 {
		named(fmt.Sprintf("Ahead %02d", i), g.published(10, time.Duration(i+1)*time.Hour).ID)
		named(fmt.Sprintf("Idea %02d", i), g.draft(10, time.Duration(i+1)*time.Hour).ID)
	}
	for i := range 12 {
		over := g.published(10, time.Duration(i+1)*time.Hour).ID
		named(fmt.Sprintf("Over %02d", i), over)
		g.exec(`update templates set opens_at = opens_at - interval '90 days', closes_at = closes_at - interval '90 days', state = 'closed' where id = $1`, over)
		old := g.draft(10, time.Duration(i+1)*time.Hour).ID
		named(fmt.Sprintf("Stale %02d", i), old)
		g.exec(`update templates set opens_at = opens_at - interval '90 days', closes_at = closes_at - interval '90 days' where id = $1`, old)
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
		a := b.get(page).is(200)
		for _, m := range regexp.MustCompile(`class="row-link"[^>]*>([^<]+)<`).FindAllStringSubmatch(a.body, -1) {
			got = append(got, m[1])
		}
		page = ""
		for _, m := range regexp.MustCompile(`href="(/templates\?after=[^"]+)"`).FindAllStringSubmatch(a.body, -1) {
			page = html.UnescapeString(m[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages list\n%q, want\n%q", got, want)
	}
	b.get("/templates?state=closed&state=draft").is(200).has("Idea 00", "Over 11").hasNot("Ahead")
	if body := b.get("/templates?sort=soonest").is(200).body; !strings.Contains(body, "Stale 00") || strings.Contains(body, "Idea 00") {
		t.Error("the earliest opening is not first although that was asked for")
	}
}

func TestListOfTemplates(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	b.get("/templates").is(200).has("No templates yet").hasNot("/templates/new")
	g.shop(10)
	for i := range shell.PageSize + 3 {
		s := g.spec(10, time.Duration(i+1)*time.Hour)
		s.Name = fmt.Sprintf("Drop %02d 100%%", i)
		_, err := g.Templates.Create(t.Context(), staff.System(), s, "")
		g.must(err)
	}
	a := b.get("/templates").is(200).has("Drop 00", "Drop 24").hasNot("Drop 25")
	next := strings.ReplaceAll(between(a.body, `<nav class="pager"`, `</nav>`), "&amp;", "&")
	b.get(between(next, `href="`, `"`)).is(200).has("Drop 25", "Drop 27", "First page").hasNot("Drop 24")
	b.get("/templates?sort=latest").is(200).has("Drop 27").hasNot("Drop 02")
	b.get("/templates?q=drop+03").is(200).has("Drop 03").hasNot("Drop 04")
	b.get("/templates?q=100%25").is(200).has("Drop 00")
	b.get("/templates?q=100_").is(200).has("No matches")
	b.get("/templates?state=open").is(200).has("No matches")
	b.get("/templates?state=draft&shop=10&from=2026-01-01&to=2099-01-01").is(200).has("Drop 00")
	b.get("/templates?after=x_y&after=99999999999999999999_1").is(200).has("Drop 00")
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	b.get("/templates?q=drop+03").is(200).has("Drop 03").hasNot("<html", "Sign out")
	b.header.Set("HX-History-Restore-Request", "true")
	b.get("/templates?q=drop+03").is(200).has("<html")
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

func TestOverview(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	b.get("/").is(200).has("Welcome to Dropbell")
	d := g.published(10, 30*time.Minute)
	g.book(d, 1001, delivery.App, 5)
	g.book(d, 1002, delivery.App, 5)
	b.get("/").is(200).has("Moon cake night", "Opens in", "All is well.", "Reminders booked 2")
	g.exec(`insert into bookings values ($1, 5, 4, 3)`, d.ID) // a webhook booking whose sender is gone
	g.exec(`update channel_settings set paused = true where channel = 1`)
	g.exec(`insert into dead_messages (message_id, topic, handler, reason, payload) values ('a', 't', 'h', 'r', '\x00ff')`)
	b.get("/").is(200).has("“Moon cake night”: Webhook has no sender, 3 reminders are booked on it", "E-mail is paused", "1 message is stuck").
		has("1 message is stuck “Moon cake night”: Webhook has no sender").hasNot("All is well") // what is broken comes first
	g.as(staff.Viewer).get("/").is(200).hasNot("is stuck")
	b.get("/").is(200).hasNot("wait for a decision")
	g.exec(`insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, 'f', 7, now(), now(), 's')`)
	g.exec(`insert into bookings values ($1, 3, 0, 500)`, d.ID)
	b.get("/").is(200).has("7 dead letters of other drops, campaigns or notices wait for a decision", "Reminders that fall due by the hour: at most")
	g.as(staff.Viewer, 10).get("/").is(200).hasNot("wait for a decision")
	g.wait(26 * time.Minute)
	b.get("/").is(200).has("“Moon cake night”: the slot 5 minutes before has not fired")
	g.wait(10 * time.Minute)
	g.exec(`update templates set opens_at = opens_at - interval '31 minutes'`) // the store goes by its own clock
	b.get("/").is(200).has("Open", "Left")
}

// Days are those of the shop that is chosen, on the page, in the file and for
// what is done with all of them; the page says whose they are.
func TestDaysOfTheTemplatesListAreTheShops(t *testing.T) {
	g := newRig(t) // Shanghai is the console's zone
	g.exec(`insert into shops (number, name, timezone) values (10, 'Shop 10', 'Europe/Berlin'), (11, 'Shop 11', 'America/New_York')
		on conflict (number) do update set name = excluded.name, timezone = excluded.timezone`)
	inBerlin, inShanghai := g.draft(10, 24*time.Hour), g.draft(10, 24*time.Hour)
	g.exec(`update templates set name = 'In Berlin', opens_at = '2027-03-10T16:30:00Z', closes_at = '2027-03-12T00:00:00Z' where id = $1`, inBerlin.ID)     // the 10th in Berlin, the 11th in Shanghai
	g.exec(`update templates set name = 'In Shanghai', opens_at = '2027-03-09T16:30:00Z', closes_at = '2027-03-12T00:00:00Z' where id = $1`, inShanghai.ID) // the 9th in Berlin, the 10th in Shanghai
	b, day := g.as(staff.Admin), "/templates?from=2027-03-10&to=2027-03-10"
	b.get(day).is(200).has(">In Shanghai<", "Days are those of Asia/Shanghai. With a shop chosen, its own zone counts.").hasNot(">In Berlin<")
	b.get(day+"&shop=10").is(200).has(">In Berlin<", "Days are those of Shop 10: Europe/Berlin.").hasNot(">In Shanghai<")
	b.get(strings.Replace(day, "?", ".csv?", 1) + "&shop=10").is(200).has("In Berlin").hasNot("In Shanghai")
	b.get(day + "&shop=77").is(200).has("Days are those of Asia/Shanghai.")
	third := g.draft(10, 24*time.Hour)
	g.exec(`update templates set opens_at = '2027-03-10T16:30:00Z', closes_at = '2027-03-12T00:00:00Z' where id = $1`, third.ID)
	b.get("/templates/bulk?step=cancel&all=1&shop=10&from=2027-03-10&to=2027-03-10").is(200).has("Cancel 2 templates")
	part := g.as(staff.Viewer, 10).htmx()
	part.get(day).is(200).has(`<hx-partial hx-target="#days-of">Days are those of Shop 10: Europe/Berlin.`, ">In Berlin<").hasNot("<html")
}
