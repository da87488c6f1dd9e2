package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/web/api"
)

// codeKeys holds a key that is not secret.
func codeKeys(r *fixture) *redeemcode.Keyring {
	k, err := redeemcode.ParseKeys("1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU=")
	r.must(err)
	return k
}

// byCode creates and publishes a template whose coupons are obtained by code, opened a minute ago,
// and returns its id.
func (r *fixture) byCode(change map[string]any) string {
	r.Helper()
	w := wish(2 * time.Hour)
	w["obtain"] = "code"
	for k, v := range change {
		w[k] = v
	}
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, id)
	return id
}

// work runs the worker's part for every waiting job.
func (r *fixture) work() {
	r.Helper()
	ctx := context.Background()
	jobs := workdb.NewJobs(r.db)
	runner := &redeemcode.Generator{Store: couponsdb.NewCodes(r.db), Keys: codeKeys(r)}
	kinds := []string{redeemcode.JobKind}
	due, err := jobs.DueJobs(ctx, kinds, 10)
	r.must(err)
	for _, id := range due {
		l, err := jobs.LeaseJob(ctx, id, kinds, time.Minute)
		r.must(err)
		var p job.Progress
		for !p.Finished {
			p, err = runner.Step(ctx, l.Job)
			r.must(err)
			l.Job, err = jobs.SaveJob(ctx, l, p, time.Minute)
			r.must(err)
		}
	}
}

// codes generates and exports codes of the template.
func (r *fixture) codes(id string, count int) []string {
	r.Helper()
	b := r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/codes", map[string]any{"count": count}), 202, "")
	r.work()
	a := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/codes.csv?batch="+b.at("id").(string), nil), 200, "")
	lines := strings.Split(strings.TrimSpace(a.Body.String()), "\n")[1:]
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], ",")
	}
	return lines
}

func testCodes(t *testing.T) {
	r := newFixture(t, nil)
	id := r.byCode(nil)
	base := "/admin/templates/" + id + "/codes"
	first := r.want(r.call(r.admin("Idempotency-Key", "k"), "POST", base, map[string]any{"count": 1000}), 202, "")
	progress := strings.TrimPrefix(first.at("progress_url").(string), "/api/v1")
	if first.at("state") != "generating" || first.Header().Get("Location") != first.at("progress_url") || first.at("job_id") == "0" {
		t.Errorf("accepted: %s", first.Body)
	}
	if again := r.want(r.call(r.admin("Idempotency-Key", "k"), "POST", base, map[string]any{"count": 1000}), 202, ""); again.at("id") != first.at("id") {
		t.Error("a repetition made another batch")
	}
	busy := r.want(r.call(r.admin(), "GET", base+".csv", nil), 409, "codes_not_ready")
	if busy.Header().Get("Retry-After") == "" {
		t.Error("nobody says when to ask again")
	}
	r.want(r.call(r.admin(), "GET", progress, nil), 200, "")
	r.work()
	if b := r.want(r.call(r.admin(), "GET", progress, nil), 200, ""); b.at("state") != "ready" || b.at("generated") != 1000.0 || b.at("used") != 0.0 {
		t.Errorf("generated: %s", b.Body)
	}
	list := r.want(r.call(r.admin(), "GET", base+"?limit=1", nil), 200, "")
	if list.at("batches.0.id") != first.at("id") || list.at("outstanding") != 1000.0 || list.at("stock_left") != 100.0 || list.at("next") != first.at("id") {
		t.Errorf("list: %s", list.Body)
	}
	if rest := r.want(r.call(r.admin(), "GET", base+"?before="+list.at("next").(string), nil), 200, ""); rest.at("batches.0") != nil {
		t.Errorf("the next page: %s", rest.Body)
	}
	csv := r.want(r.call(r.admin(), "GET", base+".csv", nil), 200, "")
	lines := strings.Split(csv.Body.String(), "\n")
	if len(lines) != 1002 || lines[0] != "code,batch_id" || lines[1001] != "" || len(lines[1]) != len("XXXX-XXXX-XXXX-XXXX,1") ||
		csv.Header().Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(csv.Header().Get("Content-Disposition"), "codes-"+id+".csv") ||
		csv.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d lines, %q … %q, %v", len(lines), lines[0], lines[1], csv.Header())
	}
	if n := r.number(`select count(*) from audit where action = 'codes.export'`); n != 1 {
		t.Errorf("%d exports are in the audit log", n)
	}
	gone := r.want(r.call(r.admin(), "POST", base+"/1/revoke", map[string]any{"reason": "leaked"}), 200, "")
	if gone.at("state") != "revoked" || gone.at("revoke_reason") != "leaked" || gone.at("revoked_at") == nil {
		t.Errorf("revoked: %s", gone.Body)
	}
	r.want(r.call(r.admin(), "POST", base+"/1/revoke", map[string]any{"reason": "leaked"}), 409, "codes_revoked")
	r.want(r.call(r.admin(), "GET", base+".csv?batch=1", nil), 409, "codes_revoked")
	r.want(r.call(r.admin(), "GET", base+".csv", nil), 404, "no_codes")
	if strings.Contains(r.logs.String(), lines[1][:19]) {
		t.Error("a code is in the log")
	}
}

