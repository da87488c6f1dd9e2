package api_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/inapp"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/recipe"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/user"
	"dropbell/web/api/campaigns"
)

type freeLock struct{}

func (freeLock) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) {
	return true, nil
}
func (freeLock) Release(context.Context, [32]byte, int64) error { return nil }

func newCampaigns(r *fixture, templates campaign.Templates, users *user.Service) campaigns.Deps {
	store := campaignsdb.NewCampaigns(r.db, audiencedb.NewSegments(r.db))
	channels := delivery.ChannelSetOf(delivery.App, delivery.Email)
	approvals := &approval.Service{Store: store, Publisher: campaign.Publisher{Store: store, Lock: freeLock{}, Templates: templates, Channels: channels, Now: r.now}}
	return campaigns.Deps{Recipes: &recipe.Service{Store: campaignsdb.NewRecipes(r.db)}, Approvals: approvals, Campaigns: &campaign.Service{Store: store, Approvals: approvals, QuietCounts: store.Waiting, Templates: templates,
		Users: users, Now: r.now, Channels: channels, Audiences: store.Audiences()}}
}

func campaignWish(changes ...any) map[string]any {
	w := map[string]any{"name": "Spring", "title": "Hello {{name|you}}", "body": "Come and see", "channel": "app",
		"audience": map[string]any{"all": true}, "starts_at": now().Add(-time.Second), "ends_at": now().Add(time.Hour)}
	for i := 0; i < len(changes); i += 2 {
		if w[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(w, changes[i].(string))
		}
	}
	return maps.Clone(w)
}

