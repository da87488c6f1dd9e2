package campaigns_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// TestFourEyesWithoutScripts requests approval, refuses, changes, requests again, changes while the
// approver's page is open, and approves, all with plain forms.
func TestFourEyesWithoutScripts(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, ada := g.As(staff.Marketer), g.As(staff.Marketer)
	a := li.Do("POST", "/campaigns", consoletest.CampaignForm())
	page := a.Header.Get("Location")
	if a.Status != http.StatusSeeOther {
		t.Fatalf("created: %d %s", a.Status, a.Text())
	}
	li.Get(page + "/approval").Is(200).Has("No approval requested")
	li.Get(page + "/publish").Is(200).Has("More than 5 recipients need approval")
	asked := li.Publishing(page)
	asked.Set("reason", "spring is near")
	li.Post(page+"/publish", asked).To(page)
	li.Get(page).Is(200).Has("now waits for approval", page+"/approval", "Awaits approval").HasNot(`href="` + page + `/publish"`)
	// Approving requires a form that shows the request.
	ada.Get(page + "/publish").To(page + "/approval")
	ada.Post(page+"/publish", url.Values{}).To(page + "/approval")
	li.Get(page+"/approval").Is(200).Has("spring is near", "20 people", "Another person decides").HasNot("Approve and publish")
	seen := ada.Get(page+"/approval").Is(200).Has("spring is near", "20 people", "Campaign", "Spring &lt;b&gt;", "Come", "Approval has not been requested before.", "as of")
	request := seen.Field("request")
	g.As(staff.Viewer).Get(page + "/approval").Is(200).HasNot(`name="request"`)
	g.As(staff.Viewer).Post(page+"/approve", url.Values{"request": {request}}).Is(http.StatusForbidden)
	li.Post(page+"/approve", url.Values{"request": {request}}).Is(http.StatusConflict).Has("Ask another member to approve it.")
	ada.Post(page+"/refuse", url.Values{"request": {request}}).Is(http.StatusUnprocessableEntity).Has("Say why")
	ada.Post(page+"/refuse", url.Values{"request": {request}, "reason": {"not in Chinese"}}).To(page)
	li.Get(page).Is(200).Has("has refused to approve it", "not in Chinese")
	li.Post(page+"/edit", consoletest.CampaignForm("version", "3", "l0_language", "zh-CN", "l0_title", "你好", "l0_body", "来")).To(page)
	li.Post(page+"/ask", url.Values{"reason": {"now in Chinese"}}).To(page)
	again := ada.Get(page+"/approval").Is(200).Has("now in Chinese", "Title (Chinese (China))", "<ins>你好</ins>", "2 fields have changed.")
	request = again.Field("request")
	// It is changed while Ada looks at it.
	li.Post(page+"/edit", consoletest.CampaignForm("version", "5", "body", "Come and pay nothing")).To(page)
	ada.Post(page+"/approve", url.Values{"request": {request}, "reason": {"fine"}}).Is(http.StatusConflict).
		Has("has changed since approval was requested", "<ins> and pay nothing</ins>", "Lapsed", "Ask another member to request approval")
	ada.Get(page).Is(200).Has("Draft")
	li.Post(page+"/ask", url.Values{}).To(page)
	request = ada.Get(page + "/approval").Is(200).Field("request")
	for _, odd := range []string{"", "x", "-1", "999999", "99999999999999999999"} {
		ada.Post(page+"/approve", url.Values{"request": {odd}}).Is(http.StatusConflict)
	}
	ada.Post(page+"/approve", url.Values{"request": {request}, "reason": {"fine now"}}).Is(http.StatusUnprocessableEntity).Has("type the number of customers", "Type 20 to send to all customers")
	ada.Post(page+"/approve", url.Values{"request": {request}, "reason": {"fine now"}, "reach_shown": {"20"}, "reach_typed": {"20"}}).To(page)
	ada.Get(page).Is(200).Has("Scheduled", "Approved by")
	ada.Get(page+"/approval").Is(200).Has("Approved", "fine now").HasNot(`name="request"`)
	ada.Post(page+"/approve", url.Values{"request": {request}}).Is(http.StatusConflict)
	ada.Get("/audit?kind=campaign").Is(200).Has("approved", "refused to approve", "not in Chinese", "fine now")
}

// The page says by which version of its segment a campaign is sent.
func TestCampaignShowsItsRule(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	g.Exec(`insert into users (id, locale) select i, 'fr' from generate_series(1, 20) i`)
	g.Exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Readers of French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x')`)
	a := b.Do("POST", "/campaigns", consoletest.CampaignForm("audience", "segment_id:41"))
	page := a.Header.Get("Location")
	b.Get(page).Is(200).Has("Readers of French", "Version 1 (current).", "/segments/41", "fr")
	b.Post(page+"/publish", b.Publishing(page)).To(page)
	b.Get(page).Is(200).Has("Version 1, fixed at publication.")
	g.Exec(`update segments set version = 2, rule = '{"all":[{"field":"locale","op":"is","values":["en"]}]}' where version = 1`)
	b.Get(page).Is(200).Has("fixed at publication. The segment is now at version").HasNot("Version 2")
}