func testCodeRefusals(t *testing.T) {
	r := newFixture(t, nil)
	id, tap := r.byCode(nil), r.drop(time.Hour)
	base := "/admin/templates/" + id + "/codes"
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"POST", base, `{"count":0}`, 422, "invalid_request"},
		{"POST", base, `{"count":1000001}`, 422, "invalid_request"},
		{"POST", base, `{"count":1.5}`, 422, "invalid_request"},
		{"POST", base, `{"count":"9"}`, 422, "invalid_request"},
		{"POST", base, `{}`, 422, "invalid_request"},
		{"POST", base, `{"count":1,"more":1}`, 422, "invalid_request"},
		{"POST", "/admin/templates/99/codes", `{"count":1}`, 404, "template_not_found"},
		{"POST", "/admin/templates/9999999999999999999/codes", `{"count":1}`, 422, "invalid_request"},
		{"POST", "/admin/templates/" + tap + "/codes", `{"count":1}`, 409, "not_by_code"},
		{"GET", base + "/7", nil, 404, "code_batch_not_found"},
		{"GET", base + "/x", nil, 422, "invalid_request"},
		{"GET", base + "?before=x", nil, 422, "invalid_request"},
		{"GET", base + "?limit=0", nil, 422, "invalid_request"},
		{"GET", base + ".csv", nil, 404, "no_codes"},
		{"GET", base + ".csv?batch=7", nil, 404, "code_batch_not_found"},
		{"GET", base + ".csv?batch=9999999999999999999", nil, 422, "invalid_request"},
		{"GET", "/admin/templates/99/codes.csv", nil, 404, "template_not_found"},
		{"POST", base + "/7/revoke", `{"reason":"x"}`, 404, "code_batch_not_found"},
		{"POST", base + "/7/revoke", `{"reason":""}`, 422, "invalid_request"},
		{"POST", base + "/7/revoke", nil, 400, "malformed_json"},
	} {
		r.about = fmt.Sprint(c.method, " ", c.path, " ", c.body)
		r.want(r.call(r.admin(), c.method, c.path, c.body), c.status, c.code)
	}
	r.about = "rights"
	b := r.want(r.call(r.admin(), "POST", base, `{"count":3}`), 202, "")
	r.want(r.call(r.admin(), "POST", base+"/"+b.at("id").(string)+"/revoke", `{"reason":" \n"}`), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", base+"/"+b.at("id").(string)+"/revoke", "{\"reason\":\"a\\u0000b\"}"), 422, "invalid_request")
	reader := as(r.keys["read"])
	r.want(r.call(reader, "GET", base, nil), 200, "")
	r.want(r.call(reader, "POST", base, `{"count":1}`), 403, "forbidden")
	r.want(r.call(reader, "GET", base+".csv", nil), 403, "forbidden") // codes are money
	r.want(r.call(as(token(7)), "GET", base+".csv", nil), 403, "forbidden")
	r.want(r.call(as(""), "GET", base+".csv", nil), 401, "unauthenticated")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/close", nil), 200, "")
	r.want(r.call(r.admin(), "POST", base, `{"count":1}`), 409, "template_not_open")
	keyless := newFixture(t, func(d *api.Deps) { d.Coupons.Codes.Keys = &redeemcode.Keyring{} })
	id = keyless.byCode(nil)
	keyless.want(keyless.call(keyless.admin(), "POST", "/admin/templates/"+id+"/codes", `{"count":1}`), 409, "codes_not_configured")
}
