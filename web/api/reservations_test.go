package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"dropbell/domain/staff"
)

func testReserve(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	a := r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	if a.at("slots") != "2" || a.at("template_id") != id || a.at("shop_number") != "10" || a.at("template_name") != "20 off" ||
		a.at("reminders.0.channel") != "app" || a.at("reminders.0.minutes") != 10.0 || a.at("reminders.0.state") != "waiting" {
		t.Fatalf("reservation: %s", a.Body)
	}
	opens, err := time.Parse("2006-01-02T15:04:05Z", a.at("opens_at").(string))
	r.must(err)
	if due := a.at("reminders.0.due_at"); due != opens.Add(-10*time.Minute).Format("2006-01-02T15:04:05Z") {
		t.Fatalf("due_at %v of an opening at %v", due, opens)
	}
	a = r.want(r.call(me, "POST", "/reservations", reserve(id, "email", 5, "app", 60)), 200, "")
	if a.at("slots") != "6146" || a.at("reminders.0.minutes") != 60.0 || a.at("reminders.2.channel") != "email" {
		t.Fatalf("added: %s", a.Body)
	}
	if b := r.want(r.call(me, "GET", "/reservations/"+id, nil), 200, ""); b.Body.String() != a.Body.String() {
		t.Fatalf("read back %s, was %s", b.Body, a.Body)
	}
	r.want(r.call(as(token(8)), "GET", "/reservations/"+id, nil), 404, "not_reserved")
}

func testReserveRefusals(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	open, soon, draft := r.drop(2*time.Hour), r.drop(30*time.Minute), r.draft(2*time.Hour)
	cancelled, closed := r.drop(2*time.Hour), r.drop(2*time.Hour)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+cancelled+"/cancel", nil), 200, "")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+closed+"/close", nil), 200, "")
	r.want(r.call(me, "POST", "/reservations", reserve(open, "app", 15)), 201, "")
	other := reserve(open, "app", 10)
	other["shop_number"] = "11"
	for name, c := range map[string]struct {
		body   any
		status int
		code   string
		where  string
	}{
		"reserved already":     {reserve(open, "app", 10, "app", 15), 409, "already_reserved", "body.reminders[1]"},
		"due already":          {reserve(soon, "app", 5, "email", 30), 409, "already_due", "body.reminders[1]"},
		"no sender":            {reserve(open, "app", 10, "sms", 10), 422, "channel_unavailable", "body.reminders[1]"},
		"no such channel":      {reserve(open, "app", 10, "pigeon", 10), 422, "channel_unavailable", "body.reminders[1].channel"},
		"no such template":     {reserve("999999", "app", 10), 404, "template_not_found", ""},
		"draft":                {reserve(draft, "app", 10), 404, "template_not_found", ""},
		"cancelled":            {reserve(cancelled, "app", 10), 409, "template_not_open", ""},
		"closed":               {reserve(closed, "app", 10), 409, "template_not_open", ""},
		"another shop's":       {other, 422, "invalid_request", "body.shop_number"},
		"named twice":          {reserve(open, "app", 10, "app", 10), 422, "invalid_request", "body.reminders[1]"},
		"no reminder":          {reserve(open), 422, "invalid_request", "body.reminders"},
		"minutes 0":            {reserve(open, "app", 0), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes -5":           {reserve(open, "app", -5), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes 7":            {reserve(open, "app", 7), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes 61":           {reserve(open, "app", 61), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes 65":           {reserve(open, "app", 65), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes 7.5":          {reserve(open, "app", 7.5), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes as text":      {reserve(open, "app", "10"), 422, "invalid_request", "body.reminders[0].minutes"},
		"minutes missing":      {reserve(open, "app", nil), 422, "invalid_request", "body.reminders[0].minutes"},
		"channel as number":    {reserve(open, 0, 10), 422, "invalid_request", "body.reminders[0].channel"},
		"id as number":         {map[string]any{"template_id": 1, "shop_number": "10", "reminders": []any{}}, 422, "invalid_request", "body.template_id"},
		"id overflows":         {reserve("9999999999999999999", "app", 10), 422, "invalid_request", "body.template_id"},
		"id far too long":      {reserve(strings.Repeat("9", 5000), "app", 10), 422, "invalid_request", "body.template_id"},
		"id negative":          {reserve("-1", "app", 10), 422, "invalid_request", "body.template_id"},
		"id with leading zero": {reserve("01", "app", 10), 422, "invalid_request", "body.template_id"},
		"SQL in the id":        {reserve("1; drop table users", "app", 10), 422, "invalid_request", "body.template_id"},
		"unknown field":        {map[string]any{"template_id": open, "shop_number": "10", "reminders": []any{}, "x": 1}, 422, "invalid_request", "body.x"},
		"a list":               {[]any{}, 422, "invalid_request", "body"},
		"null":                 {"null", 422, "invalid_request", "body"},
	} {
		r.about = name
		a := r.want(r.call(me, "POST", "/reservations", c.body), c.status, c.code)
		if c.where != "" && !strings.Contains(a.Body.String(), `"location":"`+c.where+`"`) {
			t.Fatalf("%s: nothing points at %s: %s", name, c.where, a.Body)
		}
		if a.Body.Len() > 2000 {
			t.Fatalf("%s: the refusal echoes %d bytes", name, a.Body.Len())
		}
	}
	if n := r.number(`select count(*) from reservations`); n != 1 {
		t.Fatalf("%d reservations after refusals, want the one that was accepted", n)
	}
	if got := r.want(r.call(me, "GET", "/reservations/"+open, nil), 200, "").at("slots"); got != "4" {
		t.Fatalf("refusals changed the reservation to %v", got)
	}
}

func TestReserveAfterOpening(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	r.late.Store(int64(150 * time.Minute))
	late := sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "7", "exp": r.now().Add(time.Hour).Unix()})
	r.want(r.call(as(late), "POST", "/reservations", reserve(id, "app", 10)), 409, "drop_opened")
}

