package api_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func testSegments(t *testing.T) {
	r := newFixture(t, nil)
	r.want(r.call(r.admin("Content-Type", "application/x-ndjson"), "PUT", "/admin/users",
		`{"id":"1","attributes":{"tier":"gold"}}`+"\n"+`{"id":"2","locale":"zh-CN"}`), 200, "")
	gold := map[string]any{"field": "attribute", "name": "tier", "op": "is", "values": []string{"gold"}}
	a := r.want(r.call(r.admin(), "POST", "/admin/segments", map[string]any{"name": "Gold", "rule": map[string]any{"all": []any{gold}}}), 201, "")
	id := a.at("id").(string)
	if a.at("kind") != "rules" || a.at("version") != 1.0 || a.at("rule.all.0.values.0") != "gold" || a.at("members") != nil {
		t.Fatalf("created %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "POST", "/admin/segments/estimate", map[string]any{"rule": gold}), 200, ""); a.at("members") != 1.0 || a.at("exact") != true || a.at("users") != 2.0 {
		t.Fatalf("estimate %s", a.Body)
	}
	a = r.want(r.call(r.admin(), "POST", "/admin/segments", map[string]any{"name": "x", "rule": map[string]any{"all": []any{gold, map[string]any{"field": "shoe"}}}}), 422, "invalid_request")
	if a.at("errors.0.location") != "body.rule.all[1].field" {
		t.Fatalf("the place is lost: %s", a.Body)
	}
	for _, body := range []string{`{"name":"x"}`, `{"name":"","rule":{"all":[]}}`, `{"name":"x","rule":null}`, `{"name":"x","rule":[]}`, `{"name":"x","rule":"all"}`,
		`{"name":"a\u0000","rule":{"all":[]}}`, `{"name":"x","rule":{"all":[],"any":[]}}`} {
		r.want(r.call(r.admin(), "POST", "/admin/segments", body), 422, "invalid_request")
	}
	r.want(r.call(r.admin(), "PATCH", "/admin/segments/"+id, `{"name":"Golden"}`), 428, "precondition_required")
	a = r.want(r.call(r.admin("If-Match", `"1"`), "PATCH", "/admin/segments/"+id, `{"name":"Golden"}`), 200, "")
	if a.at("name") != "Golden" || a.at("rule.all.0.op") != "is" || a.Header().Get("ETag") != `"2"` {
		t.Fatalf("changed %s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", `"1"`), "PATCH", "/admin/segments/"+id, `{"rule":{"any":[]}}`), 409, "stale_version")
	if a := r.want(r.call(r.admin(), "POST", "/admin/segments/"+id+"/count", nil), 202, ""); a.at("segment_id") != id || a.at("job_id") == nil {
		t.Fatalf("count %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", "/admin/segments", map[string]any{"name": "Other", "rule": gold}), 201, "")
	a = r.want(r.call(r.admin(), "GET", "/admin/segments?limit=1", nil), 200, "")
	next := a.at("next").(string)
	if a.at("segments.0.name") != "Other" {
		t.Fatalf("listed %s", a.Body)
	}
	if a = r.want(r.call(r.admin(), "GET", "/admin/segments?limit=1&after="+next, nil), 200, ""); a.at("segments.0.name") != "Golden" {
		t.Fatalf("the second page %s", a.Body)
	}
	for _, cursor := range []string{"x", "1", "1.0", "-1.5", "99999999999999999999.1"} {
		r.want(r.call(r.admin(), "GET", "/admin/segments?after="+cursor, nil), 422, "invalid_request")
	}
	if a := r.want(r.call(r.admin(), "GET", "/admin/segment-fields", nil), 200, ""); a.at("fields.0.field") != "attribute" || a.at("fields.0.ops.0.op") != "is" {
		t.Fatalf("fields %s", a.Body)
	}
	r.want(r.call(as(r.keys["read"]), "GET", "/admin/segments/"+id, nil), 200, "")
	r.want(r.call(as(r.keys["read"]), "DELETE", "/admin/segments/"+id, nil), 403, "forbidden")
	r.want(r.call(r.admin(), "DELETE", "/admin/segments/"+id, nil), 204, "")
	r.want(r.call(r.admin(), "GET", "/admin/segments/"+id, nil), 404, "segment_not_found")
	r.want(r.call(r.admin(), "DELETE", "/admin/segments/"+id, nil), 404, "segment_not_found")
}

