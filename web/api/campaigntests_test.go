package api_test

import (
	"testing"
	"time"
)

// A campaign has a link, blocks and a test, which are read back as they were written and removed by
// null. A text whose link leads nowhere is refused, also when a draft is changed.
func TestTestsOfCampaigns(t *testing.T) {
	r := newFixture(t, nil)
	b := map[string]any{"title": "Other", "body": "See https://shop.example/b", "percent": 50}
	blocks := map[string]any{"default": []any{map[string]any{"type": "heading", "text": "Tea"}, map[string]any{"type": "image", "text": "A cup", "url": "https://shop.example/cup.png"},
		map[string]any{"type": "button", "text": "Come"}, map[string]any{"type": "text", "text": "Now: {{link}}"}}}
	planned := map[string]any{"share_percent": 20, "by": "opened", "minutes": 30, "end_early": true}
	wish := func(changes ...any) map[string]any {
		return campaignWish(append([]any{"channel", "email", "ends_at", now().Add(3 * time.Hour), "variant_b", b, "blocks", blocks, "link", "https://shop.example/tea", "test", planned}, changes...)...)
	}
	for name, c := range map[string]struct {
		body  map[string]any
		where string
	}{
		"empty link":      {wish("link", nil), "body.blocks"},
		"empty link, app": {campaignWish("body", "[Claim]({{link}})"), "body.body"},
		"http link":       {wish("link", "http://shop.example/tea"), "body.link"},
		"one version":     {wish("variant_b", nil), "body.test"},
		"claims, no drop": {wish("test", map[string]any{"share_percent": 20, "by": "claimed", "minutes": 30}), "body.test.by"},
		"too long":        {wish("test", map[string]any{"share_percent": 20, "by": "opened", "minutes": 300}), "body.test.minutes"},
		"http picture":    {wish("blocks", map[string]any{"default": []any{map[string]any{"type": "image", "text": "x", "url": "http://shop.example/x.png"}}}), "body.blocks.1.url"},
	} {
		a := r.want(r.call(r.admin(), "POST", "/admin/campaigns", c.body), 422, "invalid_request")
		if got := a.at("errors.0.location"); got != c.where {
			t.Errorf("%s: %v, want %s: %s", name, got, c.where, a.Body)
		}
	}
	a := r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish()), 201, "")
	if a.at("test.by") != "opened" || a.at("test.end_early") != true || a.at("test.winner") != nil || a.at("link") != "https://shop.example/tea" || len(a.at("blocks.default").([]any)) != 4 {
		t.Fatalf("created: %s", a.Body)
	}
	path := "/admin/campaigns/" + a.at("id").(string)
	r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"link":null}`), 422, "invalid_request")
	if a = r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"link":null,"blocks":null,"test":null,"name":"Later"}`), 200, ""); a.at("test") != nil || a.at("link") != nil || a.at("blocks") != nil {
		t.Errorf("changed: %s", a.Body)
	}
	if a = r.want(r.call(r.admin(), "GET", path+"/results", nil), 200, ""); len(a.at("looks").([]any)) != 0 || len(a.at("series").([]any)) != 0 || a.at("goal") != "opened" {
		t.Errorf("results: %s", a.Body)
	}
}