// The enter key in the field for the reason decides nothing; either button does.
func TestEnterDecidesNothingInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li := g.As(staff.Marketer)
	page := li.Do("POST", "/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	li.Post(page+"/ask", url.Values{"reason": {"spring"}}).To(page)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + page + "/approval")
	b.Sees("form.card", "Approve and publish")
	b.Fill("#f-reason", "well")
	// A form that a key sends says so before the next key arrives.
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#f-reason").focus(), window.seen = [],
		["submit", "keydown"].forEach(name => document.addEventListener(name, e => window.seen.push(e.key ?? name), true))`)
	b.Types(kb.Enter + "!")
	b.Sees("body", "Approve and publish")
	if seen := consoletest.Evaluate[string](b, `window.seen.join(" ") + ", then " + document.querySelector("#f-reason").value`); seen != "Enter !, then well!" {
		t.Errorf("the enter key in the field: %s", seen)
	}
	if n := g.Number(`select count(*) from campaign_requests where decided_at is not null`); n != 0 {
		t.Error("the enter key has decided")
	}
	b.Accessible("approval")
	b.Press("form.card", "Refuse")
	b.Sees("body", "has refused to approve it")
}

// Once the limit is raised enough, a waiting campaign can be published without
// approval.
func TestApprovalThatNobodyNeedsAnyMore(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, viewer := g.As(staff.Marketer), g.As(staff.Viewer)
	page := li.Do("POST", "/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	li.Post(page+"/publish", li.Publishing(page)).To(page)
	li.Get(page + "/publish").To(page + "/approval")
	g.Exec(`update campaign_limits set approval_above = 20`)
	li.Get(page+"/approval").Is(200).Has("Approval is no longer needed", `href="`+page+`/publish"`).HasNot("Approve and publish", page+"/withdraw")
	viewer.Get(page + "/approval").Is(200).Has("Approval is no longer needed").HasNot(page + "/publish")
	li.Get(page + "/publish").Is(200).Has("It is sent to 20 people.").HasNot("need approval by a second person")
	li.Post(page+"/publish", li.Publishing(page)).To(page)
	li.Get(page).Is(200).Has("Scheduled")
	if n := g.Number(`select count(*) from campaign_requests where state = 'asked'`); n != 0 {
		t.Errorf("%d requests wait for a campaign that is published", n)
	}
}

// A confirmed publication asks for confirmation again if the number above which approval is
// required has changed since the confirmation page was shown.
func TestALimitThatChangesBehindTheQuestion(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 100)`)
	li, ada := g.As(staff.Marketer), g.As(staff.Marketer)
	page := li.Do("POST", "/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	drafts := func(what string) {
		t.Helper()
		if n := g.Number(`select count(*) from campaigns where state = 'draft'`); n != 1 || g.Number(`select count(*) from campaign_requests where state = 'asked'`) != 0 {
			t.Errorf("%s: the step was taken", what)
		}
	}
	form := li.Publishing(page)
	g.Exec(`update campaign_limits set approval_above = 5`)
	again := li.Post(page+"/publish", form).Is(http.StatusUnprocessableEntity).Has("Maximum recipients without approval: was changed to 5", "More than 5 recipients need approval")
	drafts("lowered")
	// The opposite case: approval was required, and is no longer required.
	form = again.Form(page + "/publish")
	g.Exec(`update campaign_limits set approval_above = 0`)
	li.Post(page+"/publish", form).Is(http.StatusUnprocessableEntity).Has("was lifted since this page was loaded").HasNot("need approval by a second person")
	drafts("lifted")
	form.Del("alone_up_to")
	li.Post(page+"/publish", form).Is(http.StatusConflict)
	drafts("not shown")
	// A confirmation that names no approval does not approve a request.
	g.Exec(`update campaign_limits set approval_above = 5`)
	li.Post(page+"/publish", li.Publishing(page)).To(page)
	g.Exec(`update campaign_limits set approval_above = 100`)
	form = ada.Publishing(page)
	g.Exec(`update campaign_limits set approval_above = 6`)
	ada.Post(page+"/publish", form).To(page + "/approval")
	version, err := strconv.ParseInt(form.Get("version"), 10, 64)
	g.Must(err)
	if _, err := g.Campaigns.Publish(g.Context(), staff.Actor{Label: "staff:77", Role: staff.Admin}, 1, version, 100, ""); shell.FieldsOf(err) == nil {
		t.Errorf("published with a number that is no longer: %v", err)
	}
	if n := g.Number(`select count(*) from campaigns where state = 'draft' and approval_asked_at is not null`); n != 1 {
		t.Error("the campaign was published without consent")
	}
	g.Exec(`update campaign_limits set approval_above = 100`)
	ada.Post(page+"/publish", ada.Publishing(page)).To(page)
	ada.Get(page).Is(200).Has("Scheduled")
}

