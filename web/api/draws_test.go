package api_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/draw"
	"dropbell/domain/pass"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// noRounds is a judge for draws that have no rounds.
type noRounds struct{}

func (noRounds) Verify(string, int64, []byte) error { return errors.New("there are no rounds") }

// operator returns the worker of the fixture's draws.
func (r *fixture) operator() *draw.Operator {
	r.Helper()
	keys, err := draw.NewKeys(secret)
	r.must(err)
	claims := couponsdb.NewClaims(r.db, postgres.Grouping{})
	r.Cleanup(claims.Close)
	return &draw.Operator{Store: dropsdb.NewDraws(r.db), Keys: keys, Gate: claims, Judge: noRounds{}, Random: rand.Uint64}
}

// A draw from the draft to the proof, as users, staff and strangers see it.
func testDraw(t *testing.T) {
	r := newFixture(t, nil)
	o := r.operator()
	w := wish(time.Hour)
	w["stock"], w["opening_mode"], w["draw_source"] = 2, "draw", "commit"
	bad := wish(time.Hour)
	bad["opening_mode"], bad["per_user_limit"], bad["claim_mode"] = "shuffled", 2, "gate"
	if a := r.want(r.call(r.admin(), "POST", "/admin/templates", bad), 422, "invalid_request"); !strings.Contains(a.Body.String(), "entry_minutes") ||
		!strings.Contains(a.Body.String(), "per_user_limit") || !strings.Contains(a.Body.String(), "claim_mode") {
		t.Errorf("the refusal: %s", a.Body)
	}
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	path := "/draws/" + id
	r.want(r.call(as(token(7)), "PUT", path+"/entry", nil), 404, "template_not_found")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	r.want(r.call(as(""), "GET", path+"/card", nil), 404, "draw_not_found")
	r.want(r.call(as(token(7)), "PUT", path+"/entry", nil), 409, "not_started")
	r.must(o.Sweep(context.Background()))
	if shown := r.want(r.call(as(""), "GET", "/templates/"+id, nil), 200, ""); shown.json["opening_mode"] != "draw" {
		t.Errorf("users see %s", shown.Body)
	}

	first := r.want(r.call(as(token(7)), "PUT", path+"/entry", nil), 201, "")
	if again := r.want(r.call(as(token(7)), "PUT", path+"/entry", nil), 200, ""); again.json["receipt"] != first.json["receipt"] || first.json["receipt"] == "" {
		t.Errorf("a repetition is answered %s after %s", again.Body, first.Body)
	}
	for user := 8; user < 12; user++ {
		r.want(r.call(as(token(user)), "PUT", path+"/entry", nil), 201, "")
	}
	r.want(r.call(as(token(11)), "DELETE", path+"/entry", nil), 204, "")
	r.want(r.call(as(token(11)), "GET", path+"/entry", nil), 404, "not_entered")
	r.want(r.call(as(token(7)), "POST", "/claims", claimOf(id)), 409, "template_not_open")
	r.want(r.call(r.admin(), "POST", "/admin"+path+"/strikes", map[string]any{"user_id": "10", "reason": "Employee"}), 204, "")
	r.want(r.call(r.admin(), "POST", "/admin"+path+"/strikes", map[string]any{"user_id": "10", "reason": "Employee"}), 409, "entry_struck")
	r.want(r.call(r.admin(), "POST", "/admin"+path+"/strikes", map[string]any{"user_id": "11", "reason": "Employee"}), 404, "not_entered")
	r.want(r.call(r.admin(), "POST", "/admin"+path+"/figures", map[string]any{"figures": "1 2"}), 409, "invalid_transition")
	card := r.want(r.call(as(""), "GET", path+"/card", nil), 200, "")
	if card.json["state"] != "open" || card.json["entries"] != 3.0 || card.json["source"] != "commit" || card.json["seal"] != nil {
		t.Errorf("the card: %s", card.Body)
	}

	r.exec(`update templates set opens_at = date_trunc('second', now()) + interval '2 seconds', version = version + 1 where id = $1`, id)
	for r.number(`select count(*) from draws where template_id = $1 and state = 'done'`, id) == 0 {
		r.must(o.Sweep(context.Background()))
	}
	proof := r.want(r.call(as(""), "GET", path+"/proof", nil), 200, "")
	if proof.json["won"] != 2.0 || proof.json["struck"] != 1.0 || proof.json["seed"] == "" || len(proof.json["cards"].([]any)) != 2 {
		t.Errorf("the proof: %s", proof.Body)
	}
	won := 0
	for user := 7; user < 10; user++ {
		e := r.want(r.call(as(token(user)), "GET", path+"/entry", nil), 200, "")
		if e.json["state"] == "won" && e.json["coupon_id"] != "" && e.json["score"].(string) <= e.json["cutoff"].(string) {
			won++
		}
	}
	if e := r.want(r.call(as(token(10)), "GET", path+"/entry", nil), 200, ""); won != 2 || e.json["state"] != "struck" || e.json["reason"] != "Employee" {
		t.Errorf("%d won; the struck entry is %s", won, e.Body)
	}
	r.want(r.call(as(token(12)), "PUT", path+"/entry", nil), 409, "entries_closed")
	r.want(r.call(as(token(7)), "DELETE", path+"/entry", nil), 409, "entries_closed")
	ticket := first.json["ticket"].(string)
	path1 := r.want(r.call(as(""), "GET", path+"/proof?ticket="+ticket, nil), 200, "")
	if path1.at("inclusion.ticket") != ticket || path1.at("inclusion.weight") != 1.0 || len(path1.at("inclusion.path").([]any)) == 0 {
		t.Errorf("the path of a ticket: %s", path1.Body)
	}
	r.want(r.call(as(""), "GET", path+"/proof?ticket="+strings.Repeat("0", 32), nil), 404, "ticket_not_found")
	r.want(r.call(as(""), "GET", path+"/proof?ticket=x", nil), 422, "invalid_request")
	if list := r.call(as(""), "GET", path+"/list?chunk=0", nil); list.Code != 200 || list.Body.Len() != 3*draw.RowSize || !strings.Contains(list.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("the list: %d with %d bytes, %v", list.Code, list.Body.Len(), list.Header())
	}
	r.want(r.call(as(""), "GET", path+"/list?chunk=x", nil), 422, "invalid_request")
	r.want(r.call(as(""), "GET", "/draws/999/proof", nil), 404, "draw_not_found")
	other := r.open(1)
	r.want(r.call(as(token(7)), "PUT", "/draws/"+other+"/entry", nil), 409, "template_not_open")
}

