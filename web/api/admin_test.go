package api_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"maps"
	"strings"
	"testing"
	"time"
)

func but(changes ...any) map[string]any {
	w := maps.Clone(wish(2 * time.Hour))
	for i := 0; i < len(changes); i += 2 {
		if w[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(w, changes[i].(string))
		}
	}
	return w
}

func TestCreateTemplate(t *testing.T) {
	r := newFixture(t, nil)
	nasty := `<script>alert("x")</script> '; drop table templates; -- 优惠券 🎉`
	a := r.want(r.call(r.admin(), "POST", "/admin/templates", but("name", nasty, "description", "a\nb")), 201, "")
	if a.at("state") != "draft" || a.at("version") != 1.0 || a.at("name") != nasty || a.Header().Get("ETag") != `"1"` ||
		a.at("target") != "shop" || a.at("per_user_limit") != 1.0 || a.at("obtain") != "claim" || a.at("claim_mode") != "durable" ||
		a.at("stock_ledger.left") != 100.0 || a.at("stock_ledger.issued") != 0.0 {
		t.Fatalf("created: %s", a.Body)
	}
	if strings.Contains(a.Body.String(), "<script>") {
		t.Fatal("markup goes out unescaped")
	}
	b := r.want(r.call(r.admin(), "GET", "/admin/templates/"+a.at("id").(string), nil), 200, "")
	if b.at("name") != nasty {
		t.Fatalf("read back %v", b.at("name"))
	}
	opens := now().Add(2 * time.Hour).Truncate(time.Second)
	zone := time.FixedZone("", 8*3600)
	a = r.want(r.call(r.admin(), "POST", "/admin/templates", but("opens_at", opens.In(zone).Format(time.RFC3339))), 201, "")
	if a.at("opens_at") != opens.Format(time.RFC3339) {
		t.Fatalf("opens_at %v given with an offset, want %v", a.at("opens_at"), opens)
	}
}

func TestCreateTemplateRefusals(t *testing.T) {
	r := newFixture(t, nil)
	opens := now().Add(2 * time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		body  map[string]any
		where string
	}{
		"closes before it opens": {but("closes_at", opens.Add(-time.Second)), "body.closes_at"},
		"closes as it opens":     {but("closes_at", opens), "body.closes_at"},
		"fractional second":      {but("opens_at", opens.Add(time.Millisecond)), "body.opens_at"},
		"no instant":             {but("opens_at", "tomorrow"), "body.opens_at"},
		"instant as number":      {but("opens_at", 1767225600), "body.opens_at"},
		"year 9999":              {but("opens_at", "9999-01-01T00:00:00Z", "closes_at", "9999-01-02T00:00:00Z"), "body.opens_at"},
		"stock 0":                {but("stock", 0), "body.stock"},
		"negative stock":         {but("stock", -1), "body.stock"},
		"stock 2^63":             {but("stock", 9.3e18), "body.stock"},
		"stock as text":          {but("stock", "100"), "body.stock"},
		"half a coupon":          {but("stock", 1.5), "body.stock"},
		"limit 0":                {but("per_user_limit", 0), "body.per_user_limit"},
		"negative amount":        {but("amount_off", -5), "body.amount_off"},
		"unknown kind":           {but("kind", "free"), "body.kind"},
		"no kind":                {but("kind", nil), "body"},
		"percent over 100":       {but("kind", "percent_off", "percent_off", 101, "max_off", 5), "body.percent_off"},
		"currency in words":      {but("currency", "yuan"), "body.currency"},
		"shop 0":                 {but("shop_number", "0"), "body.shop_number"},
		"shop as number":         {but("shop_number", 10), "body.shop_number"},
		"shop overflows":         {but("shop_number", "9999999999999999999"), "body.shop_number"},
		"no name":                {but("name", "  "), "body.name"},
		"name too long":          {but("name", strings.Repeat("长", 121)), "body.name"},
		"NUL in the name":        {but("name", "a\x00b"), "body.name"},
		"bell in the name":       {but("name", "a\ab"), "body.name"},
		"no validity":            {but("valid_hours", nil), "body.valid_hours"},
		"both validities":        {but("valid_until", opens.Add(99*time.Hour)), "body.valid_hours"},
		"product missing":        {but("target", "product"), "body.product"},
		"link to nowhere":        {but("claim_url", "javascript:alert(1)"), "body.claim_url"},
		"id given":               {but("id", "5"), "body.id"},
		"unknown field":          {but("colour", "red"), "body.colour"},
	} {
		r.about = name
		a := r.want(r.call(r.admin(), "POST", "/admin/templates", c.body), 422, "invalid_request")
		if !strings.Contains(a.Body.String(), `"location":"`+c.where+`"`) {
			t.Fatalf("%s: nothing points at %s: %s", name, c.where, a.Body)
		}
	}
	r.about = "10 MB name"
	r.want(r.call(r.admin(), "POST", "/admin/templates", but("name", strings.Repeat("x", 10<<20))), 413, "too_large")
	r.want(r.call(r.admin(), "POST", "/admin/templates", but("name", strings.Repeat("x", 1<<19))), 422, "invalid_request")
	if n := r.number(`select count(*) from templates`) + r.number(`select count(*) from shops`); n != 0 {
		t.Fatalf("refusals left %d rows", n)
	}
	// Drafts may lie in the past; publishing them may not.
	past := now().Add(-time.Hour).Truncate(time.Second)
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", but("opens_at", past)), 201, "").at("id").(string)
	a := r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 422, "invalid_request")
	if a.at("errors.0.location") != "body.opens_at" {
		t.Fatalf("publishing a past opening: %s", a.Body)
	}
}

