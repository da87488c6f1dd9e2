package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// A write is a request by which a user, or the payment service, changes something.
type write struct {
	who          http.Header
	method, path string
	body         any
}

// writesOf returns the write requests of a user, to be sent one after the other, about drops of the
// user's own. writesOf itself stores all objects that the requests change.
func (r *fixture) writesOf(by int64) (writes []write, drops []string) {
	r.Helper()
	open, coming := r.open(1000), r.drop(time.Hour)
	byCode := r.byCode(nil)
	codes := r.codes(byCode, 1)
	paid, cart := r.coupon(by, open), r.coupon(by, open)
	me, till := as(token(by)), as(r.keys[staff.ScopePayment])
	keyed := func(key string) http.Header { return as(token(by), "Idempotency-Key", fmt.Sprint(by, key)) }
	phone := func(n int) map[string]any {
		return map[string]any{"platform": "wechat", "token": fmt.Sprintf("o%027d", 100*by+int64(n)), "app": "wx0123456789abcdef"}
	}
	device := r.want(r.call(me, "PUT", "/devices", phone(0)), 200, "").at("id").(string)
	r.want(r.call(me, "PUT", "/devices", phone(1)), 200, "")
	browser := r.want(r.call(me, "PUT", "/browsers", browserOf(fmt.Sprint(by, "-0"))), 200, "").at("id").(string)
	r.want(r.call(me, "POST", "/inbox/read", nil), 200, "")
	r.want(r.call(me, "POST", "/reservations", reserve(coming, "webpush", 10, "app", 15)), 201, "")
	r.want(r.call(me, "PUT", "/preferences", map[string]any{"locale": "en"}), 200, "")
	replacing := phone(2)
	replacing["replaces"] = phone(1)["token"]
	order := map[string]any{"order_id": "A", "order_amount": 6000, "currency": "CNY"}
	done := map[string]any{"order_id": "A"}
	consent := "/reservations/" + coming + "/consents/10"
	series := r.series(coming)
	full, drawn, protected := r.full(by+50), r.drawn(), r.open(1000)
	r.exec(`update templates set protection = 'standard' where id = $1`, protected)
	suspended, coded := r.suspended(by, protected), r.coded()
	access := r.codes(coded, 1)[0]
	return []write{
		{me, "POST", "/claims", claimOf(open)},
		{keyed("claim"), "POST", "/claims", claimOf(open)},
		{me, "POST", "/access-codes", map[string]any{"template_id": coded, "code": access}},
		{keyed("redeem"), "POST", "/redemptions", typed(codes[0])},
		{me, "POST", "/reservations", reserve(coming, "app", 10)},
		{keyed("reserve"), "POST", "/reservations", reserve(coming, "app", 5)},
		{me, "PUT", "/series/" + series + "/reservation", standing("app", 20)},
		{me, "DELETE", "/series/" + series + "/reservation", nil},
		{me, "PUT", consent, nil},
		{me, "DELETE", consent, nil},
		{me, "DELETE", "/reservations/" + coming + "?channel=app&minutes=15", nil},
		{me, "PUT", "/devices", phone(3)},
		{me, "PUT", "/devices", replacing},
		{me, "DELETE", "/devices/" + device, nil},
		{me, "PUT", "/preferences", map[string]any{"name": "Ann"}},
		{me, "POST", "/inbox/read", nil},
		{me, "POST", "/phone/verification", map[string]any{"phone": fmt.Sprintf("+8613800%06d", by)}},
		{me, "POST", "/phone/verification/confirm", map[string]any{"code": "000000"}},
		{till, "POST", "/coupons/" + paid + "/lock", order},
		{till, "POST", "/coupons/" + paid + "/release", done},
		{till, "POST", "/coupons/" + paid + "/confirm", done},
		{till, "POST", "/coupons/" + paid + "/refund", done},
		{till, "POST", fmt.Sprint("/orders/C-", by, "/lock"), map[string]any{"user_id": fmt.Sprint(by), "currency": "CNY", "coupons": []string{cart}, "lines": cartOf(6000)["lines"]}},
		{till, "POST", fmt.Sprint("/orders/C-", by, "/confirm"), nil},
		{till, "POST", fmt.Sprint("/orders/C-", by, "/refund"), nil},
		{till, "POST", fmt.Sprint("/orders/D-", by, "/release"), nil},
		{me, "POST", "/coupons/qualify", map[string]any{"order": cartOf(6000)}},
		{till, "POST", "/orders", map[string]any{"shop_number": "10", "order_id": fmt.Sprint("B-", by), "user_id": fmt.Sprint(by), "currency": "CNY", "amount": 6000}},
		{me, "PUT", "/browsers", browserOf(fmt.Sprint(by, "-1"))},
		{me, "DELETE", "/browsers/" + browser, nil},
		{me, "PUT", "/waitlist/" + full, nil},
		{me, "POST", "/waitlist/" + full + "/accept", nil},
		{me, "DELETE", "/waitlist/" + full, nil},
		{me, "PUT", "/draws/" + drawn + "/entry", nil},
		{me, "POST", "/draws/" + drawn + "/acceptance", nil},
		{me, "DELETE", "/draws/" + drawn + "/entry", nil},
		{me, "POST", "/passes/" + protected, map[string]any{}},
		{me, "POST", "/coupons/" + suspended + "/appeal", map[string]any{"text": "It was me."}},
	}, []string{open, coming, byCode, full, drawn, protected, coded}
}