// testDrawFigures: two members type the figures of a public draw, and the second one completes them.
func testDrawFigures(t *testing.T) {
	r := newFixture(t, nil)
	o := r.operator()
	w := wish(time.Hour)
	w["stock"], w["opening_mode"], w["draw_source"], w["draw_public"] = 1, "draw", "public", "Lotto of 2027-01-01"
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	path := "/admin/draws/" + id + "/figures"
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	until := func(state string) {
		t.Helper()
		for r.number(`select count(*) from draws where template_id = $1 and state = $2`, id, state) == 0 {
			r.must(o.Sweep(context.Background()))
		}
	}
	until("open")
	r.want(r.call(as(token(7)), "PUT", "/draws/"+id+"/entry", nil), 201, "")
	r.exec(`update templates set opens_at = date_trunc('second', now()) + interval '2 seconds', version = version + 1 where id = $1`, id)
	until("sealed")
	r.want(r.call(r.admin(), "POST", path, map[string]any{"figures": "one"}), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", path, map[string]any{"figures": "4 8, 15"}), 200, "")
	second := as(r.key(staff.Key{Scopes: []staff.Scope{staff.ScopeAdmin}}))
	r.want(r.call(second, "POST", path, map[string]any{"figures": "4 8 16"}), 409, "figures_differ")
	r.want(r.call(second, "POST", path, map[string]any{"figures": "4 8 15"}), 200, "")
	until("done")
	if e := r.want(r.call(as(token(7)), "GET", "/draws/"+id+"/entry", nil), 200, ""); e.json["state"] != "won" {
		t.Errorf("the only entry is %s", e.Body)
	}
}

// A protected draw with doors whose winners accept: entries need the pass and the door, and the winner's coupon comes with the
// acceptance.
func testDrawWithDoorsPassesAndOffers(t *testing.T) {
	r := newFixture(t, nil)
	o := r.operator()
	w := wish(time.Hour)
	w["stock"], w["opening_mode"], w["draw_source"], w["accept_hours"], w["protection"] = 1, "draw", "commit", 2, "standard"
	w["closes_at"] = time.Now().Add(30 * time.Hour).UTC().Truncate(time.Second)
	bad := maps.Clone(w)
	bad["stock"] = 5000
	if a := r.want(r.call(r.admin(), "POST", "/admin/templates", bad), 422, "invalid_request"); !strings.Contains(a.Body.String(), "accept_hours") {
		t.Errorf("the refusal: %s", a.Body)
	}
	draft := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "")
	id := draft.json["id"].(string)
	r.exec(`update templates set protection = 'standard' where id = $1`, id)
	r.exec(`insert into users (id, locale) values (7, 'fr'), (8, 'fr')`)
	group := fmt.Sprint(r.number(`insert into segments (name, kind, rule, created_by) values ('French', 'rules', '{"all":[{"field":"locale","op":"is","values":["fr"]}]}', 'x') returning id`))
	doors := map[string]any{"doors": []any{map[string]any{"name": "Members", "who": "segment", "segment_id": group, "weight": 3}}, "tests": []any{
		map[string]any{"user_id": "7", "wants": 1}, map[string]any{"user_id": "8", "wants": 1}, map[string]any{"user_id": "9", "wants": 0}}}
	r.want(r.call(r.admin("If-Match", `"1"`), "PUT", "/admin/templates/"+id+"/doors", doors), 200, "")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	r.must(o.Sweep(t.Context()))
	path := "/draws/" + id
	r.want(r.call(as(token(7)), "PUT", path+"/entry", nil), 403, "pass_required")
	pass := func(by user.ID) map[string]any {
		return map[string]any{"pass": passKeys.Issue(pass.Pass{Way: pass.Puzzle, IssuedAt: now(), ExpiresAt: now().Add(time.Hour)}, by, r.number(`select $1::bigint`, id)), "channels": []string{"app"}}
	}
	r.want(r.call(as(token(9)), "PUT", path+"/entry", pass(9)), 409, "not_eligible")
	if e := r.want(r.call(as(token(7)), "PUT", path+"/entry", pass(7)), 201, ""); e.json["weight"] != 3.0 {
		t.Errorf("the entry: %s", e.Body)
	}
	if c := r.want(r.call(as(""), "GET", path+"/card", nil), 200, ""); c.at("doors.0.name") != "Members" || c.at("doors.0.weight") != 3.0 || c.json["accept_hours"] != 2.0 {
		t.Errorf("the card: %s", c.Body)
	}
	r.want(r.call(as(token(7)), "POST", path+"/acceptance", nil), 409, "not_won")
	r.want(r.call(as(token(8)), "POST", path+"/acceptance", nil), 404, "not_entered")
	r.exec(`update templates set opens_at = date_trunc('second', now()) + interval '2 seconds', version = version + 1 where id = $1`, id)
	for r.number(`select count(*) from draws where template_id = $1 and state = 'offered'`, id) == 0 {
		r.must(o.Sweep(t.Context()))
	}
	if e := r.want(r.call(as(token(7)), "GET", path+"/entry", nil), 200, ""); e.json["state"] != "offered" || e.json["accept_until"] == nil || e.json["coupon_id"] != nil {
		t.Errorf("the offer: %s", e.Body)
	}
	for range 2 {
		if e := r.want(r.call(as(token(7)), "POST", path+"/acceptance", nil), 200, ""); e.json["state"] != "won" || e.json["coupon_id"] == nil {
			t.Errorf("the acceptance: %s", e.Body)
		}
	}
}
