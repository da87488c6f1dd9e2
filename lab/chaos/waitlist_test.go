package chaos_test

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// waitAndFill lets the users who got no coupon join the waitlist of a drop that sold out, and one of
// them leave. An order is then refunded, and staff raise the stock: the others get a coupon and a message each, which
// they accept if the drop makes offers. No user gets two, and no coupon that is kept for them is claimed meanwhile.
func (k *walk) waitAndFill(template int64, users []int64) {
	path := fmt.Sprintf("/waitlist/%d", template)
	holds := map[int64]bool{}
	for _, r := range k.c.rows(template) {
		holds[r.user] = true
	}
	waiting := slices.DeleteFunc(slices.Clone(users), func(u int64) bool { return holds[u] })
	step := func(method string, user int64, want ...int) {
		to := path
		if method == http.MethodPost {
			to += "/accept"
		}
		if r, final := k.crowd.send(k.ctx, call{method: method, path: to, user: user}); !final || !slices.Contains(want, r.status) {
			k.t.Errorf("%s %s by user %d: answer %d %s", method, path, user, r.status, r.body)
		}
	}
	for _, u := range waiting {
		step(http.MethodPut, u, http.StatusCreated, http.StatusOK)
	}
	step(http.MethodDelete, waiting[0], http.StatusOK)
	filled := waiting[1:]
	var used int64
	var offers bool
	if err := k.stack.SQL.QueryRow(k.ctx, `select c.id, t.waitlist = 'offer' from coupons c join templates t on t.id = c.template_id where t.id = $1 and c.state = 'used'`, template).Scan(&used, &offers); err != nil {
		k.t.Error(err)
		return
	}
	for range 2 {
		if r, final := k.crowd.send(k.ctx, call{method: "POST", path: fmt.Sprintf("/coupons/%d/refund", used), body: map[string]any{"order_id": fmt.Sprint("order-", used)}}); !final || !r.ok() {
			k.t.Errorf("refund of coupon %d: %d %s", used, r.status, r.body)
		}
	}
	(&sale{claims: k.c, mode: "raise", template: template}).edit(func(now map[string]any) map[string]any {
		if stock := float64(forSale + len(filled) - 1); now["stock"] != stock {
			return map[string]any{"stock": stock}
		}
		return nil
	})
	if a := k.claim("waitlist", template, users[0]+900); a.state == "issued" || a.state == "accepted" {
		k.t.Errorf("template %d: a claim got stock that is kept: %+v", template, a)
	}
	var given, told int64
	for end := time.Now().Add(time.Minute); ; wait(100*time.Millisecond, k.ctx.Done()) {
		for _, u := range filled {
			if offers {
				step(http.MethodPost, u, http.StatusOK, http.StatusConflict)
			}
		}
		err := k.stack.SQL.QueryRow(k.ctx, `select (select count(distinct user_id) from coupons where template_id = $1 and origin = 'waitlist' and user_id = any($2)),
			(select coalesce(sum(due_count), 0) from batches where template_id = $1 and kind in ('waitlist', 'offer'))`, template, filled).Scan(&given, &told)
		if err != nil {
			k.t.Error(err)
			return
		}
		if given == int64(len(filled)) || time.Now().After(end) || k.ctx.Err() != nil {
			break
		}
	}
	k.c.calm(template)
	k.c.waits(template)
	var coupons, sum int64
	err := k.stack.SQL.QueryRow(k.ctx, `select (select count(*) from coupons where template_id = $1), (select filled + waiting + lapsed + "left" + skipped from waitlists where template_id = $1)`,
		template).Scan(&coupons, &sum)
	if err != nil || given != int64(len(filled)) || told != given || coupons != forSale+given || sum != int64(len(waiting)) {
		k.t.Errorf("template %d: %d of %d waiting users got a coupon, %d were told, %d coupons in all; %d of %d users are accounted for, %v",
			template, given, len(filled), told, coupons, sum, len(waiting), err)
	}
}
