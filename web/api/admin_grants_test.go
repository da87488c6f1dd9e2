package api_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// workGrants runs the waiting grants, as a worker would.
func (r *fixture) workGrants() {
	r.Helper()
	db := r.db
	gate := couponsdb.NewClaims(db, postgres.Grouping{})
	defer gate.Close()
	w := &job.Worker{Store: workdb.NewJobs(db), Queue: discardQueue{}, LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 },
		Runners: map[string]job.Runner{coupon.TakeBackKind: &coupon.TakeBacker{Store: couponsdb.NewGrants(db), Desk: &coupon.Admin{Store: couponsdb.NewCouponSteps(db)}},
			coupon.GrantKind: &coupon.Granter{Admin: &coupon.Admin{Store: couponsdb.NewCouponSteps(db)}, Store: couponsdb.NewGrants(db), Lists: grantLists{tables.Tables{Open: workdb.NewUploads(db).OpenUpload}},
				Gate: gate, Random: rand.Uint64}}}
	due, err := workdb.NewJobs(db).DueJobs(r.Context(), []string{coupon.GrantKind, coupon.TakeBackKind}, 100)
	if err != nil || len(due) == 0 {
		r.Fatal(due, err)
	}
	for _, id := range due {
		if err := w.Run(r.Context(), id); err != nil {
			r.Fatal(err)
		}
	}
}

// testGrantIsAppliedAfterItsDryRun: dry run, results, apply twice, results.
func testGrantIsAppliedAfterItsDryRun(t *testing.T) {
	r := newFixture(t, nil)
	drop := r.drop(time.Hour)
	r.exec(`insert into users (id) values (7), (8) on conflict do nothing`)
	a := r.want(r.call(r.admin(), "POST", "/admin/templates/"+drop+"/grants", map[string]any{"user_ids": []string{"7", "999", "8", "7"}, "dry_run": true}), 202, "")
	path := "/admin/grants/" + a.at("job_id").(string)
	r.want(r.call(r.admin(), "POST", path+"/apply", nil), 409, "invalid_transition") // not done yet
	r.workGrants()
	results := func(path, want string) {
		t.Helper()
		a := r.want(r.call(r.admin(), "GET", path+"/results.csv", nil), 200, "")
		if !strings.HasPrefix(a.Header().Get("Content-Type"), "text/csv") || a.Body.String() != want {
			t.Errorf("%s: %q, want %q", a.Header().Get("Content-Type"), a.Body, want)
		}
	}
	results(path, "line,user_id,result,coupon_id\n2,7,ok,\n3,999,unknown_user,\n4,8,ok,\n5,7,duplicate,\n")
	if n := r.number(`select count(*) from coupons`); n != 0 {
		t.Fatalf("the dry run gave %d coupons", n)
	}
	applied := r.want(r.call(r.admin(), "POST", path+"/apply", nil), 202, "")
	if applied.at("dry_run") != false || applied.at("job_id") == a.at("job_id") {
		t.Fatalf("%s", applied.Body)
	}
	if again := r.want(r.call(r.admin(), "POST", path+"/apply", nil), 202, ""); again.at("job_id") != applied.at("job_id") || again.at("started_by") != applied.at("started_by") || !strings.HasPrefix(again.at("started_by").(string), "key:") {
		t.Fatalf("applied twice: %s", again.Body)
	}
	r.workGrants()
	done := "/admin/grants/" + applied.at("job_id").(string)
	first, second := r.number(`select id from coupons where user_id = 7`), r.number(`select id from coupons where user_id = 8`)
	for _, p := range []string{path, done} {
		results(p, "line,user_id,result,coupon_id\n2,7,issued,"+decimalOf(first)+"\n3,999,unknown_user,\n4,8,issued,"+decimalOf(second)+"\n5,7,duplicate,\n")
	}
	if got := r.want(r.call(r.admin(), "GET", done, nil), 200, ""); got.at("state") != "done" || got.at("done") != 2.0 || got.at("failed") != 2.0 || got.at("results.issued") != 2.0 {
		t.Errorf("%s", got.Body)
	}
	r.want(r.call(r.admin(), "POST", done+"/apply", nil), 409, "invalid_transition")                               // no dry run
	r.want(r.call(r.admin(), "POST", path+"/take-back", map[string]any{"reason": "x"}), 409, "invalid_transition") // a dry run
	r.want(r.call(r.admin(), "POST", done+"/take-back", map[string]any{"reason": ""}), 422, "invalid_request")
	back := r.want(r.call(r.admin(), "POST", done+"/take-back", map[string]any{"reason": "the wrong list", "return_to_stock": true}), 202, "")
	r.workGrants()
	if got := r.want(r.call(r.admin(), "GET", "/admin/grants/"+back.at("job_id").(string), nil), 200, ""); got.at("state") != "done" || got.at("done") != 2.0 || got.at("results.revoked") != 2.0 {
		t.Errorf("%s", got.Body)
	}
	back = r.want(r.call(r.admin(), "POST", done+"/take-back", map[string]any{"reason": "once more"}), 202, "")
	r.workGrants()
	if got := r.want(r.call(r.admin(), "GET", "/admin/grants/"+back.at("job_id").(string), nil), 200, ""); got.at("done") != 0.0 || got.at("results.revoked_before") != 2.0 {
		t.Errorf("taken back twice: %s", got.Body)
	}
	if n := r.number(`select count(*) from coupons where state = 'revoked' and returned`); n != 2 {
		t.Errorf("%d coupons came back", n)
	}
	for _, p := range []string{"/apply", "/results.csv", "/take-back"} {
		method := map[string]string{"/apply": "POST", "/results.csv": "GET", "/take-back": "POST"}[p]
		var body any
		if p == "/take-back" {
			body = map[string]any{"reason": "x"}
		}
		r.want(r.call(r.admin(), method, "/admin/grants/404404"+p, body), 404, "job_not_found")
		r.want(r.call(as(r.keys[staff.ScopeRead]), method, path+p, body), 403, "forbidden")
	}
}

