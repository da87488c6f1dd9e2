package chaos_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// account is the balance of a drop in the chaos of claims: the ledger is exact, the openings, the share and the limits of the doors held, and the
// whole stock was sold. last is when the drop opened for everybody.
func (d *doored) account(last time.Time) {
	d.t.Helper()
	d.calm(d.template)
	(&sale{claims: d.claims, mode: "doors " + d.mode, template: d.template, told: map[wish][]told{}, keys: map[int64][]string{}, answers: map[string]int{}}).sellOut()
	first, members, has := last.Add(-doorLead), map[int64]bool{}, map[int64]int{}
	for _, u := range d.members {
		members[u] = true
	}
	early, all := int64(0), d.rows(d.template)
	for _, r := range all {
		has[r.user]++
		limit := d.rush.limit
		if members[r.user] {
			limit = d.limit
		}
		before := r.issuedAt.Before(last)
		if before {
			early++
		}
		if has[r.user] > limit || before && !members[r.user] || r.issuedAt.Before(first) {
			d.t.Errorf("doors %s: user %d, a member: %v, has %d coupons, one of %v; the doors opened at %v and %v", d.mode, r.user, members[r.user], has[r.user], r.issuedAt, first, last)
		}
	}
	if early == 0 || early > d.share || int64(len(all)) != d.stock {
		d.t.Errorf("doors %s: %d coupons were sold before the second door opened, of a share of %d; %d of %d were sold in all", d.mode, early, d.share, len(all), d.stock)
	}
}

// A doorRush is a crowd at a drop with doors.
type doorRush struct {
	*doored
	last    time.Time // when the second door opened
	looks   int
	unread  int
	answers map[string]int
}

func (c *claims) openDoors(mode string) *doorRush {
	users := make([]int64, 60)
	for i := range users {
		users[i] = 30_000_000 + int64(len(mode))*1000 + int64(i)
	}
	return &doorRush{doored: c.publishDoors("Rush by doors "+mode, mode, users, 20, 40, 10, c.rush.limit), answers: map[string]int{}}
}

// run lets all users claim from a moment before the first door opens. The second door opens in the middle of the storm.
func (r *doorRush) run(storm time.Duration, over <-chan struct{}) {
	begun, opening := time.Now(), r.opens(doorLead+2*time.Second)
	users := slices.Concat(r.members, r.others)
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			rng := r.random(uint64(700 + 10*len(r.mode) + n))
			repeatedly(r.ctx, 20*time.Millisecond, over, func() {
				a, final := r.send(r.ctx, call{method: http.MethodPost, path: "/claims", user: users[rng.IntN(len(users))], body: map[string]any{"template_id": fmt.Sprint(r.template)}}, uuid.NewString())
				r.mu.Lock()
				defer r.mu.Unlock()
				if final {
					r.answers[a.name()]++
				}
			})
		})
	}
	for time.Since(begun) < storm/2 {
		r.withinShare(opening)
		wait(200*time.Millisecond, over)
	}
	r.last = r.opens(0)
	r.watchLedger(r.template, "doors "+r.mode, over, &r.looks, &r.unread)
	all.Wait()
}

// withinShare compares the coupons that are stored before the second door opens with the share of the first.
func (r *doorRush) withinShare(opening time.Time) {
	var n int64
	err := r.stack.SQL.QueryRow(r.ctx, `select count(*) from coupons where template_id = $1`, r.template).Scan(&n)
	if err == nil && time.Now().Before(opening) && n > r.share {
		r.t.Errorf("doors %s: %d coupons are sold of a share of %d", r.mode, n, r.share)
	}
}

// judge checks the drop after the storm.
func (r *doorRush) judge() {
	r.account(r.last)
	for _, must := range []string{"door_not_open", "sold_out"} {
		if r.answers[must] == 0 {
			r.t.Errorf("doors %s: no user was ever answered %s: %s", r.mode, must, answersOf(r.answers))
		}
	}
	r.say("doors %s: %d coupons, %d looks at the ledger, all exact; answers %s", r.mode, r.stock, r.looks, answersOf(r.answers))
}
