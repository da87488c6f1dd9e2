package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// TestNothingIsOverlooked: input that would be ignored is refused instead.
func TestNothingIsOverlooked(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	for _, kind := range []string{"text/plain", "application/xml", "image/png", "multipart/form-data", "application/x-www-form-urlencoded", "garbage"} {
		r.about = kind
		r.want(r.call(as(token(7), "Content-Type", kind), "POST", "/reservations", reserve(id, "app", 5)), 415, "unsupported_media_type")
		r.want(r.call(as(token(7), "Content-Type", kind), "POST", "/claims", claimOf(id)), 415, "unsupported_media_type")
	}
	r.want(r.call(as(token(7), "Content-Encoding", "gzip"), "POST", "/reservations", reserve(id, "app", 5)), 415, "unsupported_media_type")
	for _, body := range []string{`{"Template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":5}]}`,
		`{"template_id":"1","\u017fhop_number":"10","reminders":[{"channel":"app","minutes":5}]}`,
		`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","MINUTES":5}]}`} {
		r.about = body
		r.want(r.call(me, "POST", "/reservations", strings.Replace(body, `"1"`, `"`+id+`"`, 1)), 422, "invalid_request")
	}
	if n := r.number(`select count(*) from reservations`); n != 0 {
		t.Fatalf("%d reserved all the same", n)
	}
	r.want(r.call(as(token(7), "Content-Type", "application/json; charset=utf-8"), "POST", "/reservations", reserve(id, "app", 5, "email", 10)), 201, "")
	for query, place := range map[string]string{"channel=app&minutes=5&minutes=10": "query.minutes", "reminders=app:5&reminders=email:10": "query.reminders",
		"channel=app&minutes=7": "query.minutes", "reminders=app:5,app:7": "query.reminders[1].minutes", "channel=app&minutes=": "query.minutes", "reminder=app:5&reminder=app:7": "query.reminder[1].minutes",
		"minutes=5": "query.channel", "channel=app&minutes=5&%zz": "query"} {
		r.about = query
		if a := r.want(r.call(me, "DELETE", "/reservations/"+id+"?"+query, nil), 422, "invalid_request"); a.at("errors.0.location") != place {
			t.Errorf("%s: not at %s: %s", query, place, a.Body)
		}
	}
	twice := as(token(7), "Idempotency-Key", "a")
	twice.Add("Idempotency-Key", "b")
	r.want(r.call(twice, "POST", "/reservations", reserve(id, "app", 10)), 422, "invalid_request")
	for _, query := range []string{"limit=1&limit=2", "limit=%zz", "before=%00"} {
		r.about = query
		r.want(r.call(me, "GET", "/reservations?"+query, nil), 422, "invalid_request")
	}
	for _, query := range []string{"fingerprint=%00", "fingerprint=%ff", "fingerprint=a%ed%a0%80", "fingerprint=a&fingerprint=b"} {
		r.about = query
		r.want(r.call(r.admin(), "GET", "/admin/dead-letters?"+query, nil), 422, "invalid_request")
	}
	for _, call := range []string{"replay", "discard"} {
		r.about = call
		r.want(r.call(r.admin(), "POST", "/admin/dead-letters/"+call, `{"filter":{"fingerprint":"a\u0000b"},"dry_run":true}`), 422, "invalid_request")
	}
	if n := r.number(`select slots from reservations`); n != 1+8192 {
		t.Errorf("refusals left %d", n)
	}
}

// TestEachReminderIsBlamed: one request, several reasons.
func TestEachReminderIsBlamed(t *testing.T) {
	r := newFixture(t, nil)
	me, id := as(token(7)), r.drop(12*time.Minute)
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5)), 201, "")
	for name, c := range map[string]struct {
		answer answer
		code   string
		places []string
	}{
		"reserved and due": {r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10, "app", 30)), "already_due",
			[]string{"body.reminders[2]", "body.reminders[0]"}},
		"minutes and channel": {r.call(me, "POST", "/reservations", reserve(id, "app", 7, "pigeon", 10, "fax", 10)), "invalid_request",
			[]string{"body.reminders[0].minutes", "body.reminders[1].channel", "body.reminders[2].channel"}},
		"unknown and without sender": {r.call(me, "POST", "/reservations", reserve(id, "app", 10, "pigeon", 10, "sms", 5)), "channel_unavailable",
			[]string{"body.reminders[1].channel", "body.reminders[2].channel"}},
		"twice and twice": {r.call(me, "POST", "/reservations", reserve(id, "app", 10, "app", 10, "app", 10)), "invalid_request",
			[]string{"body.reminders[1]", "body.reminders[2]"}},
		"not reserved and due": {r.call(me, "DELETE", "/reservations/"+id+"?reminders=email:5,app:10", nil), "not_reserved",
			[]string{"query.reminders[0]", "query.reminders[1]"}},
	} {
		var places []string
		list, _ := c.answer.at("errors").([]any)
		for _, e := range list {
			places = append(places, e.(map[string]any)["location"].(string))
		}
		if c.answer.code() != c.code || strings.Join(places, " ") != strings.Join(c.places, " ") {
			t.Errorf("%s: %s", name, c.answer.Body)
		}
	}
}