// TestGrantsThatNobodyCanGet: an empty list, and templates that take none.
func TestGrantsThatNobodyCanGet(t *testing.T) {
	r := newFixture(t, nil)
	drop := r.drop(time.Hour)
	path := "/admin/templates/" + drop + "/grants"
	r.want(r.call(r.admin(), "POST", path, map[string]any{"user_ids": []string{}}), 422, "invalid_request")
	wish := map[string]any{"user_ids": []string{"7"}, "dry_run": true}
	for state, detail := range map[string]string{"draft": "coupons of a draft template cannot be given away", "cancelled": "coupons of a cancelled template cannot be given away"} {
		r.exec(`update templates set state = $1`, state)
		if a := r.want(r.call(r.admin(), "POST", path, wish), 409, "invalid_transition"); a.at("detail") != detail {
			t.Errorf("%s: %s", state, a.Body)
		}
	}
	if n := r.number(`select count(*) from uploads`); n != 0 {
		t.Errorf("%d lists were stored for templates that take none", n)
	}
	r.exec(`update templates set state = 'published'`)
	a := r.want(r.call(r.admin(), "POST", path, wish), 202, "")
	if n := r.number(`select count(*) from jobs where params @> '{"ids": true}' and not params ? 'file'`); n != 1 {
		t.Error("the job does not tell that its list came without a file")
	}
	// A list without rows that an earlier version of the program has taken.
	r.exec(`update jobs set state = 'done', total = 0`)
	done := "/admin/grants/" + a.at("job_id").(string) + "/apply"
	if a := r.want(r.call(r.admin(), "POST", done, nil), 409, "invalid_transition"); a.at("detail") != "the list has no rows; there is nobody to give a coupon to" {
		t.Errorf("%s", a.Body)
	}
}

// grantLists opens uploads as a worker does.
type grantLists struct{ tables.Tables }

func (l grantLists) OpenList(ctx context.Context, uploadID int64) (coupon.Rows, error) {
	return l.OpenTable(ctx, uploadID, job.Reading{}, nil)
}

func decimalOf(n int64) string { return strconv.FormatInt(n, 10) }