func testCreateAndChangeCampaign(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id) values (1), (2)`)
	a := r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("rate_per_second", 100)), 201, "")
	if a.at("state") != "draft" || a.at("version") != 1.0 || a.at("title") != "Hello {{name|you}}" || a.at("audience.all") != true ||
		a.at("rate_per_second") != 100.0 || a.at("progress.audience") != 0.0 || a.Header().Get("ETag") != `"1"` {
		t.Fatalf("created: %s", a.Body)
	}
	path := "/admin/campaigns/" + a.at("id").(string)
	r.want(r.call(r.admin(), "PATCH", path, `{"name":"x"}`), 428, "precondition_required")
	a = r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"title":{"default":"Hi","zh-CN":"你好"},"body":{"default":"b","zh-CN":"请"},"audience":{"user_ids":["2","1","2"]}}`), 200, "")
	if a.at("title.zh-CN") != "你好" || a.at("title.default") != "Hi" || len(a.at("audience.user_ids").([]any)) != 2 || a.at("version") != 2.0 {
		t.Fatalf("changed: %s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"name":"y"}`), 409, "stale_version")
	r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"body":{"default":"b"}}`), 422, "invalid_request") // zh-CN has a title only
	if a = r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, ""); a.at("state") != "scheduled" || a.at("published_at") == nil {
		t.Fatalf("published: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 409, "invalid_transition")
	r.want(r.call(r.admin("If-Match", "3"), "PATCH", path, `{"name":"y"}`), 422, "invalid_request")
	if a = r.want(r.call(r.admin("If-Match", "3"), "PATCH", path, `{"rate_per_second":5}`), 200, ""); a.at("rate_per_second") != 5.0 {
		t.Fatalf("rate: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/pause", nil), 409, "invalid_transition")
	if a = r.want(r.call(r.admin(), "POST", path+"/cancel", `{"reason":"no"}`), 200, ""); a.at("state") != "cancelled" {
		t.Fatalf("cancelled: %s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/campaigns/999", nil), 404, "campaign_not_found")
	r.want(r.call(as(token(7)), "GET", path, nil), 403, "forbidden")
	if n := r.number(`select count(*) from audit where object_kind = 'campaign' and object_id = $1`, a.at("id")); n != 5 {
		t.Errorf("%d audit entries", n)
	}
}

func TestCampaignRefusals(t *testing.T) {
	r := newFixture(t, nil)
	for name, c := range map[string]struct {
		body  map[string]any
		where string
	}{
		"no audience":         {campaignWish("audience", map[string]any{}), "body.audience"},
		"two audiences":       {campaignWish("audience", map[string]any{"all": true, "segment_id": "1"}), "body.audience"},
		"strange user":        {campaignWish("audience", map[string]any{"user_ids": []string{"x"}}), "body.audience.user_ids"},
		"no user":             {campaignWish("audience", map[string]any{"user_ids": []string{}}), "body.audience.user_ids"},
		"unknown template":    {campaignWish("audience", map[string]any{"reserved_template_id": "99"}), "body.audience.reserved_template_id"},
		"segments":            {campaignWish("audience", map[string]any{"segment_id": "1"}), "body.audience.segment_id"},
		"unknown grant":       {campaignWish("grant_template_id", "99"), "body.grant_template_id"},
		"channel":             {campaignWish("channel", "pigeon"), "body.channel"},
		"ends before start":   {campaignWish("ends_at", now().Add(-time.Hour)), "body.ends_at"},
		"year 1":              {campaignWish("starts_at", "0001-01-01T00:00:00Z"), "body.starts_at"},
		"no title":            {campaignWish("title", "  "), "body.title"},
		"unknown variable":    {campaignWish("body", "hello {{nmae}}"), "body.body"},
		"NUL":                 {campaignWish("body", "a\x00b"), "body.body"},
		"title as number":     {campaignWish("title", 5), "body.title"},
		"title as nested":     {campaignWish("title", map[string]any{"en": map[string]any{}}), "body.title"},
		"rate":                {campaignWish("rate_per_second", -1), "body.rate_per_second"},
		"variant's percent":   {campaignWish("variant_b", map[string]any{"title": "a", "body": "b", "percent": 100}), "body.variant_b.percent"},
		"unknown field":       {campaignWish("colour", "red"), "body.colour"},
		"name of 121 letters": {campaignWish("name", strings.Repeat("长", 121)), "body.name"},
	} {
		r.about = name
		a := r.want(r.call(r.admin(), "POST", "/admin/campaigns", c.body), 422, "invalid_request")
		if !strings.Contains(a.Body.String(), `"location":"`+c.where) {
			t.Errorf("%s: nothing points at %s: %s", name, c.where, a.Body)
		}
	}
	r.about = ""
	id := r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("channel", "sms")), 201, "").at("id").(string)
	r.want(r.call(r.admin(), "POST", "/admin/campaigns/"+id+"/publish", nil), 422, "invalid_request") // no sender
	r.want(r.call(r.admin(), "POST", "/admin/campaigns/"+id+"/test", `{"user_id":"1"}`), 422, "channel_unavailable")
	over := r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("starts_at", now().Add(-2*time.Hour), "ends_at", now().Add(-time.Hour))), 201, "").at("id").(string)
	a := r.want(r.call(r.admin(), "POST", "/admin/campaigns/"+over+"/publish", nil), 422, "invalid_request")
	if a.at("errors.0.location") != "body.ends_at" {
		t.Errorf("over already: %s", a.Body)
	}
	for _, q := range []string{"?state=nonsense", "?shop=x", "?limit=201", "?before=x", "?from=yesterday", "?channel=pigeon", "?q=%00", "?page=2"} {
		r.about = q
		r.want(r.call(r.admin(), "GET", "/admin/campaigns"+q, nil), 422, "invalid_request")
	}
}

func TestPublishingTheSameTwiceIsRefused(t *testing.T) {
	r := newFixture(t, nil)
	wish := campaignWish()
	first := r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish), 201, "").at("id").(string)
	second := r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish), 201, "").at("id").(string)
	r.want(r.call(r.admin(), "POST", "/admin/campaigns/"+first+"/publish", nil), 200, "")
	r.want(r.call(r.admin(), "POST", "/admin/campaigns/"+second+"/publish", nil), 409, "already_published")
	if a := r.want(r.call(r.admin(), "GET", "/admin/campaigns/"+second, nil), 200, ""); a.at("state") != "draft" {
		t.Errorf("the second is %v", a.at("state"))
	}
}