// TestHead: HEAD is GET without a body. The answer to an unknown method lists the allowed methods.
func TestHead(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5)), 201, "")
	for _, path := range []string{"/reservations", "/reservations/" + id, "/inbox", "/inbox/stream", "/templates/" + id} {
		if a := r.call(me, "HEAD", path, nil); a.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, a.Code)
		}
	}
	if a := r.call(me, "HEAD", "/reservations/999", nil); a.Code != http.StatusNotFound {
		t.Errorf("HEAD of what is not there: %d", a.Code)
	}
	a := r.want(r.call(me, "FOO", "/reservations", nil), 405, "method_not_allowed")
	if a.Header().Get("Allow") != "GET, POST" {
		t.Errorf("Allow: %s", a.Header())
	}
}

func TestReadingNeverGoesBack(t *testing.T) {
	r := newFixture(t, nil)
	me, id := as(token(7)), r.drop(2*time.Hour)
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5)), 201, "")
	r.deliver(id, 1, 7)
	stands := r.want(r.call(me, "POST", "/inbox/read", `{}`), 200, "").at("read_through")
	if a := r.want(r.call(me, "POST", "/inbox/read", `{"through":"2020-01-01T00:00:00Z"}`), 200, ""); a.at("read_through") != stands {
		t.Errorf("was %v, went back to %s", stands, a.Body)
	}
}

// testReservationOfAnEndedDrop: a reminder that is not sent any more is not waiting.
func testReservationOfAnEndedDrop(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	for _, end := range []string{"cancel", "close"} {
		id := r.drop(2 * time.Hour)
		r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5)), 201, "")
		r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/"+end, nil), 200, "")
		if a := r.want(r.call(me, "GET", "/reservations/"+id, nil), 200, ""); a.at("reminders.0.state") != "cancelled" {
			t.Errorf("after %s: %s", end, a.Body)
		}
	}
}

func TestDraftHasNoSlotsYet(t *testing.T) {
	r := newFixture(t, nil)
	a := r.want(r.call(r.admin(), "GET", "/admin/templates/"+r.draft(time.Hour), nil), 200, "")
	if list, ok := a.at("slots").([]any); !ok || len(list) != 0 {
		t.Errorf("%s", a.Body)
	}
}

// TestNoNameStandsTwice: readers differ in which of two values counts.
func TestNoNameStandsTwice(t *testing.T) {
	r := newFixture(t, nil)
	id, path := r.drop(2*time.Hour), "/admin/templates/"+r.draft(time.Hour)
	for _, c := range []struct {
		who          http.Header
		method, path string
		body, place  string
	}{
		{as(token(7)), "POST", "/claims", `{"template_id":"1","template_id":"` + id + `"}`, "body.template_id"},
		{as(token(7)), "POST", "/claims", `{"template_id":"1","template\u005fid":"` + id + `"}`, "body.template_id"},
		{as(token(7), "Idempotency-Key", "k"), "POST", "/claims", `{"template_id":"1","template_id":"` + id + `"}`, "body.template_id"},
		{as(token(7)), "POST", "/reservations", `{"template_id":"` + id + `","shop_number":"10","reminders":[{"channel":"app","minutes":5},{"channel":"app","minutes":10,"minutes":15}]}`,
			"body.reminders[1].minutes"},
		{as(token(7)), "POST", "/reservations", `{"template_id":"` + id + `","shop_number":"10","reminders":[{"channel":"","channel":"app","minutes":5}]}`, "body.reminders[0].channel"},
		{as(token(7), "Idempotency-Key", "k"), "POST", "/reservations", `{"template_id":"` + id + `","shop_number":"10","reminders":[],"reminders":[{"channel":"app","minutes":5}]}`,
			"body.reminders"},
		{as(token(7)), "POST", "/redemptions", `{"code":"a","code":"b"}`, "body.code"},
		{as(token(7)), "PUT", "/preferences", `{"quiet_hours":{"from":"22:00","from":"23:00","to":"07:00"}}`, "body.quiet_hours.from"},
		{r.admin("If-Match", "1"), "PATCH", path, `{"stock":5,"stock":500}`, "body.stock"},
		{r.admin("If-Match", "1"), "PATCH", path, `{"stock":5,"\ud800":1,"stock":500}`, "body.stock"},
		{r.admin(), "POST", "/admin/templates/" + id + "/close", `{"reason":"a","reason":"b"}`, "body.reason"},
	} {
		r.about = c.body
		a := r.want(r.call(c.who, c.method, c.path, c.body), 422, "invalid_request")
		if a.at("errors.0.location") != c.place || a.at("errors.0.message") != "is given more than once" {
			t.Errorf("%s: not at %s: %s", c.body, c.place, a.Body)
		}
	}
	if n := r.number(`select (select count(*) from reservations) + (select count(*) from templates where version > 2 or stock = 500)`); n != 0 {
		t.Errorf("%d changed all the same", n)
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates", `{"name":"a","name":`), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", "/admin/templates", `{"name":"a",`), 400, "malformed_json")
}

