package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
)

// drawKey signs the draws of the evenings.
const drawKey = "DRAW_KEY=a secret of at least thirty-two bytes for draws"

// A drawn drop is a draw of an evening: every user enters twice, and the last one leaves again.
type drawnDrop struct {
	*claims
	template int64
	users    []int64
	mu       sync.Mutex
	receipts map[int64]string
	seal     string // as it was first seen; "" = it was not looked for
}

// publishDraw publishes a draw of forSale coupons, decided by a secret whose hash is on the card, so that
// no round has to be waited for. acceptHours says for how long winners may accept; 0 = they get the coupon.
func (c *claims) publishDraw(name string, users []int64, acceptHours int) *drawnDrop {
	c.t.Helper()
	id := c.publishDrop(name, "durable", "claim", forSale, 1, time.Hour, map[string]any{"opening_mode": "draw", "draw_source": "commit", "accept_hours": acceptHours, "waitlist": "issue"})
	return &drawnDrop{claims: c, template: id, users: users, receipts: map[int64]string{}}
}

// enter lets all users enter, twice each. A repetition has the same receipt.
func (d *drawnDrop) enter() {
	d.t.Helper()
	path := fmt.Sprintf("/draws/%d", d.template)
	d.awaitCard(d.template)
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

// awaitCard waits until the card of the draw is published.
func (w *system) awaitCard(template int64) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, w.ctx.Done()) {
		if r, final := w.crowd.send(w.ctx, call{method: "GET", path: fmt.Sprintf("/draws/%d/card", template)}); final && r.ok() {
			return
		}
		if time.Now().After(end) {
			w.t.Fatal("a draw has no card after a minute")
		}
	}
}

