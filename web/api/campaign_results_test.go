package api_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
)

func testCampaignResults(t *testing.T) {
	r := newFixture(t, nil)
	tpl := r.draft(time.Hour)
	r.exec(`insert into users (id) select generate_series(1, 400)`)
	r.exec(`update users set opt_outs = 1 where id % 40 = 0`)
	wish := campaignWish("audience", map[string]any{"all": true}, "hold_out_percent", 30,
		"variant_b", map[string]any{"title": "Hi", "body": "Come", "percent": 50})
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", wish), 201, "").at("id").(string)
	if a := r.want(r.call(r.admin(), "GET", path+"/results", nil), 200, ""); a.at("counted_to") != nil || len(a.at("groups").([]any)) != 0 || a.at("final") != false {
		t.Errorf("a draft: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	r.carryOut(t)
	if _, err := campaignsdb.NewCampaigns(r.db, audiencedb.NewSegments(r.db)).CountNext(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := r.want(r.call(r.admin(), "GET", path+"/results", nil), 200, "")
	sum := 0.0
	for i, name := range []string{"a", "b", "hold_out"} {
		g := a.at("groups").([]any)[i].(map[string]any)
		if g["group"] != name || g["used"] != nil || (g["sent"] == 0.0) != (name == "hold_out") {
			t.Errorf("group %d: %v", i, g)
		}
		sum += g["assigned"].(float64)
	}
	// Without a template the versions are compared by clicks.
	if sum != 400 || a.at("counted_to") == nil || a.at("until") == nil || len(a.at("comparisons").([]any)) != 1 || a.at("goal") != "opened" {
		t.Errorf("counted: %s", a.Body)
	}

	// With a template, users' actions are counted.
	r.exec(`update campaigns set audience = jsonb_build_object('kind', 'holds_template_id', 'id', $1::text), count_due_at = now()`, tpl)
	r.exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at, used_at)
		select $1::bigint, id, id, 'claim', 'used', now(), now() + interval '1 day', clock_timestamp() from users where id <= 100`, tpl)
	if _, err := campaignsdb.NewCampaigns(r.db, audiencedb.NewSegments(r.db)).CountNext(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = r.want(r.call(r.admin(), "GET", path+"/results", nil), 200, "")
	used := 0.0
	for i := range 3 {
		g := a.at("groups").([]any)[i].(map[string]any)
		u := g["used"].(map[string]any)
		used += u["people"].(float64)
		if u["of"] != g["assigned"] || u["low"].(float64) > u["rate"].(float64) || u["high"].(float64) < u["rate"].(float64) {
			t.Errorf("%v", g)
		}
	}
	if used != 100 || a.at("goal") != "used" || len(a.at("comparisons").([]any)) != 4+3 { // held-out users open nothing
		t.Errorf("counted: %s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/campaigns/999/results", nil), 404, "campaign_not_found")
}

func TestCampaignRecipientsByPages(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id) select generate_series(1, 250)`)
	r.exec(`update users set opt_outs = 1 where id % 10 = 0`)
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("hold_out_percent", 20)), 201, "").at("id").(string)
	if a := r.want(r.call(r.admin(), "GET", path+"/recipients", nil), 200, ""); len(a.at("recipients").([]any)) != 0 {
		t.Errorf("a draft: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	r.carryOut(t)
	all := func(query string) (list []map[string]any) {
		t.Helper()
		for after := ""; ; {
			a := r.want(r.call(r.admin(), "GET", path+"/recipients?limit=40"+query+after, nil), 200, "")
			for _, x := range a.at("recipients").([]any) {
				list = append(list, x.(map[string]any))
			}
			next, more := a.at("next").(string)
			if !more {
				return list
			}
			after = "&after=" + next
		}
	}
	sent, skipped, held, out := all("&outcome=sent"), all("&outcome=skipped"), all("&reason=hold_out"), all("&reason=opted_out")
	if len(all("")) != 250 || len(sent)+len(skipped) != 250 || len(held)+len(out) != len(skipped) || len(out) != 25 || len(held) < 20 {
		t.Errorf("%d in all, %d sent, %d skipped, %d held out, %d opted out", len(all("")), len(sent), len(skipped), len(held), len(out))
	}
	for _, x := range sent {
		if x["channel"] != "app" || x["variant"] != "a" || x["at"] != nil || x["not_before"] == nil || x["not_after"] == nil {
			t.Fatalf("%v", x)
		}
	}
	if a, b := len(all("&variant=a")), len(all("&variant=hold_out")); a+b != 250 || b < len(held) {
		t.Errorf("%d get it, %d do not", a, b)
	}
	if one := all("&user_id=10"); len(one) != 1 || one[0]["reason"] != "opted_out" {
		t.Errorf("%v", one)
	}
	for _, q := range []string{"?outcome=lost", "?variant=c", "?after=x", "?after=9999999999999999999", "?limit=0", "?limit=1001", "?reason=A", "?reason=xyz", "?reason=xyz&user_id=0", "?user_id=0", "?colour=red"} {
		r.want(r.call(r.admin(), "GET", path+"/recipients"+q, nil), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "GET", "/admin/campaigns/999/recipients", nil), 404, "campaign_not_found")
}

// The file has the recipients of the list in the list's order, with the texts of the list.
func testCampaignRecipientsAsFile(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id) select generate_series(1, 120)`)
	r.exec(`update users set opt_outs = 1 where id % 10 = 0`)
	path := "/admin/campaigns/" + r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish("hold_out_percent", 20)), 201, "").at("id").(string)
	file := func(query string) (list []map[string]string) {
		t.Helper()
		a := r.want(r.call(r.admin(), "GET", path+"/recipients.csv"+query, nil), 200, "")
		if a.Header().Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasSuffix(a.Header().Get("Content-Disposition"), `-recipients.csv"`) {
			t.Errorf("%v", a.Header())
		}
		rows, err := csv.NewReader(a.Body).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			x := map[string]string{}
			for i, name := range rows[0] {
				x[name] = row[i]
			}
			list = append(list, x)
		}
		return list
	}
	if list := file(""); len(list) != 0 {
		t.Errorf("a draft: %v", list)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	r.carryOut(t)
	r.exec(`update exceptions set detail = '=1+1' where user_id = 10`)
	for _, query := range []string{"", "&outcome=sent", "&outcome=skipped", "&reason=opted_out", "&variant=hold_out", "&user_id=10", "&user_id=121"} {
		a := r.want(r.call(r.admin(), "GET", path+"/recipients?limit=1000"+query, nil), 200, "")
		want, got := a.at("recipients").([]any), file(strings.Replace(query, "&", "?", 1))
		if len(got) != len(want) {
			t.Fatalf("%q: %d in the file, %d in the list", query, len(got), len(want))
		}
		for i := range want {
			for name, text := range got[i] {
				value := want[i].(map[string]any)[name]
				if value == nil {
					value = map[bool]string{true: "0"}[name == "attempts"]
				}
				if text != fmt.Sprint(value) && text != "'"+fmt.Sprint(value) {
					t.Fatalf("%q: %s is %q in the file, %v in the list", query, name, text, value)
				}
			}
		}
	}
	if one := file("?user_id=10"); one[0]["detail"] != "'=1+1" {
		t.Errorf("%v", one)
	}
	for _, q := range []string{"?outcome=lost", "?user_id=0", "?limit=5", "?after=1", "?colour=red"} {
		r.want(r.call(r.admin(), "GET", path+"/recipients.csv"+q, nil), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "GET", "/admin/campaigns/999/recipients.csv", nil), 404, "campaign_not_found")
	r.want(r.call(as(token(7)), "GET", path+"/recipients.csv", nil), 403, "forbidden")
	r.want(r.call(as(""), "GET", path+"/recipients.csv", nil), 401, "unauthenticated")
}
