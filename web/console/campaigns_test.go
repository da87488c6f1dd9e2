package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

type freeLatch struct{}

func (freeLatch) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) {
	return true, nil
}
func (freeLatch) Release(context.Context, [32]byte, int64) error { return nil }

func campaignsOf(g *rig, templates campaign.Templates, channels delivery.ChannelSet) *campaign.Service {
	store := postgres.NewCampaigns(g.db)
	return &campaign.Service{Store: store, Sleepers: store.Waiting, Latch: freeLatch{}, Templates: templates, Users: &user.Service{Store: postgres.NewUsers(g.db)},
		Channels: channels, Audiences: store.Audiences(), Now: g.now}
}

func campaignForm(changes ...string) url.Values {
	f := url.Values{"name": {"Spring <b>"}, "audience": {"all"}, "channel": {"app"}, "title": {"Hello {{name|you}}"}, "body": {"Come"},
		"starts_at": {"2031-01-01T12:00"}, "ends_at": {"2031-01-02T12:00"}}
	f.Set("starts_at", time.Now().Add(time.Hour).Format("2006-01-02T15:04"))
	f.Set("ends_at", time.Now().Add(48*time.Hour).Format("2006-01-02T15:04"))
	for i := 0; i < len(changes); i += 2 {
		f.Set(changes[i], changes[i+1])
	}
	return f
}

// TestCampaignWithoutScripts goes from the empty list to a cancelled campaign
// by plain forms.
func TestCampaignWithoutScripts(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	if a := b.do("GET", "/campaigns", nil); a.status != http.StatusOK || !strings.Contains(a.body, "/campaigns/new") {
		t.Fatalf("empty list: %d", a.status)
	}
	if a := b.do("POST", "/campaigns", campaignForm("title", "{{nmae}}", "audience_value", "x")); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "nmae") {
		t.Fatalf("refused form: %d", a.status)
	}
	if a := b.do("POST", "/campaigns", campaignForm("look", "1")); a.status != http.StatusOK || !strings.Contains(a.body, "Hello you") {
		t.Fatalf("preview: %d %s", a.status, a.text())
	}
	a := b.do("POST", "/campaigns", campaignForm())
	page := a.header.Get("Location")
	if a.status != http.StatusSeeOther || !strings.HasPrefix(page, "/campaigns/") {
		t.Fatalf("created: %d %s", a.status, a.text())
	}
	if a = b.do("GET", page, nil); a.status != http.StatusOK || strings.Contains(a.body, "Spring <b>") || !strings.Contains(a.body, "Spring &lt;b&gt;") {
		t.Fatalf("page: %d", a.status)
	}
	if a = b.do("GET", page+"/edit", nil); a.status != http.StatusOK || !strings.Contains(a.body, `value="1"`) {
		t.Fatalf("edit form: %d", a.status)
	}
	if a = b.do("POST", page+"/edit", campaignForm("version", "9")); a.status != http.StatusConflict {
		t.Errorf("a stale form: %d", a.status)
	}
	if a = b.do("POST", page+"/edit", campaignForm("version", "1", "title_zh", "你好", "body_zh", "来")); a.status != http.StatusSeeOther {
		t.Errorf("saved: %d %s", a.status, a.text())
	}
	if a = b.do("GET", page+"/publish", nil); a.status != http.StatusOK || !strings.Contains(a.text(), "It is sent to 0 people.") {
		t.Errorf("question: %d %s", a.status, a.text())
	}
	publish := b.publishing(page)
	if a = b.do("POST", page+"/edit", campaignForm("version", "2", "title_zh", "再见", "body_zh", "来")); a.status != http.StatusSeeOther {
		t.Errorf("saved again: %d %s", a.status, a.text())
	}
	// What nobody saw is not sent off.
	b.post(page+"/publish", publish).is(http.StatusConflict).has("Somebody changed this in the meantime")
	b.post(page+"/publish", nil).is(http.StatusConflict)
	publish.Set("version", b.version(page))
	if a = b.do("POST", page+"/publish", publish); a.status != http.StatusSeeOther {
		t.Fatalf("published: %d %s", a.status, a.text())
	}
	if a = b.do("POST", page+"/publish", publish); a.status != http.StatusSeeOther { // the other half of a double click
		t.Errorf("published again: %d", a.status)
	}
	if a = b.do("POST", page+"/rate", url.Values{"rate_per_second": {"50"}}); a.status != http.StatusSeeOther {
		t.Errorf("rate: %d", a.status)
	}
	b.get(page).is(200).has(`name="was_rate_per_second" value="50"`)
	b.post(page+"/rate", url.Values{"rate_per_second": {"70"}, "was_rate_per_second": {"0"}}).is(http.StatusConflict).
		has("somebody has changed this to 50", `value="70"`, `name="was_rate_per_second" value="50"`)
	b.post(page+"/rate", url.Values{"rate_per_second": {"fast"}, "was_rate_per_second": {"50"}}).is(422).has("must be a whole number", `value="fast"`)
	b.post(page+"/rate", url.Values{"rate_per_second": {"70"}, "was_rate_per_second": {"50"}}).is(http.StatusSeeOther)
	if a = b.do("GET", page+"/recipients?user=7", nil); a.status != http.StatusOK {
		t.Errorf("recipient: %d", a.status)
	}
	if a = b.do("POST", page+"/cancel", url.Values{"reason": {"no"}}); a.status != http.StatusSeeOther {
		t.Errorf("cancelled: %d", a.status)
	}
	if a = b.do("GET", "/campaigns?state=cancelled&q=spring", nil); !strings.Contains(a.body, page) {
		t.Errorf("not in the list")
	}
	if a = g.as(staff.Viewer).do("POST", page+"/cancel", url.Values{}); a.status != http.StatusForbidden {
		t.Errorf("a viewer: %d", a.status)
	}
}

