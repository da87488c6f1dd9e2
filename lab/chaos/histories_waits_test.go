package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// A waitHistory is a drop with a waitlist, which is sold out, and whose waits and taps are recorded.
type waitHistory struct {
	*openSale
	offers bool
	owned  []string // coupons of the users who claimed first
}

// soldFirst is how many coupons are claimed before a history of waits begins.
const soldFirst = 3

func (h *histories) openWaits(mode, list string, n int) func() {
	s := &openSale{histories: h, mode: mode, stock: soldFirst}
	s.history = h.record(fmt.Sprint("waits ", list, " ", mode, " ", n), waitModel(list == "offer", mode == "gate"))
	s.template = h.publishDrop("History of waits", mode, "claim", soldFirst, 1, 2*time.Second, map[string]any{"waitlist": list})
	w := &waitHistory{openSale: s, offers: list == "offer"}
	return func() {
		w.sellFirst()
		w.run()
	}
}

// sellFirst claims the whole stock.
func (w *waitHistory) sellFirst() {
	for end := time.Now().Add(30 * time.Second); len(w.rows(w.template)) < soldFirst && time.Now().Before(end); wait(100*time.Millisecond, w.ctx.Done()) {
		for i := range soldFirst {
			w.claim(entrantOf(w.template, 90+i))
		}
	}
	w.calm(w.template)
	for _, r := range w.rows(w.template) {
		w.owned = append(w.owned, r.coupon)
	}
	if len(w.owned) != soldFirst {
		w.t.Errorf("%s: %d of %d coupons are sold", w.history.name, len(w.owned), soldFirst)
	}
}

// run lets two clients of every user join, leave, accept and read, and others claim, while staff raise the stock, take coupons back, and offers end.
func (w *waitHistory) run() {
	var all sync.WaitGroup
	all.Go(w.bringStock)
	for client := range 2 * waiters {
		all.Go(func() {
			rng := w.random(uint64(500_00 + client))
			for range 7 {
				wait(time.Duration(rng.Int64N(int64(w.rush.storm/4))), w.ctx.Done())
				w.act(client, client%waiters, rng)
			}
		})
	}
	for tap := range 2 {
		all.Go(func() {
			rng := w.random(uint64(600_00 + tap))
			for n := range 8 {
				wait(time.Duration(rng.Int64N(int64(w.rush.storm/5))), w.ctx.Done())
				w.history.do(20+tap, waitStep{verb: "tap"}, knownWithin, func() reported { return w.claim(entrantOf(w.template, 50+10*tap+n)) })
			}
		})
	}
	all.Wait()
	w.rest()
	for user := range waiters {
		w.history.do(user, waitStep{verb: "read", user: user}, 0, func() reported { return w.ask(http.MethodGet, "", user) })
	}
	w.account()
}

// bringStock brings stock back in turns: raised by staff, and taken back from users. Offers end between.
func (w *waitHistory) bringStock() {
	raise := func(stock int) waitStep { return waitStep{verb: "raise", stock: stock} }
	for i, in := range []waitStep{raise(soldFirst + 1), {verb: "return"}, {verb: "end"}, raise(soldFirst + 2), {verb: "return"}, {verb: "end"}, raise(soldFirst + 3)} {
		wait(w.rush.storm/9, w.ctx.Done())
		if in.verb == "end" && !w.offers {
			continue
		}
		w.history.do(30, in, 0, func() reported {
			switch in.verb {
			case "raise":
				return w.step(claimStep{verb: "raise", stock: in.stock})
			case "return":
				return w.histories.ask(call{method: http.MethodPost, path: "/admin/coupons/" + w.owned[i/4] + "/revoke", body: map[string]any{"reason": "history", "return_to_stock": true}}, nothingToRead)
			}
			if _, err := w.stack.SQL.Exec(w.ctx, `update waiters set offer_until = clock_timestamp() where template_id = $1 and state = 'offered'`, w.template); err != nil {
				w.t.Error(err)
			}
			return reported{code: okay}
		})
	}
}

func (w *waitHistory) act(client, user int, rng *rand.Rand) {
	verb, method, at := "join", http.MethodPut, ""
	switch n := rng.IntN(10); {
	case n < 2:
		verb, method = "leave", http.MethodDelete
	case n < 4:
		verb, method = "read", http.MethodGet
	case n < 7 && w.offers:
		verb, method, at = "accept", http.MethodPost, "/accept"
	}
	w.history.do(client, waitStep{verb: verb, user: user}, 0, func() reported { return w.ask(method, at, user) })
}

// ask sends one request about the wait of a user. The value of its answer is the user's place.
func (w *waitHistory) ask(method, at string, user int) reported {
	r, final := w.answer(call{method: method, path: fmt.Sprintf("/waitlist/%d%s", w.template, at), user: entrantOf(w.template, user)})
	switch {
	case !final:
		return reported{}
	case !r.ok():
		return reported{code: r.code}
	}
	var v struct{ State string }
	if err := json.Unmarshal(r.body, &v); err != nil || placeOf[v.State] == nowhere {
		w.t.Errorf("the place %s: %v", r.body, err)
	}
	if method == http.MethodPut && r.status == http.StatusOK {
		return reported{code: found, value: uint64(placeOf[v.State])}
	}
	return reported{code: okay, value: uint64(placeOf[v.State])}
}

// rest waits until the stock that is kept is given or offered.
func (w *waitHistory) rest() {
	for end := time.Now().Add(time.Minute); ; wait(100*time.Millisecond, w.ctx.Done()) {
		var held, offered, waiting int
		err := w.stack.SQL.QueryRow(w.ctx, `select t.held, l.offered, l.waiting - l.offered from templates t join waitlists l on l.template_id = t.id where t.id = $1`, w.template).Scan(&held, &offered, &waiting)
		if err == nil && held == offered {
			return
		}
		if time.Now().After(end) {
			w.t.Errorf("%s: %d coupons are kept, %d offered, while %d users wait: %v", w.history.name, held, offered, waiting, err)
			return
		}
	}
}

// account checks the ledger of the stock and the balance of the waitlist.
func (w *waitHistory) account() {
	w.calm(w.template)
	w.waits(w.template)
	var filled, given, most int
	err := w.stack.SQL.QueryRow(w.ctx, `select l.filled,
		(select count(*) from coupons where template_id = $1 and origin = 'waitlist'),
		(select coalesce(max(n), 0) from (select count(*) as n from coupons where template_id = $1 group by user_id) u)
		from waitlists l where l.template_id = $1`, w.template).Scan(&filled, &given, &most)
	if err != nil || filled != given || most > 1 {
		w.t.Errorf("%s: %d users are filled and %d have a coupon of the waitlist, one user has %d coupons: %v", w.history.name, filled, given, most, err)
	}
}