// read returns a number of the draw.
func (d *drawnDrop) read(sql string) (n int) {
	d.t.Helper()
	if err := d.stack.SQL.QueryRow(d.ctx, sql, d.template).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// until waits for a state of the draw, and calls do meanwhile.
func (d *drawnDrop) until(state string, do func()) {
	d.t.Helper()
	for end := time.Now().Add(2 * time.Minute); d.read(`select count(*) from draws where template_id = $1 and state = '`+state+`'`) == 0; wait(100*time.Millisecond, d.ctx.Done()) {
		if time.Now().After(end) {
			d.t.Fatalf("the draw of drop %d is not %s after two minutes", d.template, state)
		}
		do()
	}
}

// offers lets the first winner accept, and ends the offers of the others, and of those who move up, until no ticket is left.
// Every entry is then in the account: one has won, the others lapsed.
func (d *drawnDrop) offers() {
	d.t.Helper()
	d.until("offered", func() {})
	winner := int64(d.read(`select user_id from draw_entries where template_id = $1 and state = 'won' order by rank limit 1`))
	for range 2 {
		if r, final := d.crowd.send(d.ctx, call{method: "POST", path: fmt.Sprintf("/draws/%d/acceptance", d.template), user: winner}); !final || !r.ok() {
			d.t.Errorf("the winner %d cannot accept: %d %s", winner, r.status, r.body)
		}
	}
	d.until("done", func() {
		for _, sql := range []string{`update draw_entries set offered_until = clock_timestamp() where template_id = $1 and state = 'won' and accepted_at is null and offered_until is not null`,
			`update draws set offers_until = clock_timestamp() where template_id = $1 and state = 'offered'`} {
			if _, err := d.stack.SQL.Exec(d.ctx, sql, d.template); err != nil {
				d.t.Fatal(err)
			}
		}
	})
	d.adds(map[string][2]int{
		"winners":         {d.read(`select count(*) from draw_entries where template_id = $1 and state = 'won' and accepted_at is not null and coupon_id is not null`), 1},
		"counted winners": {d.read(`select won from draws where template_id = $1`), 1},
		"coupons":         {d.read(`select count(*) from coupons where template_id = $1 and user_id = ` + fmt.Sprint(winner)), 1},
		"other coupons":   {d.read(`select count(*) from coupons where template_id = $1`), 1},
		"lapsed":          {d.read(`select count(*) from draw_entries where template_id = $1 and state = 'lapsed'`), guests - 2},
		"counted lapsed":  {d.read(`select lapsed from draws where template_id = $1`), guests - 2},
	})
	d.balance()
}

// strike lets staff strike the entry of a user.
func (d *drawnDrop) strike(user int64) {
	d.t.Helper()
	r, final := d.crowd.send(d.ctx, call{method: "POST", path: fmt.Sprintf("/admin/draws/%d/strikes", d.template), body: map[string]any{"user_id": fmt.Sprint(user), "reason": "chaos"}})
	if !final || !r.ok() && r.status != http.StatusConflict { // an attempt before may have struck it
		d.t.Errorf("the entry of user %d is not struck: %d %s", user, r.status, r.body)
	}
}

// account waits for the end of the draw, of which one entry was struck, and compares its account with the rows and the
// coupons. Then it strikes a winner: the next ticket gets the coupon.
func (d *drawnDrop) account() {
	d.t.Helper()
	d.until("done", func() {})
	d.verify()
	read := d.read
	const lost = guests - 2 - forSale
	d.adds(map[string][2]int{
		"entries":                 {read(`select count(*) from draw_entries where template_id = $1`), guests - 1},
		"entered less left":       {read(`select sum(entered) - sum(departed) from draw_counts where template_id = $1`), guests - 1},
		"winners":                 {read(`select count(*) from draw_entries where template_id = $1 and state = 'won'`), forSale},
		"counted winners":         {read(`select won from draws where template_id = $1`), forSale},
		"coupons":                 {read(`select count(*) from coupons where template_id = $1`), forSale},
		"winners with own coupon": {read(`select count(*) from draw_entries e join coupons c on c.id = e.coupon_id and c.user_id = e.user_id where e.template_id = $1 and c.origin = 'draw'`), forSale},
		"struck entries":          {read(`select struck from draws where template_id = $1`), 1},
		"entries that wait":       {read(`select count(*) from waiters w join draw_entries e using (template_id, user_id) where w.template_id = $1 and w.state = 'waiting' and e.state = 'entered'`), lost},
		"counted waiting users":   {read(`select waiting from waitlists where template_id = $1`), lost},
		"sealed rows":             {read(`select sum(length(rows)) / 49 from draw_chunks where template_id = $1`), guests - 2},
		"told winners":            {read(`select count(*) from draw_entries e join announcements a on a.id = e.told_by and a.kind = 'won' where e.template_id = $1 and e.state = 'won'`), forSale},
		"announcements of losses": {read(`select count(*) from announcements where template_id = $1 and kind = 'lost'`), 1},
	})
	d.strike(int64(read(`select user_id from draw_entries where template_id = $1 and state = 'won' order by rank limit 1`)))
	d.until("done", func() {})
	d.adds(map[string][2]int{
		"struck entries":          {read(`select struck from draws where template_id = $1`), 2},
		"winners":                 {read(`select won from draws where template_id = $1`), forSale},
		"entries behind them":     {read(`select count(*) from draw_entries where template_id = $1 and state = 'entered'`), lost - 1},
		"valid coupons":           {read(`select count(*) from coupons where template_id = $1 and not returned`), forSale},
		"winners with own coupon": {read(`select count(*) from draw_entries e join coupons c on c.id = e.coupon_id and c.user_id = e.user_id where e.template_id = $1 and e.state = 'won' and not c.returned`), forSale},
	})
	d.verify()
	d.balance()
}

// verify recomputes the draw with the receipts of all users but those whose entry was struck before the seal, or left.
func (d *drawnDrop) verify() {
	d.t.Helper()
	var receipts []string
	for _, u := range d.users[1 : len(d.users)-1] {
		receipts = append(receipts, d.receipts[u])
	}
	d.verifyDraw(d.template, d.seal, receipts)
}

// balance reads the product's own accounts of the draw and of its waitlist.
func (d *drawnDrop) balance() {
	d.t.Helper()
	a, err := dropsdb.NewDraws(d.stack.DB).DrawAccount(d.ctx, d.template)
	if err != nil || a.Difference() != 0 {
		d.t.Errorf("the account of the draw of drop %d is off by %d: %+v, %v", d.template, a.Difference(), a, err)
	}
	d.waits(d.template)
}

// waits reads the product's own account of a waitlist.
func (c *claims) waits(template int64) {
	c.t.Helper()
	sheet, off, err := couponsdb.NewLedgers(c.stack.DB).WaitsCounted(c.ctx, template)
	if err != nil || off != 0 || sheet.Difference() != 0 {
		c.t.Errorf("the account of the waitlist of drop %d is off by %d: %+v, %v", template, off, sheet, err)
	}
}

// adds compares counts with what they must be.
func (d *drawnDrop) adds(counts map[string][2]int) {
	d.t.Helper()
	for what, n := range counts {
		if n[0] != n[1] {
			d.t.Errorf("draw of drop %d: %d %s, want %d", d.template, n[0], what, n[1])
		}
	}
}
