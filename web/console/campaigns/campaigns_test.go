package campaigns_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestCampaignWithoutScripts goes from the empty list to a cancelled campaign with plain forms.
func TestCampaignWithoutScripts(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	if a := b.Do("GET", "/campaigns", nil); a.Status != http.StatusOK || !strings.Contains(a.Body, "/campaigns/new") {
		t.Fatalf("empty list: %d", a.Status)
	}
	if a := b.Do("POST", "/campaigns", consoletest.CampaignForm("title", "{{nmae}}", "audience_value", "x")); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, "nmae") {
		t.Fatalf("refused form: %d", a.Status)
	}
	if a := b.Do("POST", "/campaigns", consoletest.CampaignForm("look", "1")); a.Status != http.StatusOK || !strings.Contains(a.Body, "Hello Robin Chen") {
		t.Fatalf("preview: %d %s", a.Status, a.Text())
	}
	a := b.Do("POST", "/campaigns", consoletest.CampaignForm())
	page := a.Header.Get("Location")
	if a.Status != http.StatusSeeOther || !strings.HasPrefix(page, "/campaigns/") {
		t.Fatalf("created: %d %s", a.Status, a.Text())
	}
	if a = b.Do("GET", page, nil); a.Status != http.StatusOK || strings.Contains(a.Body, "Spring <b>") || !strings.Contains(a.Body, "Spring &lt;b&gt;") {
		t.Fatalf("page: %d", a.Status)
	}
	if a = b.Do("GET", page+"/edit", nil); a.Status != http.StatusOK || !strings.Contains(a.Body, `value="1"`) {
		t.Fatalf("edit form: %d", a.Status)
	}
	if a = b.Do("POST", page+"/edit", consoletest.CampaignForm("version", "9")); a.Status != http.StatusConflict {
		t.Errorf("a stale form: %d", a.Status)
	}
	if a = b.Do("POST", page+"/edit", consoletest.CampaignForm("version", "1", "l0_language", "zh-CN", "l0_title", "你好", "l0_body", "来")); a.Status != http.StatusSeeOther {
		t.Errorf("saved: %d %s", a.Status, a.Text())
	}
	if a = b.Do("GET", page+"/publish", nil); a.Status != http.StatusOK || !strings.Contains(a.Text(), "It is sent to 0 people.") {
		t.Errorf("question: %d %s", a.Status, a.Text())
	}
	publish := b.Publishing(page)
	if a = b.Do("POST", page+"/edit", consoletest.CampaignForm("version", "2", "l0_language", "zh-CN", "l0_title", "再见", "l0_body", "来")); a.Status != http.StatusSeeOther {
		t.Errorf("saved again: %d %s", a.Status, a.Text())
	}
	// A version that the form did not show is not published.
	b.Post(page+"/publish", publish).Is(http.StatusConflict).Has("Another person changed this in the meantime")
	b.Post(page+"/publish", nil).Is(http.StatusConflict)
	publish.Set("version", b.Version(page))
	if a = b.Do("POST", page+"/publish", publish); a.Status != http.StatusSeeOther {
		t.Fatalf("published: %d %s", a.Status, a.Text())
	}
	if a = b.Do("POST", page+"/publish", publish); a.Status != http.StatusSeeOther { // the other half of a double click
		t.Errorf("published again: %d", a.Status)
	}
	if a = b.Do("POST", page+"/rate", url.Values{"rate_per_second": {"50"}}); a.Status != http.StatusSeeOther {
		t.Errorf("rate: %d", a.Status)
	}
	b.Get(page).Is(200).Has(`name="was_rate_per_second" value="50"`)
	b.Post(page+"/rate", url.Values{"rate_per_second": {"70"}, "was_rate_per_second": {"0"}}).Is(http.StatusConflict).
		Has("was changed to 50", `value="70"`, `name="was_rate_per_second" value="50"`)
	b.Post(page+"/rate", url.Values{"rate_per_second": {"fast"}, "was_rate_per_second": {"50"}}).Is(422).Has("must be a whole number", `value="fast"`)
	b.Post(page+"/rate", url.Values{"rate_per_second": {"70"}, "was_rate_per_second": {"50"}}).Is(http.StatusSeeOther)
	if a = b.Do("GET", page+"/recipients?user=7", nil); a.Status != http.StatusOK {
		t.Errorf("recipient: %d", a.Status)
	}
	if a = b.Do("POST", page+"/cancel", url.Values{"reason": {"no"}}); a.Status != http.StatusSeeOther {
		t.Errorf("cancelled: %d", a.Status)
	}
	if a = b.Do("GET", "/campaigns?state=cancelled&q=spring", nil); !strings.Contains(a.Body, page) {
		t.Errorf("not in the list")
	}
	if a = g.As(staff.Viewer).Do("POST", page+"/cancel", url.Values{}); a.Status != http.StatusForbidden {
		t.Errorf("a viewer: %d", a.Status)
	}
}

