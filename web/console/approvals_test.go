package console

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// TestFourEyesWithoutScripts asks, refuses, changes, asks again, changes under
// the approver's eyes, and approves, all by plain forms.
func TestFourEyesWithoutScripts(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id) select generate_series(1, 20)`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, ada := g.as(staff.Marketer), g.as(staff.Marketer)
	a := li.do("POST", "/campaigns", campaignForm())
	page := a.header.Get("Location")
	if a.status != http.StatusSeeOther {
		t.Fatalf("created: %d %s", a.status, a.text())
	}
	li.get(page + "/approval").is(200).has("No approval requested")
	li.get(page + "/publish").is(200).has("More than 5 recipients need approval")
	asked := li.publishing(page)
	asked.Set("reason", "spring is near")
	li.post(page+"/publish", asked).to(page)
	li.get(page).is(200).has("now waits for approval", page+"/approval", "Awaits approval").hasNot(`href="` + page + `/publish"`)
	// Nobody approves what they have not seen.
	ada.get(page + "/publish").to(page + "/approval")
	ada.post(page+"/publish", url.Values{}).to(page + "/approval")
	li.get(page+"/approval").is(200).has("spring is near", "20 people", "Somebody else decides").hasNot("Approve and publish")
	seen := ada.get(page+"/approval").is(200).has("spring is near", "20 people", "What goes out", "Spring &lt;b&gt;", "Come", "Approval has not been requested before.", "as of")
	request := seen.field("request")
	g.as(staff.Viewer).get(page + "/approval").is(200).hasNot(`name="request"`)
	g.as(staff.Viewer).post(page+"/approve", url.Values{"request": {request}}).is(http.StatusForbidden)
	li.post(page+"/approve", url.Values{"request": {request}}).is(http.StatusConflict).has("Somebody else must publish it.")
	ada.post(page+"/refuse", url.Values{"request": {request}}).is(http.StatusUnprocessableEntity).has("is required")
	ada.post(page+"/refuse", url.Values{"request": {request}, "reason": {"not in Chinese"}}).to(page)
	li.get(page).is(200).has("has refused to approve it", "not in Chinese")
	li.post(page+"/edit", campaignForm("version", "3", "title_zh", "你好", "body_zh", "来")).to(page)
	li.post(page+"/ask", url.Values{"reason": {"now in Chinese"}}).to(page)
	again := ada.get(page+"/approval").is(200).has("now in Chinese", "Title (zh-CN)", "<ins>你好</ins>", "2 fields have changed.")
	request = again.field("request")
	// It is changed while Ada looks at it.
	li.post(page+"/edit", campaignForm("version", "5", "body", "Come and pay nothing")).to(page)
	ada.post(page+"/approve", url.Values{"request": {request}, "reason": {"fine"}}).is(http.StatusConflict).
		has("has changed since approval was requested", "<ins> and pay nothing</ins>", "Lapsed", "Let the others ask")
	ada.get(page).is(200).has("Draft")
	li.post(page+"/ask", url.Values{}).to(page)
	request = ada.get(page + "/approval").is(200).field("request")
	for _, odd := range []string{"", "x", "-1", "999999", "99999999999999999999"} {
		ada.post(page+"/approve", url.Values{"request": {odd}}).is(http.StatusConflict)
	}
	ada.post(page+"/approve", url.Values{"request": {request}, "reason": {"fine now"}}).to(page)
	ada.get(page).is(200).has("Scheduled", "Approved by")
	ada.get(page+"/approval").is(200).has("Approved", "fine now").hasNot(`name="request"`)
	ada.post(page+"/approve", url.Values{"request": {request}}).is(http.StatusConflict)
	ada.get("/audit?kind=campaign").is(200).has("approved", "refused to approve", "not in Chinese", "fine now")
}

// The page says by which version of its segment a campaign is sent.
func TestCampaignShowsItsRule(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	g.exec(`insert into users (id, locale) select i, 'fr' from generate_series(1, 20) i`)
	g.exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Readers of French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x')`)
	a := b.do("POST", "/campaigns", campaignForm("audience", "segment_id:41"))
	page := a.header.Get("Location")
	b.get(page).is(200).has("Readers of French", "Version 1 (current).", "/segments/41", "fr")
	b.post(page+"/publish", b.publishing(page)).to(page)
	b.get(page).is(200).has("Version 1, fixed at publication.")
	g.exec(`update segments set version = 2, rule = '{"all":[{"field":"locale","op":"is","values":["en"]}]}' where version = 1`)
	b.get(page).is(200).has("fixed at publication. The segment is now at version").hasNot("Version 2")
}