func testCancel(t *testing.T) {
	r := newFixture(t, nil)
	id, me := r.drop(2*time.Hour), as(token(7))
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10, "email", 10, "email", 60)), 201, "")
	for query, c := range map[string]struct {
		status int
		code   string
	}{
		"?channel=sms":                         {404, "not_reserved"},
		"?channel=pigeon":                      {422, "channel_unavailable"},
		"?channel=app&minutes=":                {422, "invalid_request"},
		"?channel=app&reminder=app:10":         {422, "invalid_request"},
		"?reminder=app:10&reminders=app:5":     {422, "invalid_request"},
		"?reminder=app:10&reminder=app:15":     {404, "not_reserved"},
		"?reminder=app:10&reminder=app:10":     {422, "invalid_request"},
		"?reminders=app:10,app:10":             {422, "invalid_request"},
		"?reminder=app:10&reminder=":           {422, "invalid_request"},
		"?reminder=app:10&reminder=%ff":        {422, "invalid_request"},
		"?reminder=":                           {422, "invalid_request"},
		"?channel=app&channel=email":           {422, "invalid_request"},
		"?minutes=10":                          {422, "invalid_request"},
		"?channel=&minutes=":                   {422, "invalid_request"},
		"?chanel=app&minutes=10":               {422, "invalid_request"},
		"?channel=app&minutes=7":               {422, "invalid_request"},
		"?channel=app&minutes=ten":             {422, "invalid_request"},
		"?channel=pigeon&minutes=10":           {422, "channel_unavailable"},
		"?channel=app&minutes=15":              {404, "not_reserved"},
		"?reminders=app:10,app:15":             {404, "not_reserved"},
		"?reminders=app":                       {422, "invalid_request"},
		"?channel=app&minutes=5&reminders=a:5": {422, "invalid_request"},
		"?channel=%ff&minutes=5":               {422, "invalid_request"},
		"?channel=app&minutes=5&minutes=10":    {422, "invalid_request"},
		"?channel=app&channel=email&minutes=5": {422, "invalid_request"},
		"?channel=app&minutes=10&%zz":          {422, "invalid_request"},
	} {
		r.about = query
		r.want(r.call(me, "DELETE", "/reservations/"+id+query, nil), c.status, c.code)
	}
	if n := r.number(`select slots from reservations`); n != 1+2+8192+1<<23 {
		t.Fatalf("refused cancellations left %d", n)
	}
	if a := r.want(r.call(me, "DELETE", "/reservations/"+id+"?channel=app&minutes=10", nil), 200, ""); a.at("slots") != "8396801" {
		t.Fatalf("after one: %s", a.Body)
	}
	if a := r.want(r.call(me, "DELETE", "/reservations/"+id+"?reminders=app:5,email:60", nil), 200, ""); a.at("slots") != "8192" {
		t.Fatalf("after two: %s", a.Body)
	}
	// All of a channel; then several, all or none, by repeating the parameter.
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10, "email", 60)), 200, "")
	if a := r.want(r.call(me, "DELETE", "/reservations/"+id+"?channel=app", nil), 200, ""); a.at("slots") != "8396800" {
		t.Fatalf("after a channel: %s", a.Body)
	}
	r.want(r.call(me, "DELETE", "/reservations/"+id+"?channel=app", nil), 404, "not_reserved")
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10)), 200, "")
	if a := r.want(r.call(me, "DELETE", "/reservations/"+id+"?reminder=app:10&reminder=email:60&reminder=app:5", nil), 200, ""); a.at("slots") != "8192" {
		t.Fatalf("after several: %s", a.Body)
	}
	a := r.want(r.call(me, "DELETE", "/reservations/"+id, nil), 200, "")
	if a.at("slots") != "0" || len(a.at("reminders").([]any)) != 0 {
		t.Fatalf("after all: %s", a.Body)
	}
	r.want(r.call(me, "DELETE", "/reservations/"+id, nil), 404, "not_reserved")
	r.want(r.call(me, "DELETE", "/reservations/999999", nil), 404, "template_not_found")
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5)), 201, "")
	r.exec(`update slots set due_at = now() - slot * interval '1 second'`)
	r.want(r.call(me, "DELETE", "/reservations/"+id, nil), 409, "already_due")
}