// Segments are chosen by their names, and still are when the form is shown again.
func TestCampaignForASegmentByName(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	if _, err := g.sql.Exec(t.Context(), `insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Regulars & friends', 'rules', '{"all":[]}', 'x'), (42, 'Fair', 'list', '{"all":[]}', 'x')`); err != nil {
		t.Fatal(err)
	}
	if a := b.do("GET", "/campaigns/new", nil); a.status != http.StatusOK || !strings.Contains(a.body, "Regulars &amp; friends") || !strings.Contains(a.body, `value="list_id:42"`) {
		t.Fatalf("new form: %d", a.status)
	}
	if a := b.do("POST", "/campaigns", campaignForm("audience", "segment_id:x")); a.status != http.StatusUnprocessableEntity {
		t.Errorf("no number: %d", a.status)
	}
	a := b.do("POST", "/campaigns", campaignForm("audience", "list_id:42", "audience_value", "7 8"))
	page := a.header.Get("Location")
	if a.status != http.StatusSeeOther {
		t.Fatalf("created: %d %s", a.status, a.text())
	}
	var audience string
	if err := g.sql.QueryRow(t.Context(), `select audience::text from campaigns`).Scan(&audience); err != nil || audience != `{"id": "42", "kind": "list_id"}` {
		t.Errorf("audience %s %v", audience, err)
	}
	if a = b.do("GET", page+"/edit", nil); !strings.Contains(a.body, `value="list_id:42" selected`) {
		t.Errorf("the edit form does not show what was chosen: %d", a.status)
	}
}

// TestACampaignAsAModel: the new one is for the same people, in all languages
// and for as long, at a time of its own.
func TestACampaignAsAModel(t *testing.T) {
	g := newRig(t)
	tea := g.published(10, 4*time.Hour)
	b := g.as(staff.Marketer)
	form := campaignForm("shop", "10", "audience", "user_ids", "audience_value", "7 8", "title_b", "Other", "body_b", "Text", "percent_b", "30",
		"hold_out", "10", "rate_per_second", "25", "grant_template_id", fmt.Sprint(tea.ID))
	page := b.post("/campaigns", form).is(http.StatusSeeOther).header.Get("Location")
	g.exec(`update campaigns set content = jsonb_set(content, '{variants,0,texts,fr}', '{"title": "Salut", "body": "Viens"}')`)
	b.post(page+"/cancel", url.Values{"reason": {"over"}}).to(page)
	model := "/campaigns/new?from=" + strings.TrimPrefix(page, "/campaigns/")
	b.get(page).is(200).has(model)
	number := strings.TrimPrefix(page, "/campaigns/")
	b.get(model).is(200).has("Spring &lt;b&gt;", ">7 8<", `name="from" value="`+number+`"`, `value="Other"`, `value="30"`, `value="25"`, "Moon cake night (#"+fmt.Sprint(tea.ID)+")")
	form.Set("from", number)
	again := b.post("/campaigns", form).is(http.StatusSeeOther).header.Get("Location")
	var same, lasts bool
	g.must(g.sql.QueryRow(t.Context(), `select a.content = b.content and a.audience = b.audience and a.grant_template_id = b.grant_template_id and a.id <> b.id,
		b.ends_at - b.starts_at between a.ends_at - a.starts_at and a.ends_at - a.starts_at + interval '1 minute'
		from campaigns a, campaigns b where a.state = 'cancelled' and b.state = 'draft'`).Scan(&same, &lasts))
	if again == page || !same || !lasts {
		t.Errorf("%s after %s: the same %v, as long %v", again, page, same, lasts)
	}
	b.get("/campaigns/new?from=999999").is(http.StatusNotFound)
	g.as(staff.Marketer, 20).get(model).is(http.StatusForbidden)
}