// The enter key in the field for the reason decides nothing; either button does.
func TestEnterDecidesNothingInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id) select generate_series(1, 20)`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li := g.as(staff.Marketer)
	page := li.do("POST", "/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	li.post(page+"/ask", url.Values{"reason": {"spring"}}).to(page)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + page + "/approval")
	b.sees("form.card", "Approve and publish")
	b.fill("#f-reason", "well")
	evaluate[chromedp.Void](b, `document.querySelector("#f-reason").focus(), window.sent = 0, document.addEventListener("submit", () => window.sent++)`)
	b.types(kb.Enter)
	if evaluate[float64](b, `new Promise(done => setTimeout(() => done(window.sent), 300))`) != 0 {
		t.Error("the enter key sends the form")
	}
	if n := g.number(`select count(*) from campaign_requests where decided_at is not null`); n != 0 {
		t.Error("the enter key has decided")
	}
	b.accessible("approval")
	b.press("form.card", "Refuse")
	b.sees("body", "has refused to approve it")
}

// Once the limit is such that one person alone may send it, nobody has to wait
// for a second one.
func TestApprovalThatNobodyNeedsAnyMore(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id) select generate_series(1, 20)`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, viewer := g.as(staff.Marketer), g.as(staff.Viewer)
	page := li.do("POST", "/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	li.post(page+"/publish", li.publishing(page)).to(page)
	li.get(page + "/publish").to(page + "/approval")
	g.exec(`update campaign_limits set approval_above = 20`)
	li.get(page+"/approval").is(200).has("Approval is no longer needed", `href="`+page+`/publish"`).hasNot("Approve and publish", page+"/withdraw")
	viewer.get(page + "/approval").is(200).has("Approval is no longer needed").hasNot(page + "/publish")
	li.get(page + "/publish").is(200).has("It is sent to 20 people.").hasNot("need approval by a second person")
	li.post(page+"/publish", li.publishing(page)).to(page)
	li.get(page).is(200).has("Scheduled")
	if n := g.number(`select count(*) from campaign_requests where state = 'asked'`); n != 0 {
		t.Errorf("%d requests wait for a campaign that is published", n)
	}
}

// Whoever confirms a publication is asked again if the number above which a
// second person is wanted is not the one that the question was about.
func TestALimitThatChangesBehindTheQuestion(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id) select generate_series(1, 20)`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 100)`)
	li, ada := g.as(staff.Marketer), g.as(staff.Marketer)
	page := li.do("POST", "/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	drafts := func(what string) {
		t.Helper()
		if n := g.number(`select count(*) from campaigns where state = 'draft'`); n != 1 || g.number(`select count(*) from campaign_requests where state = 'asked'`) != 0 {
			t.Errorf("%s: the step was taken", what)
		}
	}
	form := li.publishing(page)
	g.exec(`update campaign_limits set approval_above = 5`)
	again := li.post(page+"/publish", form).is(http.StatusUnprocessableEntity).has("Maximum recipients without approval: was changed to 5", "More than 5 recipients need approval")
	drafts("lowered")
	// The other way round: a colleague was to look, and nobody would any more.
	form = url.Values{"version": {again.field("version")}, "alone_up_to": {again.field("alone_up_to")}}
	g.exec(`update campaign_limits set approval_above = 0`)
	li.post(page+"/publish", form).is(http.StatusUnprocessableEntity).has("was lifted since this page was loaded").hasNot("need approval by a second person")
	drafts("lifted")
	form.Del("alone_up_to")
	li.post(page+"/publish", form).is(http.StatusConflict)
	drafts("not shown")
	// A question about sending alone is no consent to what somebody asked for.
	g.exec(`update campaign_limits set approval_above = 5`)
	li.post(page+"/publish", li.publishing(page)).to(page)
	g.exec(`update campaign_limits set approval_above = 100`)
	form = ada.publishing(page)
	g.exec(`update campaign_limits set approval_above = 6`)
	ada.post(page+"/publish", form).to(page + "/approval")
	version, err := strconv.ParseInt(form.Get("version"), 10, 64)
	g.must(err)
	if _, err := g.Campaigns.Publish(g.Context(), staff.Actor{Label: "staff:77", Role: staff.Admin}, 1, version, 100, ""); shell.FieldsOf(err) == nil {
		t.Errorf("published with a number that is no longer: %v", err)
	}
	if n := g.number(`select count(*) from campaigns where state = 'draft' and approval_asked_at is not null`); n != 1 {
		t.Error("the campaign was published without consent")
	}
	g.exec(`update campaign_limits set approval_above = 100`)
	ada.post(page+"/publish", ada.publishing(page)).to(page)
	ada.get(page).is(200).has("Scheduled")
}