func testListCampaigns(t *testing.T) {
	r := newFixture(t, nil)
	for i := range 5 {
		r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("name", fmt.Sprintf("C %d_%%", i), "shop_number", fmt.Sprint(1+i%2))), 201, "")
	}
	count := func(query string) (n int) {
		for next := query; ; {
			a := r.want(r.call(r.admin(), "GET", "/admin/campaigns"+next, nil), 200, "")
			n += len(a.at("campaigns").([]any))
			before, more := a.json["next"].(string)
			if !more {
				return n
			}
			next = query + "&before=" + before
		}
	}
	for query, want := range map[string]int{"?limit=2": 5, "?shop=2&limit=1": 2, "?state=draft&limit=3": 5, "?state=running&limit=3": 0, "?q=_%25&limit=10": 5,
		"?q=C%203&limit=10": 1, "?channel=app&limit=10": 5, "?channel=email&limit=10": 0, "?from=2090-01-01T00:00:00Z&limit=10": 0} {
		if got := count(query); got != want {
			t.Errorf("%s finds %d, want %d", query, got, want)
		}
	}
}

// discardQueue is a queue that drops tasks.
type discardQueue struct{}

func (discardQueue) Enqueue(context.Context, ...task.Task) error { return nil }

type openGate struct{}

func (openGate) Admit(context.Context, delivery.Load) (time.Duration, string) { return 0, "" }
func (openGate) Unused(context.Context, delivery.Load)                        {}
func (openGate) Report(context.Context, delivery.Channel, delivery.Call)      {}

// carryOut runs the workers' part until no work is left.
func (r *fixture) carryOut(t *testing.T) {
	t.Helper()
	store, ctx := campaignsdb.NewCampaigns(r.db, audiencedb.NewSegments(r.db)), t.Context()
	launcher := &campaign.Launcher{Store: store, Queue: discardQueue{}, Now: now, LeaseFor: 10 * time.Second}
	rows, err := r.sql.Query(ctx, `select id from campaigns where state = 'scheduled' or state = 'running' and cut_at is null`)
	r.must(err)
	var list []int64
	for rows.Next() {
		var id int64
		r.must(rows.Scan(&id))
		list = append(list, id)
	}
	for _, id := range list {
		r.must(launcher.Start(ctx, id))
		r.must(launcher.Cut(ctx, id))
	}
	d := &delivery.Service{Store: deliverydb.NewBatches(r.db), Queue: discardQueue{}, Admission: openGate{}, LeaseFor: 8 * time.Second, Now: now,
		Senders: map[delivery.Channel]delivery.Sender{delivery.App: inapp.Sender{}}, Policy: delivery.DefaultPolicy(), Random: func() float64 { return 0 },
		Guards: map[delivery.Kind]delivery.Guard{delivery.KindCampaign: &campaign.Guard{Store: store}}}
	r.must(d.Drain(ctx, delivery.App))
	_, err = store.Settle(ctx)
	r.must(err)
}