// Where only two members send campaigns, no sequence leads to a campaign that neither member may
// approve.
func TestTwoPeopleCanAlwaysApprove(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, locale) select i, 'fr' from generate_series(1, 20) i`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	g.Exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Readers of French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x')`)
	li, ada := g.As(staff.Marketer), g.As(staff.Marketer)
	page := li.Do("POST", "/campaigns", consoletest.CampaignForm("audience", "segment_id:41")).Is(http.StatusSeeOther).Header.Get("Location")
	li.Get(page + "/publish").Is(200).HasNot("neither of you can approve it")
	ada.Get(page + "/publish").Is(200).Has("neither of you can approve it")
	// Ada requests approval of Li's campaign, and no approver is left.
	ada.Post(page+"/publish", ada.Publishing(page)).To(page)
	li.Get(page+"/approval").Is(200).Has("Another person decides", page+"/withdraw")
	request := ada.Get(page+"/approval").Is(200).Has("Another person decides", "Withdraw the request").Field("request")
	ada.Post(page+"/withdraw", url.Values{"request": {"999"}}).Is(http.StatusConflict)
	ada.Post(page+"/withdraw", url.Values{"request": {request}, "reason": {"Li shall ask"}}).To(page)
	ada.Get(page).Is(200).Has("is withdrawn", `href="`+page+`/publish"`)
	ada.Post(page+"/withdraw", url.Values{"request": {request}}).Is(http.StatusConflict)
	li.Post(page+"/publish", li.Publishing(page)).To(page)
	request = ada.Get(page + "/approval").Is(200).Has("Approve and publish").HasNot(page + "/withdraw").Field("request")
	ada.Post(page+"/withdraw", url.Values{"request": {request}}).Is(http.StatusForbidden)
	// The rule changes: Li has to request approval again, and not Ada, who could approve.
	g.Exec(`update segments set version = 2, rule = '{"all":[]}' where id = 41`)
	ada.Get(page+"/approval").Is(200).Has("Lapsed", "Ask another member to request approval").HasNot(`action="` + page + `/ask"`)
	ada.Post(page+"/ask", url.Values{}).Is(http.StatusConflict).Has("Ask another member to request approval")
	li.Get(page + "/approval").Is(200).Has(`action="` + page + `/ask"`).HasNot("Ask another member to request approval")
	li.Post(page+"/ask", url.Values{}).To(page)
	request = ada.Get(page + "/approval").Is(200).Field("request")
	ada.Post(page+"/refuse", url.Values{"request": {request}, "reason": {"not yet"}}).To(page)
	ada.Get(page+"/approval").Is(200).Has("Refused", "Ask another member to request approval").HasNot(`action="` + page + `/ask"`)
	li.Post(page+"/ask", url.Values{}).To(page)
	request = ada.Get(page + "/approval").Is(200).Field("request")
	ada.Post(page+"/approve", url.Values{"request": {request}}).To(page)
	ada.Get(page).Is(200).Has("Scheduled", "Approved by")
	ada.Get("/audit?kind=campaign").Is(200).Has("withdrew the request for approval of", "Li shall ask")
}

// A campaign whose end has passed while it waited offers no decision.
func TestTooLateToApprove(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id) select generate_series(1, 20)`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 5)`)
	li, ada := g.As(staff.Marketer), g.As(staff.Marketer)
	page := li.Do("POST", "/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	li.Post(page+"/publish", li.Publishing(page)).To(page)
	request := ada.Get(page + "/approval").Is(200).Field("request")
	for _, table := range []string{"campaigns", "campaign_requests"} {
		g.Exec(`update ` + table + ` set starts_at = '2026-01-01', ends_at = '2026-01-02'`)
	}
	for _, b := range []*consoletest.Browser{li, ada} {
		b.Get(page).Is(200).Has("The campaign’s end has passed")
		b.Get(page+"/approval").Is(200).Has("The campaign’s end has passed", page+"/edit", page+"/cancel").
			HasNot(`name="request"`, "Approve and publish", `action="`+page+`/ask"`)
	}
	g.As(staff.Viewer).Get(page + "/approval").Is(200).Has("The campaign’s end has passed").HasNot(page + "/edit")
	ada.Post(page+"/approve", url.Values{"request": {request}}).Is(http.StatusUnprocessableEntity).Has("must lie in the future")
}
