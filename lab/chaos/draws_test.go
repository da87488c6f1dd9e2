package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// drawKey signs the draws of the evenings.
const drawKey = "DRAW_KEY=a secret of at least thirty-two bytes for draws"

// A drawn drop is a draw of an evening: every user enters twice, and the last one leaves again.
type drawnDrop struct {
	*walk
	template int64
	users    []int64
	mu       sync.Mutex
	receipts map[int64]string
}

// publishDraw publishes a draw of forSale coupons, decided by a secret whose hash is on the card, so that
// no round has to be waited for.
func (k *walk) publishDraw(name string, users []int64) *drawnDrop {
	k.t.Helper()
	opens := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	var t templateBody
	k.crowd.must(k.ctx, call{method: "POST", path: "/admin/templates", body: map[string]any{
		"shop_number": fmt.Sprint(shopNumber), "name": name, "kind": "amount_off", "amount_off": 1000, "currency": "CNY", "stock": forSale, "per_user_limit": 1,
		"opening_mode": "draw", "draw_source": "commit", "waitlist": "issue", "opens_at": opens, "closes_at": opens.Add(24 * time.Hour), "valid_hours": 48}}, &t)
	k.crowd.must(k.ctx, call{method: "POST", path: fmt.Sprintf("/admin/templates/%d/publish", t.ID), body: map[string]any{"reason": "chaos"}}, nil)
	return &drawnDrop{walk: k, template: t.ID, users: users, receipts: map[int64]string{}}
}

// enter lets all users enter, twice each. A repetition has the same receipt.
func (d *drawnDrop) enter() {
	d.t.Helper()
	path := fmt.Sprintf("/draws/%d", d.template)
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, d.ctx.Done()) {
		if r, final := d.crowd.send(d.ctx, call{method: "GET", path: path + "/card"}); final && r.ok() {
			break
		}
		if time.Now().After(end) {
			d.t.Fatal("a draw has no card after a minute")
		}
	}
	var all sync.WaitGroup
	for _, u := range d.users {
		all.Go(func() {
			for range 2 {
				var entry struct{ Receipt string }
				r, final := d.crowd.send(d.ctx, call{method: "PUT", path: path + "/entry", user: u})
				if !final || !r.ok() || json.Unmarshal(r.body, &entry) != nil {
					d.t.Errorf("the entry of user %d: %d %s", u, r.status, r.body)
					return
				}
				d.mu.Lock()
				if before := d.receipts[u]; before != "" && before != entry.Receipt {
					d.t.Errorf("user %d has two receipts:\n%s\n%s", u, before, entry.Receipt)
				}
				d.receipts[u] = entry.Receipt
				d.mu.Unlock()
			}
		})
	}
	all.Wait()
	left := d.users[len(d.users)-1]
	r, final := d.crowd.send(d.ctx, call{method: "DELETE", path: path + "/entry", user: left})
	if !final || !r.ok() && r.status != http.StatusNotFound { // an attempt before may have removed it
		d.t.Errorf("user %d cannot leave: %d %s", left, r.status, r.body)
	}
}

// account waits for the end of the draw and compares its account with the rows and the coupons.
func (d *drawnDrop) account() {
	d.t.Helper()
	read := func(sql string) (n int) {
		if err := d.stack.SQL.QueryRow(d.ctx, sql, d.template).Scan(&n); err != nil {
			d.t.Fatal(err)
		}
		return n
	}
	for end := time.Now().Add(2 * time.Minute); read(`select count(*) from draws where template_id = $1 and state = 'done'`) == 0; wait(100*time.Millisecond, d.ctx.Done()) {
		if time.Now().After(end) {
			d.t.Fatalf("the draw of drop %d has not ended after two minutes", d.template)
		}
	}
	for what, n := range map[string][2]int{
		"entries":                 {read(`select count(*) from draw_entries where template_id = $1`), guests - 1},
		"entered less left":       {read(`select sum(entered) - sum(departed) from draw_counts where template_id = $1`), guests - 1},
		"winners":                 {read(`select count(*) from draw_entries where template_id = $1 and state = 'won'`), forSale},
		"counted winners":         {read(`select won from draws where template_id = $1`), forSale},
		"coupons":                 {read(`select count(*) from coupons where template_id = $1`), forSale},
		"winners with own coupon": {read(`select count(*) from draw_entries e join coupons c on c.id = e.coupon_id and c.user_id = e.user_id where e.template_id = $1 and c.origin = 'draw'`), forSale},
		"entries that wait":       {read(`select count(*) from waiters w join draw_entries e using (template_id, user_id) where w.template_id = $1 and w.state = 'waiting' and e.state = 'entered'`), guests - 1 - forSale},
		"counted waiting users":   {read(`select waiting from waitlists where template_id = $1`), guests - 1 - forSale},
		"sealed rows":             {read(`select sum(length(rows)) / 49 from draw_chunks where template_id = $1`), guests - 1},
	} {
		if n[0] != n[1] {
			d.t.Errorf("draw of drop %d: %d %s, want %d", d.template, n[0], what, n[1])
		}
	}
}