// Segments are chosen by their names, and still are when the form is shown again.
func TestCampaignForASegmentByName(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	if _, err := g.SQL.Exec(t.Context(), `insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Regulars & friends', 'rules', '{"all":[]}', 'x'), (42, 'Fair', 'list', '{"all":[]}', 'x')`); err != nil {
		t.Fatal(err)
	}
	if a := b.Do("GET", "/campaigns/new", nil); a.Status != http.StatusOK || !strings.Contains(a.Body, "Regulars &amp; friends") || !strings.Contains(a.Body, `value="list_id:42"`) {
		t.Fatalf("new form: %d", a.Status)
	}
	if a := b.Do("POST", "/campaigns", consoletest.CampaignForm("audience", "segment_id:x")); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("no number: %d", a.Status)
	}
	a := b.Do("POST", "/campaigns", consoletest.CampaignForm("audience", "list_id:42", "audience_value", "7 8"))
	page := a.Header.Get("Location")
	if a.Status != http.StatusSeeOther {
		t.Fatalf("created: %d %s", a.Status, a.Text())
	}
	var audience string
	if err := g.SQL.QueryRow(t.Context(), `select audience::text from campaigns`).Scan(&audience); err != nil || audience != `{"id": "42", "kind": "list_id"}` {
		t.Errorf("audience %s %v", audience, err)
	}
	if a = b.Do("GET", page+"/edit", nil); !strings.Contains(a.Body, `value="list_id:42" selected`) {
		t.Errorf("the edit form does not show what was chosen: %d", a.Status)
	}
}

// TestACampaignAsAModel: the new campaign has the same audience, languages and duration as the
// model, and another time.
func TestACampaignAsAModel(t *testing.T) {
	g := consoletest.New(t)
	tea := g.Published(10, 4*time.Hour)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("shop", "10", "audience", "user_ids", "audience_value", "7 8", "title_b", "Other", "body_b", "Text", "percent_b", "30",
		"hold_out", "10", "rate_per_second", "25", "grant_template_id", fmt.Sprint(tea.ID))
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	g.Exec(`update campaigns set content = jsonb_set(content, '{variants,0,texts,fr}', '{"title": "Salut", "body": "Viens"}')`)
	b.Post(page+"/cancel", url.Values{"reason": {"over"}}).To(page)
	model := "/campaigns/new?from=" + strings.TrimPrefix(page, "/campaigns/")
	b.Get(page).Is(200).Has(model)
	number := strings.TrimPrefix(page, "/campaigns/")
	b.Get(model).Is(200).Has("Spring &lt;b&gt;", ">7 8<", `name="from" value="`+number+`"`, `value="Other"`, `value="30"`, `value="25"`, "Moon cake night (#"+fmt.Sprint(tea.ID)+")", `value="Salut"`)
	language(form, "0", "fr", "Salut", "Viens")
	form.Set("from", number)
	again := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	var same, lasts bool
	g.Must(g.SQL.QueryRow(t.Context(), `select a.content = b.content and a.audience = b.audience and a.grant_template_id = b.grant_template_id and a.id <> b.id,
		b.ends_at - b.starts_at between a.ends_at - a.starts_at and a.ends_at - a.starts_at + interval '1 minute'
		from campaigns a, campaigns b where a.state = 'cancelled' and b.state = 'draft'`).Scan(&same, &lasts))
	if again == page || !same || !lasts {
		t.Errorf("%s after %s: the same %v, as long %v", again, page, same, lasts)
	}
	b.Get("/campaigns/new?from=999999").Is(http.StatusNotFound)
	g.As(staff.Marketer, 20).Get(model).Is(http.StatusForbidden)
}