// testCampaignFromDraftToInbox takes a campaign from the draft to the end: its messages in the
// readers' inboxes, each in the reader's language, and its balance.
func testCampaignFromDraftToInbox(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id, name, locale) values (7, 'Li <b>', 'zh-CN'), (8, '', 'fr'), (9, 'Out', '')`)
	r.exec(`update users set opt_outs = 1 where id = 9`)
	wish := campaignWish("title", map[string]any{"default": "Hello {{name|you}}", "zh-CN": "你好，{{name}}"}, "body", map[string]any{"default": "line 1\nline 2", "zh-CN": "快来"})
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish), 201, "").at("id").(string)
	a := r.want(r.call(r.admin(), "GET", path+"/preview?user_id=7", nil), 200, "")
	if a.at("title") != "你好，Li <b>" || a.at("variant") != "a" || strings.Contains(a.at("html").(string), "Li <b>") {
		t.Errorf("preview: %s", a.Body)
	}
	if a.at("locale") != "zh-CN" || a.at("user_unknown") != nil {
		t.Errorf("preview for somebody known: %s", a.Body)
	}
	for query, want := range map[string]any{"?user_id=404404": true, "?locale=xx": nil, "?user_id=8": nil, "": nil} {
		a := r.want(r.call(r.admin(), "GET", path+"/preview"+query, nil), 200, "")
		if a.at("title") != "Hello you" || a.at("locale") != "" || a.at("user_unknown") != want {
			t.Errorf("preview%s: %s", query, a.Body)
		}
	}
	if a := r.want(r.call(r.admin(), "GET", path+"/preview?locale=zh-TW", nil), 200, ""); a.at("locale") != "zh-CN" {
		t.Errorf("preview in Chinese of Taiwan: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	r.carryOut(t)
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	if a.at("state") != "finished" || a.at("progress.audience") != 3.0 || a.at("progress.sent") != 2.0 || a.at("progress.skipped") != 1.0 ||
		a.at("progress.in_flight") != 0.0 || a.at("progress.eta_seconds") != 0.0 || a.at("progress.audience_complete") != true {
		t.Fatalf("finished: %s", a.Body)
	}
	for id, want := range map[int64]string{7: "你好，Li <b>", 8: "Hello you"} {
		a := r.want(r.call(as(token(id)), "GET", "/inbox", nil), 200, "")
		if a.at("items.0.kind") != "campaign" || a.at("items.0.title") != want || a.at("unread") != 1.0 {
			t.Errorf("inbox of %d: %s", id, a.Body)
		}
	}
	if a := r.want(r.call(as(token(9)), "GET", "/inbox", nil), 200, ""); len(a.at("items").([]any)) != 0 {
		t.Errorf("inbox of who opted out: %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", path+"/recipients/9", nil), 200, ""); a.at("outcome") != "skipped" || a.at("reason") != "opted_out" {
		t.Errorf("recipient: %s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", path+"/recipients/10", nil), 404, "recipient_not_found")
	if a := r.want(r.call(r.admin(), "GET", path+"/balance", nil), 200, ""); a.at("balanced") != true || a.at("counted.sent") != 2.0 {
		t.Errorf("balance: %s", a.Body)
	}
}

func testTestSend(t *testing.T) {
	r := newFixture(t, nil)
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish()), 201, "").at("id").(string)
	for n := 1; n <= 2; n++ { // it can be asked for again
		done := make(chan answer)
		go func() { done <- r.call(r.admin(), "POST", path+"/test", `{"user_id":"7"}`) }()
		for r.number(`select count(*) from batches where kind = 'test' and state = 'ready'`) == 0 {
			<-time.After(5 * time.Millisecond)
		}
		r.carryOut(t)
		if a := r.want(<-done, 200, ""); a.at("outcome") != "sent" {
			t.Fatalf("test %d: %s", n, a.Body)
		}
		if a := r.want(r.call(as(token(7)), "GET", "/inbox", nil), 200, ""); a.at("items.0.kind") != "test" || a.at("items.0.title") != "Hello you" {
			t.Errorf("inbox: %s", a.Body)
		}
	}
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("state") != "draft" || a.at("progress.audience") != 0.0 {
		t.Errorf("a test is no campaign: %s", a.Body)
	}
}

// testEitherVersionCanBeTested: both versions can be tested, also with a user of the hold-out
// group.
func testEitherVersionCanBeTested(t *testing.T) {
	r := newFixture(t, nil)
	wish := campaignWish("hold_out_percent", 90, "variant_b", map[string]any{"title": "Hi {{name|you}}", "body": "Come", "percent": 50})
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish), 201, "").at("id").(string)
	for _, c := range []struct{ variant, title string }{{"b", "Hi you"}, {"a", "Hello you"}, {"b", "Hi you"}} {
		done := make(chan answer)
		go func() {
			done <- r.call(r.admin(), "POST", path+"/test", map[string]any{"user_id": "7", "variant": c.variant})
		}()
		for r.number(`select count(*) from batches where kind = 'test' and state = 'ready'`) == 0 {
			<-time.After(5 * time.Millisecond)
		}
		r.carryOut(t)
		if a := r.want(<-done, 200, ""); a.at("outcome") != "sent" || a.at("variant") != c.variant {
			t.Fatalf("test of %s: %s", c.variant, a.Body)
		}
		if a := r.want(r.call(as(token(7)), "GET", "/inbox", nil), 200, ""); a.at("items.0.title") != c.title {
			t.Errorf("inbox after %s: %s", c.variant, a.Body)
		}
	}
	r.want(r.call(r.admin(), "POST", path+"/test", map[string]any{"user_id": "7", "variant": "hold_out"}), 422, "invalid_request")
	one := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("name", "One")), 201, "").at("id").(string)
	r.want(r.call(r.admin(), "POST", one+"/test", map[string]any{"user_id": "7", "variant": "b"}), 422, "invalid_request")
}

func testCampaignLimits(t *testing.T) {
	r := newFixture(t, nil)
	r.draft(time.Hour) // makes shop 10
	if a := r.want(r.call(r.admin(), "GET", "/admin/shops/10/campaign-limits", nil), 200, ""); a.at("per_day") != 0.0 {
		t.Errorf("limits: %s", a.Body)
	}
	r.want(r.call(r.admin(), "PUT", "/admin/shops/10/campaign-limits", `{"per_day":1,"per_week":3,"approval_above":500}`), 200, "")
	if a := r.want(r.call(r.admin(), "GET", "/admin/shops/10/campaign-limits", nil), 200, ""); a.at("per_week") != 3.0 || a.at("approval_above") != 500.0 {
		t.Errorf("limits: %s", a.Body)
	}
	r.want(r.call(r.admin(), "PUT", "/admin/shops/99/campaign-limits", `{"per_day":1,"per_week":3,"approval_above":0}`), 422, "invalid_request")
	r.want(r.call(r.admin(), "PUT", "/admin/shops/10/campaign-limits", `{"per_day":-1,"per_week":3,"approval_above":0}`), 422, "invalid_request")
	if a := r.want(r.call(r.admin(), "POST", "/admin/campaigns/estimate", `{"audience":{"all":true}}`), 200, ""); a.at("exact") != true || a.at("users") != 0.0 {
		t.Errorf("estimate: %s", a.Body)
	}
}

// Two keys are two actors: the request of one key is approved by the other key, if the campaign has
// not changed since.
func testApprovalOverTheAPI(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id, locale) select i, 'fr' from generate_series(1, 20) i`)
	r.exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x')`)
	r.want(r.call(r.admin(), "PUT", "/admin/shops/0/campaign-limits", `{"per_day":0,"per_week":0,"approval_above":5}`), 200, "")
	second := as(r.key(staff.Key{Name: "second", Scopes: []staff.Scope{staff.ScopeAdmin}}))
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("audience", map[string]any{"segment_id": "41"})), 201, "").at("id").(string)
	if a := r.want(r.call(r.admin(), "GET", path+"/approval", nil), 200, ""); a.at("request") != nil || a.at("segment.version") != 1.0 {
		t.Errorf("nobody has asked: %s", a.Body)
	}
	r.want(r.call(second, "POST", path+"/approve", `{"request_id":"1"}`), 409, "approval_not_asked")
	if a := r.want(r.call(r.admin(), "POST", path+"/publish", `{"reason":"spring"}`), 200, ""); a.at("state") != "draft" || a.at("awaits_approval") != true || a.at("approved_by") != nil {
		t.Fatalf("asked: %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("awaits_approval") != true || a.at("approved_by") != nil {
		t.Fatalf("waiting: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 409, "approval_required")
	a := r.want(r.call(second, "GET", path+"/approval", nil), 200, "")
	if a.at("request.reason") != "spring" || a.at("request.reach.users") != 20.0 || a.at("lapsed") != false || a.at("request.segment.rule.all.0.field") != "locale" {
		t.Fatalf("the request: %s", a.Body)
	}
	decide := func(a answer, reason string) string {
		return `{"request_id":"` + a.at("request.id").(string) + `","reason":"` + reason + `"}`
	}
	r.want(r.call(r.admin(), "POST", path+"/approve", decide(a, "")), 409, "approval_required")
	r.want(r.call(second, "POST", path+"/withdraw", decide(a, "")), 403, "forbidden")
	if b := r.want(r.call(r.admin(), "POST", path+"/withdraw", decide(a, "not yet")), 200, ""); b.at("state") != "draft" || b.at("awaits_approval") != nil {
		t.Errorf("withdrawn: %s", b.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/withdraw", decide(a, "")), 409, "approval_lapsed")
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	for _, above := range []int{20, 5} { // up to the limit no approval is needed
		r.want(r.call(r.admin(), "PUT", "/admin/shops/0/campaign-limits", map[string]any{"per_day": 0, "per_week": 0, "approval_above": above}), 200, "")
		a = r.want(r.call(second, "GET", path+"/approval", nil), 200, "")
		if a.at("needed") != (above == 5) || a.at("before.decided_reason") != "not yet" || a.at("before.state") != "lapsed" {
			t.Errorf("above %d: %s", above, a.Body)
		}
	}
	r.want(r.call(second, "POST", path+"/refuse", decide(a, "")), 422, "invalid_request")
	r.want(r.call(second, "POST", path+"/approve", `{"request_id":"x"}`), 422, "invalid_request")
	r.want(r.call(second, "POST", path+"/refuse", decide(a, "no")), 200, "")
	r.want(r.call(second, "POST", path+"/approve", decide(a, "")), 409, "approval_lapsed")
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	a = r.want(r.call(second, "GET", path+"/approval", nil), 200, "")
	if a.at("before.decided_reason") != "no" || a.at("before.state") != "refused" {
		t.Errorf("before: %s", a.Body)
	}
	// The rule changes after the request: the request lapses, and approval can be requested again.
	r.exec(`update segments set version = 2, rule = '{"all":[]}'`)
	r.want(r.call(second, "POST", path+"/approve", decide(a, "")), 409, "approval_lapsed")
	if b := r.want(r.call(second, "GET", path+"/approval", nil), 200, ""); b.at("lapsed") != true || b.at("changed.0") != "rule" {
		t.Errorf("lapsed: %s", b.Body)
	}
	r.want(r.call(second, "POST", path+"/publish", nil), 409, "approval_lapsed")
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	a = r.want(r.call(second, "GET", path+"/approval", nil), 200, "")
	if b := r.want(r.call(second, "POST", path+"/approve", decide(a, "fine")), 200, ""); b.at("state") != "scheduled" || b.at("segment.version") != 2.0 || b.at("segment.rule.all") == nil ||
		b.at("awaits_approval") != nil || !strings.HasPrefix(fmt.Sprint(b.at("approved_by")), "key:") {
		t.Errorf("approved: %s", b.Body)
	}
	r.want(r.call(second, "POST", path+"/approve", decide(a, "fine")), 409, "invalid_transition")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", path+"/refuse", decide(a, "no")), 403, "forbidden")
	r.want(r.call(r.admin(), "GET", "/admin/campaigns/999/approval", nil), 404, "campaign_not_found")
}
