package api_test

import (
	"sync"
	"testing"
	"time"
)

// coded returns a published drop that has opened for users with an access code; it opens for all users in an hour.
func (r *fixture) coded() string {
	r.Helper()
	id := r.drop(time.Hour)
	r.exec(`insert into doors (template_id, place, name, who, lead_minutes, share, user_limit, texts, frozen_at, cut_at, cut_to)
		values ($1, 1, 'Invited', 'codes', 120, 0, 0, '{}', now(), now(), 9223372036854775807), ($1, 2, 'Everybody', 'all', 0, 0, 0, '{}', now(), now(), 9223372036854775807)`, id)
	r.exec(`update templates set doors = 2, version = version + 1 where id = $1`, id)
	return id
}

func TestAccessCodes(t *testing.T) { testAccessCodes(t) }

// testAccessCodes: a code opens the door to the first user who enters it, before or with the claim, and works once. A
// repetition changes nothing, codes of other drops are not valid, and reminders count to the door's opening.
func testAccessCodes(t *testing.T) {
	r := newFixture(t, nil)
	id, other, plain := r.coded(), r.coded(), r.drop(time.Hour)
	codes, foreign := r.codes(id, 4), r.codes(other, 1)[0]
	enter := func(by int, drop, code string, status int, want string) {
		t.Helper()
		r.want(r.call(as(token(by)), "POST", "/access-codes", map[string]any{"template_id": drop, "code": code}), status, want)
	}
	claims := func(by int, code string, status int, want string) {
		t.Helper()
		body := claimOf(id)
		if code != "" {
			body = map[string]any{"template_id": id, "access_code": code}
		}
		r.want(r.call(as(token(by)), "POST", "/claims", body), status, want)
	}
	claims(1, "", 409, "door_not_open") // through the door for all, later
	if a := r.want(r.call(as(token(1)), "GET", "/templates/"+id, nil), 200, ""); a.at("doors") != true || a.at("door.name") != "Everybody" {
		t.Errorf("before the code: %s", a.Body)
	}
	enter(1, id, foreign, 422, "code_invalid")
	enter(1, id, "hello", 422, "code_invalid")
	enter(1, plain, codes[0], 409, "not_by_code")
	enter(1, "99999", codes[0], 404, "template_not_found")
	for range 2 {
		enter(1, id, codes[0], 204, "")
	}
	enter(1, id, codes[1], 204, "") // the user has one already: this one stays unused
	enter(2, id, codes[0], 409, "code_used")
	claims(2, codes[0], 409, "code_used")
	if a := r.want(r.call(as(token(1)), "GET", "/templates/"+id, nil), 200, ""); a.at("door.name") != "Invited" {
		t.Errorf("with the code: %s", a.Body)
	}
	claims(1, "", 201, "")
	claims(3, codes[1], 201, "")
	claims(3, codes[1], 409, "limit_reached")
	if n := r.number(`select used from code_batches where template_id = $1`, id); n != 2 {
		t.Errorf("%d codes are used, want 2", n)
	}
	// One code, many users at once.
	var all sync.WaitGroup
	for by := range 8 {
		all.Go(func() {
			r.call(as(token(100+by)), "POST", "/access-codes", map[string]any{"template_id": id, "code": codes[2]})
		})
	}
	all.Wait()
	if n := r.number(`select count(*) from door_codes where template_id = $1 and user_id >= 100`, id); n != 1 {
		t.Errorf("%d of 8 users got one code", n)
	}
	// A drop for users with a code alone.
	r.exec(`delete from doors where template_id = $1 and place = 2`, id)
	r.exec(`update templates set doors = 1, version = version + 1 where id = $1`, id)
	claims(50, "", 409, "code_needed")
	if a := r.want(r.call(as(token(50)), "GET", "/templates/"+id, nil), 200, ""); a.at("door.eligible") != false || a.at("door.code_needed") != true {
		t.Errorf("the door of a user without a code: %s", a.Body)
	}
	r.want(r.call(as(token(50)), "POST", "/reservations", reserve(id, "app", 5)), 409, "code_needed")
	r.exec(`update code_batches set state = 'revoked' where template_id = $1`, id)
	enter(50, id, codes[3], 422, "code_invalid")
	r.exec(`update templates set state = 'closed', ended_at = now() where id = $1`, other)
	enter(50, other, foreign, 409, "template_not_open")
}