// TestWhatIsJSON: the Content-Type decides whether a body is JSON, for the quick ways and the
// general way.
func TestWhatIsJSON(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	for kinds, taken := range map[string]bool{"": true, "application/json": true, "application/JSON": true, "application/json;charset=utf-8": true,
		`Application/Json; Charset="UTF-8"`: true, "application/json;": true, "application/json; version=1": true,
		"application/json; charset=latin1": false, "application/problem+json": false, "application/merge-patch+json": false, "json": false,
		"application/json, text/plain": false, "application/json|application/json": false, "application/json|text/plain": false} {
		who := func(credential string, more ...string) http.Header {
			h := as(credential, more...)
			h["Content-Type"] = strings.Split(kinds, "|")
			return h
		}
		r.about = kinds
		for _, c := range []struct {
			who          http.Header
			method, path string
			body         string
			code         string
		}{
			{who(token(7)), "POST", "/claims", `{"template_id":"` + id + `"}`, "not_started"},
			{who(token(7)), "POST", "/reservations", `{"template_id":"` + id + `"}`, "invalid_request"},
			{who(r.keys["admin"], "If-Match", "9"), "PATCH", "/admin/templates/" + id, `{"stock":5}`, "stale_version"},
			{who(r.keys["payment"]), "POST", "/coupons/1/confirm", `{"order_id":"A"}`, "coupon_not_found"},
		} {
			q := httptest.NewRequest(c.method, "/api/v1"+c.path, strings.NewReader(c.body))
			if q.Header = c.who; kinds == "" {
				q.Header.Del("Content-Type")
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, q)
			if want := map[bool]string{true: c.code, false: "unsupported_media_type"}[taken]; !strings.Contains(w.Body.String(), `"code":"`+want+`"`) ||
				!taken && w.Code != http.StatusUnsupportedMediaType {
				t.Errorf("%q, %s: %d %s, want %s", kinds, c.path, w.Code, w.Body, want)
			}
		}
	}
	// Without a body its type does not matter.
	r.want(r.call(r.admin("Content-Type", "text/plain"), "POST", "/admin/templates/"+id+"/pause", ""), 200, "")
}

// TestAPatchThatChangesNothing makes no version and no entry of the log.
func TestAPatchThatChangesNothing(t *testing.T) {
	r := newFixture(t, nil)
	campaign := r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish()), 201, "").at("id").(string)
	entries := `select count(*) from audit where action like '%.edit'`
	for _, path := range []string{"/admin/templates/" + r.draft(time.Hour), "/admin/campaigns/" + campaign} {
		before := r.want(r.call(r.admin(), "GET", path, nil), 200, "")
		for _, body := range []string{`{}`, `{"name":"` + before.at("name").(string) + `"}`} {
			r.about = path + body
			if a := r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, body), 200, ""); a.at("version") != 1.0 || a.Header().Get("ETag") != `"1"` ||
				a.at("updated_at") != before.at("updated_at") {
				t.Errorf("%s: %s", r.about, a.Body)
			}
		}
		if n := r.number(entries); n != 0 {
			t.Errorf("%s: %d entries", path, n)
		}
	}
}