func TestReservationPages(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	var ids []string
	for range 5 {
		id := r.drop(2 * time.Hour)
		ids = append([]string{id}, ids...)
		r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	}
	var seen []string
	for next := "?limit=2"; ; {
		a := r.want(r.call(me, "GET", "/reservations"+next, nil), 200, "")
		for _, x := range a.at("reservations").([]any) {
			seen = append(seen, x.(map[string]any)["template_id"].(string))
		}
		before, more := a.json["next"].(string)
		if !more {
			break
		}
		next = "?limit=2&before=" + before
	}
	if strings.Join(seen, " ") != strings.Join(ids, " ") {
		t.Fatalf("pages show %v, want %v", seen, ids)
	}
	for _, q := range []string{"?limit=0", "?limit=101", "?limit=x", "?before=0", "?before=9999999999999999999", "?offset=3"} {
		r.want(r.call(me, "GET", "/reservations"+q, nil), 422, "invalid_request")
	}
}

// A key that acts for many users must not mix them up.
func TestActAsUser(t *testing.T) {
	r := newFixture(t, nil)
	id, key := r.drop(2*time.Hour), r.keys[staff.ScopeActAsUser]
	var all sync.WaitGroup
	for _, who := range []string{"1", "2", "3", "9223372036854775807"} {
		all.Go(func() {
			r.want(r.call(as(key, "X-User-ID", who), "POST", "/reservations", reserve(id, "app", 10)), 201, "")
		})
	}
	all.Wait()
	if n := r.number(`select count(distinct user_id) from reservations`); n != 4 {
		t.Fatalf("%d users reserved, want 4", n)
	}
	for header, status := range map[string]int{"": 401, "0": 422, "-1": 422, "9223372036854775808": 422, "1e3": 422, "ann": 422} {
		code := map[int]string{401: "unauthenticated", 422: "invalid_request"}[status]
		r.want(r.call(as(key, "X-User-ID", header), "GET", "/reservations", nil), status, code)
	}
	r.want(r.call(as(r.keys[staff.ScopeAdmin], "X-User-ID", "1"), "GET", "/reservations", nil), 403, "forbidden")
	r.want(r.call(as(r.keys[staff.ScopeAdmin]), "GET", "/reservations", nil), 401, "unauthenticated")
	r.want(r.call(as(token(1), "X-User-ID", "2"), "GET", "/reservations", nil), 403, "forbidden")
	r.want(r.call(as(token(1), "X-User-ID", "1"), "GET", "/reservations", nil), 200, "")
}

func testPublicTemplate(t *testing.T) {
	r := newFixture(t, nil)
	id, draft := r.drop(2*time.Hour), r.draft(2*time.Hour)
	for _, who := range []http.Header{{}, as(token(1)), r.admin(), as(r.keys[staff.ScopePayment])} {
		a := r.want(r.call(who, "GET", "/templates/"+id, nil), 200, "")
		if a.at("state") != "scheduled" || a.at("stock_left") != 100.0 || a.at("amount_off") != 2000.0 || a.at("version") != nil {
			t.Fatalf("public view: %s", a.Body)
		}
	}
	r.want(r.call(nil, "GET", "/templates/"+draft, nil), 404, "template_not_found")
	r.want(r.call(nil, "GET", "/templates/999999", nil), 404, "template_not_found")
	r.want(r.call(nil, "GET", "/templates/9999999999999999999", nil), 422, "invalid_request")
	r.want(r.call(nil, "GET", "/templates/abc", nil), 422, "invalid_request")
	r.want(r.call(as("dbk_wrong"), "GET", "/templates/"+id, nil), 401, "unauthenticated")
	if a := r.call(nil, "HEAD", "/templates/"+id, nil); a.Code != 200 {
		t.Fatalf("HEAD answers %d", a.Code)
	}
}
