package api_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
)

// TestRecipes: staff save recipes of a shop, read them with the figures of their rounds, and stop them.
func TestRecipes(t *testing.T) { testRecipes(t) }

func testRecipes(t *testing.T) {
	r := newFixture(t, nil)
	drop := r.drop(time.Hour)
	const all, missed = "/admin/shops/10/recipes", "/admin/shops/10/recipes/missed"
	wish := func(change ...any) map[string]any {
		w := map[string]any{"on": true, "channel": "email", "title": map[string]any{"default": "Still there", "zh-CN": "还有余量"}, "body": map[string]any{"default": "Some of {{drop}} are left.", "zh-CN": "{{drop}}还有余量。"}, "hold_out_percent": 10, "after_minutes": 30, "version": 0}
		for i := 0; i < len(change); i += 2 {
			w[change[i].(string)] = change[i+1]
		}
		return w
	}
	if a := r.want(r.call(r.admin(), "GET", all, nil), 200, ""); len(a.at("recipes").([]any)) != 4 || a.at("recipes.0.form") != "missed" || a.at("recipes.0.version") != 0.0 || a.at("recipes.0.on") != false {
		t.Errorf("the recipes: %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "POST", missed+"/stop", nil), 200, ""); a.at("version") != 0.0 {
		t.Errorf("one that was never saved: %s", a.Body)
	}
	made := r.want(r.call(r.admin(), "PUT", missed, wish()), 200, "")
	if made.at("version") != 1.0 || made.at("on") != true || made.at("channel") != "email" || made.at("body.zh-CN") != "{{drop}}还有余量。" || made.at("title.default") != "Still there" || len(made.at("rounds").([]any)) != 0 {
		t.Errorf("made: %s", made.Body)
	}
	r.want(r.call(r.admin(), "PUT", missed, wish("after_minutes", 45)), 409, "stale_version")
	if a := r.want(r.call(r.admin(), "PUT", missed, wish("after_minutes", 45, "version", 1)), 200, ""); a.at("after_minutes") != 45.0 || a.at("version") != 2.0 {
		t.Errorf("changed: %s", a.Body)
	}
	r.exec(`insert into recipe_rounds (recipe_id, key, state, template_id, until, settings, users, why) select id, 'drop:1', 'done', $1, now() + interval '1 day', '{}', 7, '{"Code": "empty_link", "Text": "no link"}' from recipes`, drop)
	a := r.want(r.call(r.admin(), "GET", missed, nil), 200, "")
	for at, want := range map[string]any{"rounds.0.users": 7.0, "rounds.0.sent": 0.0, "rounds.0.left": 7.0, "rounds.0.template_id": drop, "rounds.0.state": "done", "rounds.0.code": "empty_link", "rounds.0.reason": "no link", "rounds.0.expired": false} {
		if a.at(at) != want {
			t.Errorf("%s is %v, want %v", at, a.at(at), want)
		}
	}
	for range 2 {
		if a := r.want(r.call(r.admin(), "POST", missed+"/stop", nil), 200, ""); a.at("on") != false || a.at("version") != 3.0 || a.at("after_minutes") != 45.0 {
			t.Errorf("stopped: %s", a.Body)
		}
	}
	r.want(r.call(r.admin(), "PUT", "/admin/shops/10/recipes/win_back", map[string]any{"on": true, "channel": "app", "title": "Back", "body": "For you", "days": 60, "every_days": 30, "grant_template_id": drop, "clock": "10:00", "version": 0}), 200, "")
	foreign := r.draft(time.Hour)
	r.exec(`insert into shops (number, name, timezone) values (11, 'Another', 'UTC') on conflict do nothing`)
	r.exec(`update templates set shop_number = 11 where id = $1`, foreign)
	for _, unknown := range []string{"999999", foreign} {
		bad := r.want(r.call(r.admin(), "PUT", "/admin/shops/10/recipes/win_back", map[string]any{"on": true, "channel": "app", "title": "Back", "body": "For you", "days": 60, "every_days": 30, "grant_template_id": unknown, "version": 1}), 422, "invalid_request")
		if bad.at("errors.0.location") != "body.grant_template_id" {
			t.Errorf("a drop of no or another shop: %s", bad.Body)
		}
	}
	weekly := map[string]any{"on": true, "channel": "app", "title": "This week", "body": "{{drops}}", "weekday": "sunday", "clock": "09:30", "version": 0}
	if a := r.want(r.call(r.admin(), "PUT", "/admin/shops/10/recipes/calendar", weekly), 200, ""); a.at("weekday") != "sunday" || a.at("clock") != "09:30" {
		t.Errorf("the calendar: %s", a.Body)
	}
	for name, bad := range map[string]map[string]any{"minutes": wish("version", 3, "after_minutes", 0), "channel": wish("channel", "pigeon"), "title": wish("version", 3, "title", " "), "clock": wish("clock", "25:00"), "drop": wish("grant_template_id", "x"),
		"hold-out": wish("hold_out_percent", 99)} {
		r.about = name
		r.want(r.call(r.admin(), "PUT", missed, bad), 422, "invalid_request")
	}
	r.about = ""
	r.want(r.call(r.admin(), "PUT", "/admin/shops/99/recipes/missed", wish()), 404, "shop_not_found")
	for _, path := range []string{"/admin/shops/x/recipes/missed", "/admin/shops/10/recipes/expiring"} {
		r.want(r.call(r.admin(), "PUT", path, wish()), 422, "invalid_request")
		r.want(r.call(r.admin(), "GET", path, nil), 422, "invalid_request")
		r.want(r.call(r.admin(), "POST", path+"/stop", nil), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "GET", "/admin/shops/x/recipes", nil), 422, "invalid_request")
	for _, path := range []string{all, missed} {
		r.want(r.call(as(""), "GET", path, nil), 401, "unauthenticated")
	}
	for _, caller := range []struct {
		key    string
		status int
		code   string
	}{{"", 401, "unauthenticated"}, {r.keys[staff.ScopeRead], 403, "forbidden"}} {
		r.want(r.call(as(caller.key), "PUT", missed, wish()), caller.status, caller.code)
		r.want(r.call(as(caller.key), "POST", missed+"/stop", nil), caller.status, caller.code)
	}
}