// TestDeleteTakesNoBody: the API would ignore reminders named in a body, and cancel all reminders.
// Clients that always send an empty object are not refused.
func TestDeleteTakesNoBody(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10)), 201, "")
	for _, body := range []string{`{"channel":"app","minutes":10}`, strings.Repeat(" ", 100) + `{"channel":"app","minutes":10}`, `{}x`, `[]`, "\xff"} {
		r.about = body
		if a := r.want(r.call(me, "DELETE", "/reservations/"+id, body), 422, "invalid_request"); a.at("errors.0.location") != "body" {
			t.Errorf("%s: %s", body, a.Body)
		}
	}
	if n := r.number(`select slots from reservations`); n != 1+2 {
		t.Fatalf("refusals left %d", n)
	}
	r.want(r.call(me, "DELETE", "/reservations/"+id+"?channel=app&minutes=10", "{}\n"), 200, "")
	r.want(r.call(me, "DELETE", "/reservations/"+id, strings.NewReader("")), 200, "")
}

// TestPostWithoutABodyTakesNone: the wishes in a body would be overlooked.
func TestPostWithoutABodyTakesNone(t *testing.T) {
	r := newFixture(t, nil)
	made := r.want(r.call(r.admin(), "POST", "/admin/segments", `{"name":"All","rule":{"all":[]}}`), 201, "")
	count := "/admin/segments/" + made.at("id").(string) + "/count"
	for _, body := range []string{`{"rule":{"all":[]}}`, "[]", "x"} {
		if a := r.want(r.call(r.admin(), "POST", count, body), 422, "invalid_request"); a.at("errors.0.location") != "body" {
			t.Errorf("%s: %s", body, a.Body)
		}
	}
	if n := r.number(`select count(*) from jobs`); n != 0 {
		t.Errorf("%d jobs", n)
	}
	r.want(r.call(r.admin(), "POST", count, "{}"), 202, "")
	r.want(r.call(r.admin(), "POST", count, nil), 202, "")
}

// TestRefusalsSayWhatWouldDo: a refusal names the accepted values instead of internal terms.
func TestRefusalsSayWhatWouldDo(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	early := as(sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "7", "exp": in(2 * time.Hour), "iat": in(time.Hour)}))
	signed, err := jws.Sign([]byte(`{"sub":7,"exp":99999999999}`), jws.WithKey(jwa.HS256(), []byte(secret)))
	r.must(err)
	number := as(string(signed))
	campaign := `{"name":"x","title":5,"body":"b","channel":"app","audience":{"all":true},"starts_at":"2027-01-01T12:00:00Z","ends_at":"2027-01-02T12:00:00Z"}`
	for _, c := range []struct {
		answer answer
		at     string
		want   any
	}{
		{r.call(me, "DELETE", "/reservations/"+id+"?channel=app&minutes=ten", nil), "errors.0.value", nil},
		{r.call(me, "DELETE", "/reservations/"+id+"?channel=app&minutes=7", nil), "errors.0.value", 7.0},
		{r.call(me, "GET", "/inbox?before=9999-12-31T23:59:59Z", nil), "errors.0.message", "must lie between the years 1 and 9000"},
		{r.call(early, "GET", "/inbox", nil), "detail", "the token was issued in the future"},
		{r.call(number, "GET", "/inbox", nil), "detail", "the token's claims cannot be read; sub must be a string, exp a number of seconds"},
		{r.call(r.admin(), "POST", "/admin/campaigns", campaign), "errors.0.message", "expected string, or object of strings by language tag"},
		{r.call(r.admin(), "PUT", "/admin/users", "[]\n"), "errors.0.error", "must be a JSON object with an id; an array does not fit"},
		{r.call(r.admin(), "PUT", "/admin/users", `{"id":{}}`), "errors.0.error", "id: an object does not fit here"},
		{r.call(r.admin(), "PUT", "/admin/users", `{"id":"1","attributes":{"1st":1}}`), "errors.0.error",
			"attributes: names must be 1 to 64 letters, digits, dots, dashes or underscores, a letter first"},
	} {
		if got := c.answer.at(c.at); got != c.want {
			t.Errorf("%s is %v, want %v: %s", c.at, got, c.want, c.answer.Body)
		}
	}
}

// TestNoQueryIsOverlooked, not even by the quick ways.
func TestNoQueryIsOverlooked(t *testing.T) {
	r := newFixture(t, nil)
	id, open := r.drop(2*time.Hour), r.open(5)
	for _, who := range []http.Header{as(token(7)), as(token(7), "Idempotency-Key", "k")} {
		for path, body := range map[string]any{"/reservations": reserve(id, "app", 5), "/claims": claimOf(open)} {
			if a := r.want(r.call(who, "POST", path+"?dry_run=true", body), 422, "invalid_request"); a.at("errors.0.location") != "query.dry_run" {
				t.Errorf("%s: %s", path, a.Body)
			}
		}
	}
	if n := r.number(`select (select count(*) from reservations) + (select count(*) from coupons)`); n != 0 {
		t.Errorf("%d made all the same", n)
	}
}