func testChangeTemplate(t *testing.T) {
	r := newFixture(t, nil)
	id := r.draft(2 * time.Hour)
	path := "/admin/templates/" + id
	r.want(r.call(r.admin(), "PATCH", path, `{"stock":5}`), 428, "precondition_required")
	for _, bad := range []string{"x", "*", "0", "-1", `"1", "2"`, "99999999999999999999"} {
		r.about = bad
		r.want(r.call(r.admin("If-Match", bad), "PATCH", path, `{"stock":5}`), 422, "invalid_request")
	}
	a := r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"stock":5,"name":"new","valid_hours":null,"valid_until":"2099-01-01T00:00:00Z"}`), 200, "")
	if a.at("stock") != 5.0 || a.at("name") != "new" || a.at("version") != 2.0 || a.at("valid_hours") != nil || a.at("amount_off") != 2000.0 ||
		a.at("valid_until") != "2099-01-01T00:00:00Z" || a.Header().Get("ETag") != `"2"` {
		t.Fatalf("changed: %s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", `"1"`), "PATCH", path, `{"stock":6}`), 409, "stale_version")
	r.want(r.call(r.admin("If-Match", `W/"2"`), "PATCH", path, `{"valid_until":null,"valid_hours":24,"reason":"too short"}`), 200, "")
	if n := r.number(`select count(*) from audit where action = 'template.edit' and reason = 'too short'`); n != 1 {
		t.Fatalf("the reason is in %d audit entries", n)
	}
	r.want(r.call(r.admin("If-Match", `"3"`), "PATCH", path, `{"stock":0}`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", `"3"`), "PATCH", path, `{"stock":9,"reason":"a\u0000b"}`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", `"3"`), "PATCH", path, `{"stok":1}`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", `"3"`), "PATCH", path, `[]`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", `"3"`), "PATCH", path, `{`), 400, "malformed_json")
	r.want(r.call(r.admin("If-Match", `"3"`), "POST", path+"/publish", `{"reason":"ready"}`), 200, "")
	r.exec(`update templates set issued = 3 where id = $1`, id)
	r.want(r.call(r.admin("If-Match", `"4"`), "PATCH", path, `{"stock":2}`), 409, "stock_below_issued")
	r.want(r.call(r.admin("If-Match", `"4"`), "PATCH", path, `{"stock":4}`), 200, "")
	a = r.want(r.call(r.admin("If-Match", `"5"`), "PATCH", path, `{"kind":"percent_off","percent_off":5,"max_off":5,"amount_off":0}`), 422, "invalid_request")
	if !strings.Contains(a.Body.String(), `"location":"body.kind"`) {
		t.Fatalf("changing a promise: %s", a.Body)
	}
	opens := now().Add(3 * time.Hour).Truncate(time.Second)
	a = r.want(r.call(r.admin("If-Match", `"5"`), "PATCH", path, map[string]any{"opens_at": opens, "closes_at": opens.Add(time.Hour)}), 200, "")
	if a.at("slots.0.due_at") != opens.Add(-time.Hour).Format(time.RFC3339) || a.at("slots.0.minutes") != 60.0 {
		t.Fatalf("moved: %s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", "1"), "PATCH", "/admin/templates/999999", `{"stock":5}`), 404, "template_not_found")
	if n := r.number(`select count(*) from audit where object_kind = 'template' and object_id = $1 and reason = 'ready'`, id); n != 1 {
		t.Fatalf("the reason is in %d audit entries", n)
	}
}

func testTransitions(t *testing.T) {
	r := newFixture(t, nil)
	id := r.draft(2 * time.Hour)
	do := func(step string) answer { return r.call(r.admin(), "POST", "/admin/templates/"+id+"/"+step, nil) }
	r.want(do("pause"), 409, "invalid_transition")
	r.want(do("close"), 409, "invalid_transition")
	if a := r.want(do("publish"), 200, ""); a.at("state") != "scheduled" || len(a.at("slots").([]any)) != 12 || len(a.at("slots.11.channels").([]any)) != 5 {
		t.Fatalf("published: %s", a.Body)
	}
	r.want(do("publish"), 409, "invalid_transition")
	if a := r.want(do("pause"), 200, ""); a.at("state") != "paused" {
		t.Fatalf("paused: %s", a.Body)
	}
	r.want(do("resume"), 200, "")
	r.want(r.call(r.admin("If-Match", "1"), "POST", "/admin/templates/"+id+"/cancel", nil), 409, "stale_version")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/cancel", map[string]any{"reason": strings.Repeat("x", 501)}), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/cancel", `{"reason":"a\u0000b"}`), 422, "invalid_request")
	if a := r.want(do("cancel"), 200, ""); a.at("state") != "cancelled" {
		t.Fatalf("cancelled: %s", a.Body)
	}
	r.want(do("resume"), 409, "invalid_transition")
	r.want(r.call(r.admin(), "POST", "/admin/templates/999999/publish", nil), 404, "template_not_found")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/explode", nil), 404, "not_found")
}

func testListTemplates(t *testing.T) {
	r := newFixture(t, nil)
	for i := range 5 {
		r.want(r.call(r.admin(), "POST", "/admin/templates", but("name", fmt.Sprintf("Drop %d_%%", i), "shop_number", fmt.Sprint(1+i%2))), 201, "")
	}
	published := r.drop(3 * time.Hour)
	names := func(query string) (got []string) {
		for next := query; ; {
			a := r.want(r.call(r.admin(), "GET", "/admin/templates"+next, nil), 200, "")
			for _, x := range a.at("templates").([]any) {
				got = append(got, x.(map[string]any)["name"].(string))
			}
			after, more := a.json["next"].(string)
			if !more {
				return got
			}
			next = query + "&after=" + after
		}
	}
	for query, n := range map[string]int{"?limit=2": 6, "?limit=2&order=asc": 6, "?state=draft&limit=3": 5, "?state=draft,scheduled&limit=200": 6,
		"?shop=2&limit=1": 2, "?q=drop%203&limit=10": 1, "?q=_%25&limit=10": 5, "?q=' or 1=1&limit=10": 0, "?state=open&limit=5": 0,
		"?from=2090-01-01T00:00:00Z&limit=5": 0, "?to=2090-01-01T00:00:00Z&limit=5": 6} {
		if got := names(strings.ReplaceAll(query, " ", "%20")); len(got) != n {
			t.Fatalf("%s finds %v, want %d", query, got, n)
		}
	}
	if got := names("?order=desc&limit=4"); got[0] != "20 off" {
		t.Fatalf("descending by opening: %v; %s opens last", got, published)
	}
	for _, q := range []string{"?state=nonsense", "?shop=x", "?shop=9999999999999999999", "?limit=201", "?order=up", "?after=x", "?after=1.0",
		"?after=99999999999999999.1", "?from=yesterday", "?from=0000-01-01T00:00:00Z", "?q=%00", "?q=%ff", "?page=2"} {
		r.about = q
		r.want(r.call(r.admin(), "GET", "/admin/templates"+q, nil), 422, "invalid_request")
	}
}

func testBoardAndBalance(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	r.exec(`update slots set state = 'finished', fired_at = now(), finished_at = now() where template_id = $1 and slot = 2`, id)
	r.exec(`insert into slot_results (slot_id, channel, reserved, sent) select id, 0, 1, 1 from slots where template_id = $1 and slot = 2`, id)
	a := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id, nil), 200, "")
	if a.at("slots.10.slot") != 2.0 || a.at("slots.10.state") != "finished" || a.at("slots.10.channels.0.sent") != 1.0 ||
		a.at("slots.10.channels.0.channel") != "app" || a.at("slots.11.channels.0.in_flight") != 0.0 {
		t.Fatalf("board: %s", a.Body)
	}
	// The counters say one was sent, and no batch has it.
	b := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/balance", nil), 200, "")
	if b.at("balanced") != false || b.at("difference") == 0.0 || b.at("lines.0.kept.sent") != 1.0 || b.at("lines.0.counted.sent") != 0.0 {
		t.Fatalf("balance: %s", b.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/templates/999999/balance", nil), 404, "template_not_found")
}

func testShops(t *testing.T) {
	r := newFixture(t, nil)
	r.draft(time.Hour)
	r.want(r.call(r.admin(), "PUT", "/admin/shops/10", `{"name":"茶馆","timezone":"Asia/Shanghai"}`), 200, "")
	r.want(r.call(r.admin(), "PUT", "/admin/shops/11", `{"name":"B","timezone":"UTC"}`), 200, "")
	a := r.want(r.call(r.admin(), "GET", "/admin/shops", nil), 200, "")
	if a.at("shops.0.name") != "茶馆" || a.at("shops.1.number") != "11" {
		t.Fatalf("shops: %s", a.Body)
	}
	// The audit log has the shop's values before the change, as for a change in the console. The
	// claim address, which the console sets, stays.
	r.exec(`update shops set claim_url = 'https://shop.example/c' where number = 11`)
	a = r.want(r.call(r.admin(), "PUT", "/admin/shops/11", `{"name":" C ","timezone":"UTC"}`), 200, "")
	var before, after string
	r.must(r.sql.QueryRow(t.Context(), `select before::text, after::text from audit where action = 'shop.save' order by id desc limit 1`).Scan(&before, &after))
	if a.at("name") != "C" || before != `{"name": "B", "timezone": "UTC", "claim_url": "https://shop.example/c"}` ||
		after != `{"name": "C", "timezone": "UTC", "claim_url": "https://shop.example/c"}` {
		t.Errorf("%s: from %s to %s", a.Body, before, after)
	}
	for _, bad := range []string{`{"name":" ","timezone":"UTC"}`, `{"name":"a\nb","timezone":"UTC"}`, `{"name":"a\u202eb","timezone":"UTC"}`, `{"name":"","timezone":"UTC"}`, `{"name":"x","timezone":"Mars"}`, `{"name":"x","timezone":""}`, `{"name":"x","timezone":"Local"}`,
		`{"name":"x","timezone":"../../etc/passwd"}`, `{"name":"x","timezone":"posixrules"}`, `{"name":"a\u0000","timezone":"UTC"}`, `{"name":"x"}`, `{"name":"x","timezone":"UTC","id":1}`} {
		r.about = bad
		r.want(r.call(r.admin(), "PUT", "/admin/shops/10", bad), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "PUT", "/admin/shops/0", `{"name":"x","timezone":"UTC"}`), 422, "invalid_request")
	r.exec(`insert into moves (shop_number, cell, state, moved_at) values (13, 1, 'left', now())`)
	r.want(r.call(r.admin(), "PUT", "/admin/shops/13", `{"name":"x","timezone":"UTC"}`), 409, "shop_moved")

	// The sender of mails.
	const sender = "/admin/shops/11/sender"
	if a := r.want(r.call(r.admin(), "GET", sender, nil), 200, ""); a.at("name") != "" {
		t.Errorf("%s", a.Body)
	}
	for range 2 { // a repetition changes nothing
		r.want(r.call(r.admin(), "PUT", sender, `{"name":"Tea House","reply_to":"help@tea.example","preheader":"{{worth}}","postal_address":"1 Tea Road"}`), 200, "")
	}
	if a := r.want(r.call(r.admin(), "GET", sender, nil), 200, ""); a.at("name") != "Tea House" || a.at("reply_to") != "help@tea.example" || a.at("preheader") != "{{worth}}" || a.at("postal_address") != "1 Tea Road" {
		t.Errorf("%s", a.Body)
	}
	for _, bad := range []string{`{"name":"a\nBcc: x@y.example","reply_to":"","preheader":"","postal_address":""}`, `{"name":"","reply_to":"x","preheader":"","postal_address":""}`,
		`{"name":"","reply_to":"","preheader":"{{in}}","postal_address":""}`} {
		r.about = bad
		r.want(r.call(r.admin(), "PUT", sender, bad), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "PUT", "/admin/shops/12/sender", `{"name":"x","reply_to":"","preheader":"","postal_address":""}`), 404, "message_not_found")

	// Pictures.
	const pictures = "/admin/shops/11/pictures"
	drawn := func(width int) string {
		var b bytes.Buffer
		r.must(png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, width, 20))))
		return b.String()
	}
	up := r.admin("Content-Type", "image/png")
	first := r.want(r.call(up, "POST", pictures+"?alt=Moon%20cakes&name=cakes.png", drawn(40)), 201, "")
	again := r.want(r.call(up, "POST", pictures+"?alt=Moon%20cakes", drawn(40)), 201, "")
	r.want(r.call(up, "POST", pictures+"?alt=Tea", drawn(50)), 201, "")
	if first.at("id") != again.at("id") || first.at("width") != 40.0 || first.at("type") != "image/png" {
		t.Errorf("%s, then %s", first.Body, again.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", pictures+"?limit=1", nil), 200, ""); a.at("pictures.0.alt") != "Tea" || a.at("next") == nil {
		t.Errorf("%s", a.Body)
	} else if a := r.want(r.call(r.admin(), "GET", pictures+"?limit=1&before="+a.at("next").(string), nil), 200, ""); a.at("pictures.0.name") != "cakes.png" || a.at("next") != nil {
		t.Errorf("%s", a.Body)
	}
	r.want(r.call(up, "POST", pictures+"?alt=Tea", "no picture"), 422, "invalid_request")
	r.want(r.call(r.admin("Content-Type", "multipart/form-data; boundary=x"), "POST", pictures+"?alt=Tea", "x"), 415, "unsupported_media_type")
	r.want(r.call(up, "POST", "/admin/shops/12/pictures?alt=Tea", drawn(40)), 404, "picture_not_found")
	one := pictures + "/" + first.at("hash").(string)
	r.want(r.call(r.admin(), "PATCH", one, `{"alt":" "}`), 422, "invalid_request")
	r.want(r.call(r.admin(), "PATCH", one, `{"alt":"Two moon cakes"}`), 204, "")
	r.want(r.call(r.admin(), "PATCH", pictures+"/"+strings.Repeat("0", 64), `{"alt":"x"}`), 404, "picture_not_found")
	if n := r.number(`select count(*) from pictures where alt = 'Two moon cakes'`); n != 1 {
		t.Errorf("%d pictures are described anew", n)
	}
	use := func(content string) {
		_, err := r.sql.Exec(t.Context(), `insert into message_versions (shop_number, kind, content, created_by) values (11, 'settings', $1, 'staff:1 Ada')`, content)
		r.must(err)
	}
	use(`{"shop":{"logo":"` + first.at("address").(string) + `"}}`)
	if a := r.want(r.call(r.admin(), "DELETE", one, nil), 409, "picture_in_use"); !strings.Contains(a.Body.String(), "in the messages of the shop; take it out") {
		t.Errorf("%s", a.Body)
	}
	use(`{}`)
	r.want(r.call(r.admin(), "DELETE", one, nil), 204, "")
	r.want(r.call(r.admin(), "DELETE", one, nil), 404, "picture_not_found")
}
