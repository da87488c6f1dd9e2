package api_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/template"
)

// uncached reads every template anew.
type uncached struct{ dropsdb.Templates }

func (s uncached) Shared(ctx context.Context, id int64) (*template.Template, error) {
	t, err := s.Template(ctx, id)
	return &t, err
}

func (s uncached) Current(ctx context.Context, id int64) (*template.Template, error) {
	return s.Shared(ctx, id)
}

func (uncached) Forget(int64) {}

func TestDoors(t *testing.T) { testDoors(t) }

// testDoors: members claim an hour before all others. Test persons that are treated otherwise than expected prevent
// the publication; afterwards only openings and texts change. Each user learns about the own door alone.
func testDoors(t *testing.T) {
	r := newFixture(t, nil)
	const member, other, guest = 1001, 1002, 1003
	r.exec(`insert into users (id, attributes) values ($1, '{"tier": "gold"}'), ($2, '{}'), ($3, '{}')`, member, other, guest)
	segment := r.want(r.call(r.admin(), "POST", "/admin/segments", map[string]any{"name": "Gold", "rule": map[string]any{"field": "attribute", "name": "tier", "op": "is", "values": []string{"gold"}}}), 201, "").at("id").(string)
	draft := r.draft(2 * time.Hour)
	path := "/admin/templates/" + draft + "/doors"
	version := func() string {
		return r.want(r.call(r.admin(), "GET", "/admin/templates/"+draft, nil), 200, "").Header().Get("ETag")
	}
	door := func(name string, fields ...any) map[string]any {
		d := map[string]any{"name": name, "who": "all"}
		for i := 0; i < len(fields); i += 2 {
			d[fields[i].(string)] = fields[i+1]
		}
		return d
	}
	put := func(status int, code string, tests []any, doors ...any) answer {
		t.Helper()
		if tests == nil {
			tests = []any{}
		}
		return r.want(r.call(r.admin("If-Match", version()), "PUT", path, map[string]any{"doors": doors, "tests": tests}), status, code)
	}
	gold := door("Gold", "who", "segment", "segment_id", segment, "lead_minutes", 60, "share", 20, "texts", map[string]any{"en": "Gold members come first."})
	test := func(id, wants int) any {
		return map[string]any{"user_id": strconv.Itoa(id), "wants": wants}
	}
	r.want(r.call(r.admin(), "PUT", path, map[string]any{"doors": []any{}}), 428, "precondition_required")
	put(422, "invalid_request", nil, door("All"), gold)
	put(422, "invalid_request", nil, door("Gold", "who", "segment", "segment_id", "999"), door("All"))
	a := put(200, "", []any{test(member, 1), test(other, 1), test(guest, 2)}, gold, door("Everybody"))
	for at, want := range map[string]any{"doors.0.name": "Gold", "doors.0.size.members": 1.0, "doors.1.size.members": 3.0, "doors.1.size.come": 2.0, "doors.0.texts.en": "Gold members come first.",
		"tests.0.right": true, "tests.1.right": false, "tests.1.gets": 2.0, "tests.2.right": true} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	publish := "/admin/templates/" + draft + "/publish"
	r.want(r.call(r.admin(), "POST", publish, nil), 409, "door_tests")
	put(200, "", []any{test(member, 1), test(other, 2)}, gold, door("Everybody"))
	r.want(r.call(r.admin(), "POST", publish, nil), 409, "door_tests") // too few
	put(200, "", []any{test(member, 1), test(other, 2), test(guest, 2)}, gold, door("Everybody"))
	r.want(r.call(r.admin(), "POST", publish, nil), 200, "")
	put(409, "doors_fixed", nil, door("Everybody"))
	gold["lead_minutes"] = 90 // moves the door alone
	put(200, "", nil, gold, door("Everybody"))
	gold["lead_minutes"] = 120
	put(422, "invalid_request", nil, gold, door("Everybody")) // it would open now
	r.want(r.call(r.admin(), "GET", path, nil), 200, "")

	own := func(by any) answer { return r.want(r.call(as(token(by)), "GET", "/templates/"+draft, nil), 200, "") }
	claims := func(by any, status int, code string) answer {
		t.Helper()
		return r.want(r.call(as(token(by)), "POST", "/claims", claimOf(draft)), status, code)
	}
	if a := own(member); a.at("door.name") != "Gold" || a.at("door.eligible") != true || a.at("door.texts.en") != "Gold members come first." {
		t.Errorf("the member's door: %s", a.Body)
	}
	if a := r.want(r.call(nil, "GET", "/templates/"+draft, nil), 200, ""); a.at("door") != nil {
		t.Errorf("without a token: %s", a.Body)
	}
	claims(member, 409, "door_not_open")
	r.exec(`update templates set opens_at = date_trunc('second', now()) + interval '1 hour', version = version + 1 where id = $1`, draft)
	claims(member, 201, "")
	claims(member, 409, "limit_reached")
	if a := claims(other, 409, "door_not_open"); !strings.Contains(a.Body.String(), "opens for you at ") {
		t.Errorf("the refusal names no instant: %s", a.Body)
	}
	r.exec(`insert into door_refusals (template_id, door, code, claims) values ($1, 1, 'sold_out', 7), ($1, 1, 'limit_reached', 2), ($1, 0, 'not_eligible', 3)`, draft)
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("doors.0.refused.0.code") != "sold_out" || a.at("doors.0.refused.0.claims") != 7.0 || a.at("refused.0.claims") != 3.0 {
		t.Errorf("refused claims: %s", a.Body)
	}
	// The users of a household share the limit of a drop, and the import tells of households alone.
	limited := wish(2 * time.Hour)
	limited["household_limit"] = 1
	together := r.want(r.call(r.admin(), "POST", "/admin/templates", limited), 201, "").at("id").(string)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+together+"/publish", nil), 200, "")
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, together)
	r.want(r.call(r.admin("Content-Type", "application/x-ndjson"), "PUT", "/admin/users", `{"id":"1001","household":"5f2b9c0d7a1e4483"}`+"\n"+`{"id":"1002","household":"5f2b9c0d7a1e4483"}`+"\n"), 200, "")
	if a := r.want(r.call(nil, "GET", "/templates/"+together, nil), 200, ""); a.at("household_limit") != 1.0 {
		t.Errorf("the limit of a household: %s", a.Body)
	}
	r.want(r.call(as(token(member)), "POST", "/claims", claimOf(together)), 201, "")
	r.want(r.call(as(token(other)), "POST", "/claims", claimOf(together)), 409, "household_limit")
	if a := r.want(r.call(as(token(other)), "GET", "/reservations/"+together+"/explain", nil), 200, ""); !strings.Contains(a.Body.String(), `"reason":"1/1"`) {
		t.Errorf("the explanation: %s", a.Body)
	}
	// Only members come through the one door that is left.
	r.exec(`delete from doors where template_id = $1 and place = 2`, draft)
	r.exec(`update templates set doors = 1, version = version + 1 where id = $1`, draft)
	claims(2001, 409, "not_eligible")
	if a := own(2001); a.at("door.eligible") != false || a.at("door.opens_at") != nil {
		t.Errorf("the door of another: %s", a.Body)
	}
	r.exec(`update templates set state = 'closed', ended_at = now() where id = $1`, draft)
	put(409, "invalid_transition", nil, gold)
}