func testLists(t *testing.T) {
	r := newFixture(t, nil)
	id := r.want(r.call(r.admin(), "POST", "/admin/lists", `{"name":"Fair"}`), 201, "").at("id").(string)
	path := "/admin/lists/" + id + "/members"
	a := r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", path, "id\n1\n2\n"), 202, "")
	if n := r.number(`select count(*) from jobs j join uploads u on u.id = j.upload_id where j.kind = 'segment.list' and j.id = $1::text::bigint and u.bytes = 7`, a.at("job_id")); n != 1 {
		t.Fatalf("no job reads the file: %s", a.Body)
	}
	work := "/admin/jobs/" + a.at("job_id").(string)
	if got := r.want(r.call(as(r.keys["read"]), "GET", work, nil), 200, ""); got.at("state") != "waiting" || got.at("kind") != "segment.list" {
		t.Errorf("the job is %s", got.Body)
	}
	r.exec(`insert into job_errors (job_id, line, row, error) select max(id), 3, 'x', 'no "id"' from jobs`)
	if got := r.want(r.call(r.admin(), "GET", work+"/errors.csv", nil), 200, ""); got.Body.String() != "line,row,error,kind\n3,x,\"no \"\"id\"\"\",failed\n" {
		t.Errorf("the rows are %q", got.Body.String())
	}
	r.want(r.call(as(r.keys["read"]), "GET", work+"/errors.csv", nil), 403, "forbidden")
	r.want(r.call(r.admin(), "GET", "/admin/jobs/99", nil), 404, "job_not_found")
	r.want(r.call(r.admin("Content-Type", "multipart/form-data; boundary=x"), "PUT", path, "x"), 415, "unsupported_media_type")
	r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", "/admin/lists/99/members", "id\n1"), 404, "segment_not_found")
	r.want(r.call(as(r.keys["read"]), "PUT", path, "id\n1"), 403, "forbidden")
	r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", path, io.MultiReader(strings.NewReader("id\n1"), deadLine{})), 400, "malformed_json")
	if n := r.number(`select count(*) from uploads`); n != 1 {
		t.Fatalf("%d uploads are left", n)
	}
	for body, why := range map[string]string{"": "empty", "id\n": "empty", "name,mail\nAnn,a@example.com\n": "no column of ids", "\xd0\xcf\x11\xe0": "save it as XLSX or CSV"} {
		if a := r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", path, body), 422, "invalid_request"); a.at("errors.0.location") != "body" || !strings.Contains(a.at("errors.0.message").(string), why) {
			t.Errorf("%q is refused with %s", body, a.Body)
		}
	}
	if n := r.number(`select count(*) from jobs`); n != 1 {
		t.Fatalf("%d jobs read files that hold nothing", n)
	}
	r.want(r.call(r.admin("If-Match", "1"), "PATCH", "/admin/segments/"+id, `{"rule":{"all":[]}}`), 409, "segment_is_list")
	r.want(r.call(r.admin(), "POST", "/admin/segments/"+id+"/count", nil), 409, "segment_is_list")
	rules := r.want(r.call(r.admin(), "POST", "/admin/segments", `{"name":"x","rule":{"all":[]}}`), 201, "").at("id").(string)
	r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", "/admin/lists/"+rules+"/members", "id\n1"), 409, "segment_is_rules")
	r.exec(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Spring', 1, '{}', jsonb_build_object('kind', 'list_id', 'id', $1::bigint), now(), now() + interval '1 hour', 'scheduled', 'key:1', 'key:1')`, id)
	if a := r.want(r.call(r.admin("Content-Type", "text/csv"), "PUT", path, "id\n3\n"), 409, "list_in_use"); !strings.Contains(a.at("detail").(string), "Spring") {
		t.Errorf("the refusal is %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", "/admin/segments/"+id, nil), 200, ""); a.at("used_by.0.keeps_members") != true {
		t.Errorf("the list is %s", a.Body)
	}
}

type deadLine struct{}

func (deadLine) Read([]byte) (int, error) { return 0, fmt.Errorf("the line went dead") }

func testEraseUser(t *testing.T) {
	r := newFixture(t, nil)
	r.want(r.call(r.admin(), "PUT", "/admin/users", `{"id":"7","name":"Ann","email":"ann@example.com"}`), 200, "")
	r.want(r.call(as(r.keys["read"]), "DELETE", "/admin/users/7", nil), 403, "forbidden")
	r.want(r.call(r.admin(), "DELETE", "/admin/users/7", nil), 204, "")
	if n := r.number(`select count(*) from users`) + r.number(`select count(*) from audit where (coalesce(before::text, '') || coalesce(after::text, '')) like '%ann@%'`); n != 0 {
		t.Fatal("something of the person is left")
	}
	if n := r.number(`select count(*) from audit where action = 'user.erase' and object_id = '7'`); n != 1 {
		t.Fatal("nobody knows who did it")
	}
	r.want(r.call(r.admin(), "DELETE", "/admin/users/7", nil), 404, "user_not_found")
	r.want(r.call(r.admin(), "DELETE", "/admin/users/9223372036854775808", nil), 422, "invalid_request")
}