// full returns a drop with a waitlist whose only coupon the user has.
func (r *fixture) full(by int64) string {
	r.Helper()
	id := r.open(1)
	r.exec(`update templates set waitlist = 'issue' where id = $1`, id)
	r.exec(`insert into waitlists (template_id) values ($1)`, id)
	r.want(r.call(as(token(by)), "POST", "/claims", claimOf(id)), 201, "")
	return id
}

// drawn returns a draw that takes entries.
func (r *fixture) drawn() string {
	r.Helper()
	w := wish(time.Hour)
	w["opening_mode"], w["draw_source"] = "draw", "commit"
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	r.must(r.operator().Sweep(context.Background()))
	return id
}

// suspended returns a coupon of the user that is under review.
func (r *fixture) suspended(by int64, drop string) string {
	r.Helper()
	id := r.coupon(by, drop)
	r.exec(`with c as (update coupons set state = 'suspended' where id = $1 returning id, user_id, template_id),
		g as (insert into reviews (template_id, shop_number, rules, facts, coupons, state, suspended)
			select template_id, 10, '{at_once}', '{"claims": 1}', 1, 'suspended', 1 from c returning id)
		insert into review_coupons (review_id, coupon_id, user_id, state) select g.id, c.id, c.user_id, 'suspended' from g, c`, id)
	return id
}

// TestUsersWaitForNobodysLocks: a session locks all rows of one user, and the rows of that user's
// drops, while this user's requests keep coming. All write requests of another user are answered as
// if there were no lock.
func TestUsersWaitForNobodysLocks(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) {
		d.Drops.Channels = delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.WebPush)
		d.Drops.Reminders.Channels = d.Drops.Channels
	})
	const theirs, mine = 100, 7
	blocked, drops := r.writesOf(theirs)
	writes, _ := r.writesOf(mine)
	// Requests about browsers wait for the user's row as requests about phones do. Both kinds at once
	// would hold every connection of the pool.
	blocked = slices.DeleteFunc(blocked, func(w write) bool { return strings.HasPrefix(w.path, "/browsers") })
	for _, w := range blocked { // so that their keys are stored
		if w.who.Get("Idempotency-Key") != "" {
			r.call(w.who, w.method, w.path, w.body)
		}
	}
	held, err := pgx.Connect(t.Context(), r.sql.Config().ConnString())
	r.must(err)
	defer held.Close(context.Background())
	for _, sql := range []string{`begin`,
		`select from templates where id = any($1::text[]::bigint[]) for update`,
		`select from slots where template_id = any($1::text[]::bigint[]) for update`,
		`select from code_batches where template_id = any($1::text[]::bigint[]) for update`,
		`select from coupons where template_id = any($1::text[]::bigint[]) for update`,
		`select from reservations where template_id = any($1::text[]::bigint[]) for update`,
		`select from users where id = 100 for update`, `select from inbox_reads where user_id = 100 for update`,
		`select from phone_verifications where user_id = 100 for update`, `select from idempotency_keys for update`} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, drops)
		}
		_, err := held.Exec(t.Context(), sql, args...)
		r.must(err)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	// Requests that wait hold a connection each, so that there are half as many callers as requests.
	for pair := range slices.Chunk(blocked, 2) {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
					w := pair[i%len(pair)]
					r.call(w.who, w.method, w.path, w.body)
				}
			}
		})
	}
	r.eventuallyBlocked()
	var untried []string
	for _, op := range r.api.Operations() {
		if op.Method != http.MethodGet && slices.ContainsFunc(op.Tags, func(tag string) bool { return tag == pipeline.TagUsers || tag == pipeline.TagPayment }) {
			untried = append(untried, op.Method+" "+op.Path)
		}
	}
	for _, w := range writes {
		start := time.Now()
		a := r.call(w.who, w.method, w.path, w.body)
		took := time.Since(start)
		path, _, _ := strings.Cut(w.path, "?")
		if a.Code >= 500 || took > 2*time.Second {
			t.Errorf("%s %s: %d after %v: %s", w.method, w.path, a.Code, took, a.Body)
		}
		pattern := w.method + " " + r.api.PatternOf(w.method, "/api/v1"+path)
		untried = slices.DeleteFunc(untried, func(op string) bool { return op == pattern || op == w.method+" "+r.api.PatternOf(w.method, path) })
	}
	if len(untried) > 0 {
		t.Errorf("not tried: %v", untried)
	}
	close(over)
	all.Wait()
}

// eventuallyBlocked waits until requests wait for locks.
func (r *fixture) eventuallyBlocked() {
	r.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if r.number(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 1 {
			return
		}
	}
	r.Fatal("no request waits for the locks")
}