// A test to nobody is refused where it was typed, and nothing is lost.
func TestTestOfACampaignToNobody(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	page := b.post("/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	b.post(page+"/test", url.Values{"user_id": {"abc <b>"}}).is(http.StatusUnprocessableEntity).has(`value="abc &lt;b&gt;"`, `id="f-test-user-error"`, "must be a whole number")
	b.get(page).is(200).hasNot("must be a whole number", "less than a second")
	b.post(page+"/test", url.Values{"user_id": {" 1001 "}}).to(page)
	b.get(page).is(200).has("The test message for user 1001 is on its way.")
	g.exec(`update batches set state = 'done', rest_outcome = 'skipped', rest_reason = 'no_contact' where kind = 'test'`)
	g.exec(`create function ended() returns trigger language plpgsql as $$ begin
		new.state := 'done'; new.rest_outcome := 'skipped'; new.rest_reason := 'no_contact'; return new; end $$`)
	g.exec(`create trigger ended before insert or update on batches for each row execute function ended()`) // a worker that has nobody to call
	b.post(page+"/test", url.Values{"user_id": {"1001"}}).to(page)
	b.get(page).is(200).has("The test message for user 1001 did not go out: No address is known for this channel.")
}

// Of two versions either can be tested.
func TestTestOfAVersion(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	page := b.post("/campaigns", campaignForm("title_b", "Hi", "body_b", "Now", "percent_b", "50")).is(http.StatusSeeOther).header.Get("Location")
	b.get(page).is(200).has(`name="test_variant"`, "The version the user gets", "B, the second version")
	b.post(page+"/test", url.Values{"user_id": {"x"}, "test_variant": {"b"}}).is(http.StatusUnprocessableEntity).has(`value="b" selected`)
	b.post(page+"/test", url.Values{"user_id": {"1001"}, "test_variant": {"hold_out"}}).is(http.StatusUnprocessableEntity).has("choose")
	b.post(page+"/test", url.Values{"user_id": {"1001"}, "test_variant": {"b"}}).to(page)
	var variant int
	g.must(g.sql.QueryRow(t.Context(), `select variant from batches where kind = 'test'`).Scan(&variant))
	if variant != 1 {
		t.Errorf("version %d", variant)
	}
	plain := b.post("/campaigns", campaignForm("name", "Plain")).is(http.StatusSeeOther).header.Get("Location")
	b.get(plain).is(200).hasNot("test_variant")
}

// Publishing says who gets nothing, and which coupons it gives away.
// TestACampaignOverAPausedChannel: before and while it runs everybody is told
// why nothing goes out.
func TestACampaignOverAPausedChannel(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	page := b.post("/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location")
	b.get(page + "/publish").is(200).hasNot("is not sending")
	b.post("/channels/app/pause", url.Values{"reason": {"the app is being rebuilt"}}).is(http.StatusSeeOther)
	b.get(page+"/publish").is(200).has("is not sending (paused)", "the app is being rebuilt")
	b.post(page+"/publish", b.publishing(page)).to(page)
	if _, err := g.sql.Exec(t.Context(), `update campaigns set state = 'running', started_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.get(page).is(200).has("is not sending (paused)", "the app is being rebuilt")
	b.post("/channels/app/resume", nil).is(http.StatusSeeOther)
	b.get(page).is(200).hasNot("is not sending")
}

func TestPublishingSaysWhatItGives(t *testing.T) {
	g := newRig(t)
	tea := g.published(10, 4*time.Hour)
	g.exec(`update templates set name = 'Tea & more', stock = 12, issued = 5 where id = $1`, tea.ID)
	b := g.as(staff.Marketer)
	page := b.post("/campaigns", campaignForm("grant_template_id", fmt.Sprint(tea.ID), "hold_out", "10")).is(http.StatusSeeOther).header.Get("Location")
	b.get(page+"/publish").is(200).has("10 % of them get nothing", "a coupon of “Tea &amp; more”; 7 are left", "If no coupon is left, the recipient is skipped")
	page = b.post("/campaigns", campaignForm("name", "Plain")).is(http.StatusSeeOther).header.Get("Location")
	b.get(page+"/publish").is(200).hasNot("get nothing", "a coupon of")
}
