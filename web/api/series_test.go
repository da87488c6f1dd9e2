package api_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
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

// TestSeriesOfDrops: staff create, read, pause and end a series.
func TestSeriesOfDrops(t *testing.T) { testSeriesOfDrops(t) }

func testSeriesOfDrops(t *testing.T) {
	r := newFixture(t, nil)
	drop := r.drop(time.Hour)
	wish := func(change ...string) map[string]any {
		w := map[string]any{"name": "Friday deal", "template_id": drop, "rrule": "FREQ=WEEKLY;BYDAY=FR", "starts": "2027-01-01", "clock": "20:00", "skips": []string{"2027-01-08"}}
		for i := 0; i < len(change); i += 2 {
			w[change[i]] = change[i+1]
		}
		return w
	}
	made := r.want(r.call(r.admin(), "POST", "/admin/series", wish()), 201, "")
	id := made.at("id").(string)
	if made.at("rrule") != "FREQ=WEEKLY;BYDAY=FR" || made.at("state") != "active" || made.at("clock") != "20:00" || made.at("shop_number") != "10" {
		t.Errorf("made: %s", made.Body)
	}
	r.exec(`insert into series_drops (series_id, day, state, template_id, copied_at, reminded, why) values ($1, '2027-01-01', 'kept', $2, now(), 3, '{"Code": "flight_red", "Text": "red"}'), ($1, '2027-01-15', 'planned', null, null, 0, null)`, id, drop)
	a := r.want(r.call(r.admin(), "GET", "/admin/series/"+id, nil), 200, "")
	if a.at("next.1.day") != "2027-01-15" || a.at("drops.0.template_id") != drop || a.at("drops.0.reminded") != 3.0 || a.at("drops.0.code") != "flight_red" || a.at("standing") != 0.0 {
		t.Errorf("the series: %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", "/admin/series", nil), 200, ""); len(a.at("series").([]any)) != 1 {
		t.Errorf("all: %s", a.Body)
	}
	for _, bad := range []map[string]any{wish("rrule", "FREQ=HOURLY"), wish("clock", "25:00"), wish("starts", "2027-13-01"), wish("name", " "), wish("template_id", "x")} {
		r.about = fmt.Sprint(bad)
		r.want(r.call(r.admin(), "POST", "/admin/series", bad), 422, "invalid_request")
	}
	r.about = ""
	r.want(r.call(r.admin(), "POST", "/admin/series", wish("template_id", "999")), 404, "template_not_found")
	for _, step := range []string{"pause", "resume", "end"} {
		at := "/admin/series/" + id + "/" + step
		r.want(r.call(r.admin(), "POST", at, nil), 200, "")
		r.want(r.call(r.admin(), "POST", at, nil), 200, "") // which changes nothing
		r.want(r.call(r.admin(), "POST", "/admin/series/999/"+step, nil), 404, "series_not_found")
		r.want(r.call(r.admin(), "POST", "/admin/series/x/"+step, nil), 422, "invalid_request")
		r.want(r.call(as(""), "POST", at, nil), 401, "unauthenticated")
		r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", at, nil), 403, "forbidden")
	}
	for _, step := range []string{"pause", "resume"} {
		r.want(r.call(r.admin(), "POST", "/admin/series/"+id+"/"+step, nil), 409, "series_state")
	}
	r.want(r.call(r.admin(), "GET", "/admin/series/999", nil), 404, "series_not_found")
	r.want(r.call(r.admin(), "GET", "/admin/series/x", nil), 422, "invalid_request")
	for _, path := range []string{"/admin/series", "/admin/series/" + id} {
		r.want(r.call(as(""), "GET", path, nil), 401, "unauthenticated")
	}
	r.want(r.call(as(""), "POST", "/admin/series", wish()), 401, "unauthenticated")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", "/admin/series", wish()), 403, "forbidden")
	r.exec(`insert into series (shop_number, name, rule, starts_on, clock, content) select 10, 'Evenings', 'FREQ=DAILY', '2027-01-01', 0, '{}' from generate_series(1, 100)`)
	r.want(r.call(r.admin(), "POST", "/admin/series", wish()), 409, "too_many_series")
}