// publishing is the form that the question before a publication sends.
func (b *browser) publishing(page string) url.Values {
	b.Helper()
	q := b.get(page + "/publish").is(200)
	return url.Values{"version": {q.field("version")}, "alone_up_to": {q.field("alone_up_to")}}
}

// Where only two people send campaigns, neither can come to a state in which
// nobody may approve one.
func TestTwoPeopleCanAlwaysApprove(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, locale) select i, 'fr' from generate_series(1, 20) i`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	g.exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Readers of French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x')`)
	li, ada := g.as(staff.Marketer), g.as(staff.Marketer)
	page := li.do("POST", "/campaigns", campaignForm("audience", "segment_id:41")).is(http.StatusSeeOther).header.Get("Location")
	li.get(page + "/publish").is(200).hasNot("neither of you can approve it")
	ada.get(page + "/publish").is(200).has("neither of you can approve it")
	// Ada asks for what Li wrote, and finds that nobody is left.
	ada.post(page+"/publish", ada.publishing(page)).to(page)
	li.get(page+"/approval").is(200).has("Somebody else decides", page+"/withdraw")
	request := ada.get(page+"/approval").is(200).has("Somebody else decides", "Withdraw the request").field("request")
	ada.post(page+"/withdraw", url.Values{"request": {"999"}}).is(http.StatusConflict)
	ada.post(page+"/withdraw", url.Values{"request": {request}, "reason": {"Li shall ask"}}).to(page)
	ada.get(page).is(200).has("is withdrawn", `href="`+page+`/publish"`)
	ada.post(page+"/withdraw", url.Values{"request": {request}}).is(http.StatusConflict)
	li.post(page+"/publish", li.publishing(page)).to(page)
	request = ada.get(page + "/approval").is(200).has("Approve and publish").hasNot(page + "/withdraw").field("request")
	ada.post(page+"/withdraw", url.Values{"request": {request}}).is(http.StatusForbidden)
	// The rule changes: it is for Li to ask again, not for Ada, who could approve.
	g.exec(`update segments set version = 2, rule = '{"all":[]}' where id = 41`)
	ada.get(page+"/approval").is(200).has("Lapsed", "Let the others ask").hasNot(`action="` + page + `/ask"`)
	ada.post(page+"/ask", url.Values{}).is(http.StatusConflict).has("Let the others ask")
	li.get(page + "/approval").is(200).has(`action="` + page + `/ask"`).hasNot("Let the others ask")
	li.post(page+"/ask", url.Values{}).to(page)
	request = ada.get(page + "/approval").is(200).field("request")
	ada.post(page+"/refuse", url.Values{"request": {request}, "reason": {"not yet"}}).to(page)
	ada.get(page+"/approval").is(200).has("Refused", "Let the others ask").hasNot(`action="` + page + `/ask"`)
	li.post(page+"/ask", url.Values{}).to(page)
	request = ada.get(page + "/approval").is(200).field("request")
	ada.post(page+"/approve", url.Values{"request": {request}}).to(page)
	ada.get(page).is(200).has("Scheduled", "Approved by")
	ada.get("/audit?kind=campaign").is(200).has("withdrew the request for approval of", "Li shall ask")
}

// A campaign whose end has passed while it waited invites nobody to decide.
func TestTooLateToApprove(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id) select generate_series(1, 20)`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, ada := g.as(staff.Marketer), g.as(staff.Marketer)
	page := li.do("POST", "/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	li.post(page+"/publish", li.publishing(page)).to(page)
	request := ada.get(page + "/approval").is(200).field("request")
	for _, table := range []string{"campaigns", "campaign_requests"} {
		g.exec(`update ` + table + ` set starts_at = '2026-01-01', ends_at = '2026-01-02'`)
	}
	for _, b := range []*browser{li, ada} {
		b.get(page).is(200).has("The campaign’s end has passed")
		b.get(page+"/approval").is(200).has("The campaign’s end has passed", page+"/edit", page+"/cancel").
			hasNot(`name="request"`, "Approve and publish", `action="`+page+`/ask"`)
	}
	g.as(staff.Viewer).get(page + "/approval").is(200).has("The campaign’s end has passed").hasNot(page + "/edit")
	ada.post(page+"/approve", url.Values{"request": {request}}).is(http.StatusUnprocessableEntity).has("must lie in the future")
}
