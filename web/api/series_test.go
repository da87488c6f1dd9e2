package api_test

import (
	"fmt"
	"testing"
	"time"
)

// series returns a series of shop 10 whose next drop is the given one.
func (r *fixture) series(drop string) string {
	r.Helper()
	id := r.number(`insert into series (shop_number, name, rule, starts_on, clock, content) values (10, 'Evenings', 'FREQ=DAILY', '2027-01-01', 0, '{}') returning id`)
	r.exec(`insert into series_drops (series_id, day, state, template_id, copied_at) values ($1, '2027-01-01', 'kept', $2, now())`, id, drop)
	return fmt.Sprint(id)
}

// standing is a wish for the reminders of each drop: channel and minutes, alternately.
func standing(reminders ...any) map[string]any {
	w := reserve("1", reminders...)
	delete(w, "template_id")
	return w
}

// TestStanding: a user is reminded of each drop of a series, changes that, and ends it.
func TestStanding(t *testing.T) { testStanding(t) }

func testStanding(t *testing.T) {
	r := newFixture(t, nil)
	coming := r.drop(2 * time.Hour)
	id := r.series(coming)
	path, first, second := "/series/"+id+"/reservation", as(token(7)), as(token(8))
	r.want(r.call(first, "GET", path, nil), 404, "not_reserved")
	r.want(r.call(first, "DELETE", path, nil), 404, "not_reserved")
	made := r.want(r.call(first, "PUT", path, standing("app", 10, "email", 60)), 201, "")
	if list := made.at("reminders").([]any); made.at("series_id") != id || made.at("series_name") != "Evenings" || len(list) != 2 || list[0].(map[string]any)["channel"] != "email" {
		t.Errorf("made: %s", made.Body)
	}
	r.want(r.call(first, "PUT", path, standing("app", 10)), 200, "")
	if a := r.want(r.call(first, "GET", path, nil), 200, ""); a.at("slots") != "2" || a.at("created_at") != made.at("created_at") {
		t.Errorf("it is %s", a.Body)
	}
	if a := r.want(r.call(first, "GET", "/reservations/"+coming, nil), 200, ""); a.at("slots") != "2" {
		t.Errorf("the next drop: %s", a.Body)
	}
	if a := r.want(r.call(nil, "GET", "/templates/"+coming, nil), 200, ""); a.at("series_id") != id {
		t.Errorf("the drop: %s", a.Body)
	}
	if a := r.want(r.call(first, "GET", "/series/reservations", nil), 200, ""); len(a.at("reservations").([]any)) != 1 {
		t.Errorf("all: %s", a.Body)
	}
	if a := r.want(r.call(second, "GET", "/series/reservations", nil), 200, ""); len(a.at("reservations").([]any)) != 0 {
		t.Errorf("of another user: %s", a.Body)
	}
	if a := r.want(r.call(first, "DELETE", path, nil), 200, ""); a.at("slots") != "2" {
		t.Errorf("ended: %s", a.Body)
	}
	r.want(r.call(first, "DELETE", path, nil), 404, "not_reserved")
	r.want(r.call(first, "GET", "/reservations/"+coming, nil), 404, "not_reserved")
	r.want(r.call(first, "PUT", path, standing("sms", 10)), 422, "channel_unavailable")
	r.want(r.call(first, "PUT", path, standing("pigeon", 10)), 422, "channel_unavailable")
	r.want(r.call(first, "PUT", path, standing("app", 10, "app", 10)), 422, "invalid_request")
	r.want(r.call(first, "PUT", path, map[string]any{"shop_number": "11", "reminders": standing("app", 10)["reminders"]}), 422, "invalid_request")
	r.want(r.call(first, "PUT", "/series/999/reservation", standing("app", 10)), 404, "series_not_found")
	r.want(r.call(first, "GET", "/series/999/reservation", nil), 404, "series_not_found")
	r.want(r.call(first, "DELETE", "/series/999/reservation", nil), 404, "series_not_found")
	r.want(r.call(first, "GET", "/series/x/reservation", nil), 422, "invalid_request")
	r.want(r.call(first, "DELETE", "/series/x/reservation", nil), 422, "invalid_request")
	r.want(r.call(as(""), "PUT", path, standing("app", 10)), 401, "unauthenticated")
	r.want(r.call(as(""), "GET", path, nil), 401, "unauthenticated")
	r.want(r.call(as(""), "DELETE", path, nil), 401, "unauthenticated")
	r.want(r.call(as(""), "GET", "/series/reservations", nil), 401, "unauthenticated")
	r.exec(`update series set state = 'ended' where id = $1`, id)
	r.want(r.call(second, "PUT", path, standing("app", 10)), 409, "series_ended")
}