// A test without a recipient is refused at its field, and the form keeps its
// values.
func TestTestOfACampaignToNobody(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	page := b.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	b.Post(page+"/test", url.Values{"user_id": {"abc <b>"}}).Is(http.StatusUnprocessableEntity).Has(`value="abc &lt;b&gt;"`, `id="f-test-user-error"`, "nothing has this name")
	b.Get(page).Is(200).HasNot("nothing has this name", "less than a second")
	b.Post(page+"/test", url.Values{"user_id": {" 1001 "}}).To(page)
	b.Get(page).Is(200).Has("The test message for customer 1001 is on its way.")
	g.Exec(`update batches set state = 'done', rest_outcome = 'skipped', rest_reason = 'no_contact' where kind = 'test'`)
	g.Exec(`create function ended() returns trigger language plpgsql as $$ begin
		new.state := 'done'; new.rest_outcome := 'skipped'; new.rest_reason := 'no_contact'; return new; end $$`)
	g.Exec(`create trigger ended before insert or update on batches for each row execute function ended()`) // a worker without recipients
	b.Post(page+"/test", url.Values{"user_id": {"1001"}}).To(page)
	b.Get(page).Is(200).Has("The test message for customer 1001 was not sent: No address is known for this channel.")
}

// Of two versions either can be tested.
func TestTestOfAVersion(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	page := b.Post("/campaigns", consoletest.CampaignForm("title_b", "Hi", "body_b", "Now", "percent_b", "50")).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page).Is(200).Has(`name="test_variant"`, "The version the customer gets", "B, the second version")
	b.Post(page+"/test", url.Values{"user_id": {"x"}, "test_variant": {"b"}}).Is(http.StatusUnprocessableEntity).Has(`value="b" selected`)
	b.Post(page+"/test", url.Values{"user_id": {"1001"}, "test_variant": {"hold_out"}}).Is(http.StatusUnprocessableEntity).Has("choose")
	b.Post(page+"/test", url.Values{"user_id": {"1001"}, "test_variant": {"b"}}).To(page)
	var variant int
	g.Must(g.SQL.QueryRow(t.Context(), `select variant from batches where kind = 'test'`).Scan(&variant))
	if variant != 1 {
		t.Errorf("version %d", variant)
	}
	plain := b.Post("/campaigns", consoletest.CampaignForm("name", "Plain")).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(plain).Is(200).HasNot("test_variant")
}

// TestACampaignOverAPausedChannel: the confirmation of the publication names unreachable channels
// and the granted coupons. Before the campaign runs and while it runs, the page explains why
// nothing is sent.
func TestACampaignOverAPausedChannel(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	page := b.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page + "/publish").Is(200).HasNot("is not sending")
	b.Post("/channels/app/pause", url.Values{"reason": {"the app is being rebuilt"}}).Is(http.StatusSeeOther)
	b.Get(page+"/publish").Is(200).Has("is not sending (state: Paused)", "the app is being rebuilt")
	b.Post(page+"/publish", b.Publishing(page)).To(page)
	if _, err := g.SQL.Exec(t.Context(), `update campaigns set state = 'running', started_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.Get(page).Is(200).Has("is not sending (state: Paused)", "the app is being rebuilt")
	b.Post("/channels/app/resume", nil).Is(http.StatusSeeOther)
	b.Get(page).Is(200).HasNot("is not sending")
}

func TestPublishingSaysWhatItGives(t *testing.T) {
	g := consoletest.New(t)
	tea := g.Published(10, 4*time.Hour)
	g.Exec(`update templates set name = 'Tea & more', stock = 12, issued = 5 where id = $1`, tea.ID)
	b := g.As(staff.Marketer)
	page := b.Post("/campaigns", consoletest.CampaignForm("grant_template_id", fmt.Sprint(tea.ID), "hold_out", "10")).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page+"/publish").Is(200).Has("10 % of them are the control group", "a coupon of “Tea &amp; more”; coupons left: 7", "If no coupon is left, the recipient is skipped")
	page = b.Post("/campaigns", consoletest.CampaignForm("name", "Plain")).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page+"/publish").Is(200).HasNot("get nothing", "a coupon of")
}
