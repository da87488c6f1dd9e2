package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// A sale is one drop, behind one of the gates, and the answers to its users.
type sale struct {
	*claims
	mode     string
	template int64
	opensAt  time.Time
	stock    int64 // as of the last raise

	told    map[wish][]told
	keys    map[int64][]string // of each user
	last    map[wish]told      // after the storm
	answers map[string]int
	pauses  []span // acknowledged, until the drop was to go on
	looks   int    // at the ledger, that told something
	unread  int
	guard   sync.Mutex
}

// A wish is one claim that a user may send any number of times.
type wish struct {
	user int64
	key  string
}

// told is one answer.
type told struct {
	from, at time.Time // when it was asked for, and came
	status   int
	code     string // of a refusal
	claim    string
	coupon   string
	state    string
	reason   string
}

func (a told) positive() bool { return a.status/100 == 2 }

// publish publishes a drop, which is opened by [sale.openSoon].
func (c *claims) publish(mode string) *sale {
	s := &sale{claims: c, mode: mode, stock: c.rush.stock[0], told: map[wish][]told{}, keys: map[int64][]string{}, last: map[wish]told{},
		answers: map[string]int{}}
	s.template = c.publishDrop("Rush "+mode, mode, "claim", s.stock, c.rush.limit, time.Hour)
	return s
}

// openSoon moves the opening of the drop to a moment from now.
func (s *sale) openSoon() {
	s.opensAt = time.Now().Add(4 * time.Second).Truncate(time.Second).UTC()
	s.edit(func(now map[string]any) map[string]any {
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(now["opens_at"])); err == nil && at.Equal(s.opensAt) {
			return nil
		}
		return map[string]any{"opens_at": s.opensAt}
	})
}

// publishDrop publishes a drop. more are further fields.
func (c *claims) publishDrop(name, mode, obtain string, stock int64, limit int, opensIn time.Duration, more ...map[string]any) int64 {
	id := c.draftDrop(name, mode, obtain, stock, limit, opensIn, more...)
	c.crowd.must(c.ctx, call{method: "POST", path: fmt.Sprintf("/admin/templates/%d/publish", id), body: map[string]any{"reason": "chaos"}}, nil)
	return id
}

func (c *claims) draftDrop(name, mode, obtain string, stock int64, limit int, opensIn time.Duration, more ...map[string]any) int64 {
	opens := time.Now().Add(opensIn).Truncate(time.Second).UTC()
	var t templateBody
	body := map[string]any{
		"shop_number": fmt.Sprint(shopNumber), "name": name, "kind": "amount_off", "amount_off": 1000, "currency": "CNY", "stock": stock, "per_user_limit": limit,
		"obtain": obtain, "claim_mode": mode, "opens_at": opens, "closes_at": opens.Add(24 * time.Hour), "valid_hours": 48}
	for _, m := range more {
		maps.Copy(body, m)
	}
	c.crowd.must(c.ctx, call{method: "POST", path: "/admin/templates", body: body}, &t)
	return t.ID
}

// edit changes the drop like staff that read the drop again after a conflict. want returns the
// wanted change of the drop's current state; nil if the drop already has the wanted state.
func (s *sale) edit(want func(now map[string]any) map[string]any) {
	path := fmt.Sprintf("/admin/templates/%d", s.template)
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, s.ctx.Done()) {
		var now map[string]any
		s.crowd.must(s.ctx, call{method: "GET", path: path}, &now)
		change := want(now)
		if change == nil {
			return
		}
		r, final := s.crowd.send(s.ctx, call{method: "PATCH", path: path, ifMatch: fmt.Sprintf("%q", fmt.Sprint(now["version"])), body: change})
		if final && r.ok() {
			return
		}
		// A repeated request may have met the effect of its own first attempt.
		if !final || r.status != http.StatusPreconditionFailed && r.status != http.StatusConflict || time.Now().After(end) {
			s.t.Errorf("%s: PATCH %v: answer %d %s", s.mode, change, r.status, r.body)
			return
		}
	}
}

// staff raise the stock, move the end of the window, pause and resume.
func (s *sale) staff(purpose uint64) lane {
	return func(storm time.Duration, _ <-chan struct{}) {
		var all sync.WaitGroup
		all.Go(func() {
			raises := s.rush.stock[1:]
			for i, at := range moments(s.random(purpose), storm, len(raises)) {
				wait(time.Until(at), s.ctx.Done())
				s.edit(func(now map[string]any) map[string]any {
					if now["stock"] == float64(raises[i]) {
						return nil
					}
					return map[string]any{"stock": raises[i]}
				})
				s.stock = raises[i]
			}
		})
		all.Go(func() {
			rng := s.random(purpose + 1)
			for _, at := range moments(rng, storm, s.rush.moves) {
				wait(time.Until(at), s.ctx.Done())
				end := s.opensAt.Add(time.Hour + time.Duration(rng.IntN(40_000))*time.Second)
				s.edit(func(now map[string]any) map[string]any {
					if now["closes_at"] == end.Format(time.RFC3339) {
						return nil
					}
					return map[string]any{"closes_at": end}
				})
			}
		})
		all.Go(func() {
			rng := s.random(purpose + 2)
			for _, at := range moments(rng, storm, s.rush.pauses) {
				wait(time.Until(at), s.ctx.Done())
				s.do("pause")
				from := time.Now()
				wait(s.rush.pause[0]+time.Duration(rng.Int64N(int64(s.rush.pause[1]-s.rush.pause[0]))), s.ctx.Done())
				s.pauses = append(s.pauses, span{from, time.Now()})
				s.do("resume")
			}
		})
		all.Wait()
	}
}

func (s *sale) do(step string) {
	path := fmt.Sprintf("/admin/templates/%d/%s", s.template, step)
	if r, final := s.crowd.send(s.ctx, call{method: "POST", path: path, body: map[string]any{"reason": "chaos"}}); !final || !r.ok() {
		s.t.Errorf("%s: %s: answer %d %s", s.mode, step, r.status, r.body)
	}
}

// actions plans the requests of users: a claim under a new key, a repetition of an earlier
// claim, or two requests at once. The first requests come before the drop opens.
func (s *sale) actions(rng *rand.Rand) (plan []timedAction) {
	begin, span := time.Now(), s.rush.storm
	for range s.rush.visits {
		by, manner := int64(1+rng.IntN(s.rush.users)), rng.IntN(100)
		if rng.IntN(4) == 0 { // a few are greedy
			by = int64(1 + rng.IntN(4))
		}
		at := begin.Add(time.Duration(rng.Int64N(int64(span))))
		if rng.IntN(4) == 0 { // at the very opening
			at = s.opensAt.Add(time.Duration(rng.IntN(400)-200) * time.Millisecond)
		}
		plan = append(plan, timedAction{at, func() { s.visit(by, manner) }})
	}
	return plan
}

func (s *sale) visit(by int64, manner int) {
	w := wish{by, uuid.NewString()}
	switch {
	case manner < 50:
	case manner < 75:
		w.key = s.oldKey(by, w.key)
	default:
		var twins sync.WaitGroup
		twins.Go(func() { s.ask(w) })
		defer twins.Wait()
	}
	s.ask(w)
}

// oldKey returns a key that the user has sent before, or the new one.
func (s *sale) oldKey(by int64, fresh string) string {
	s.guard.Lock()
	defer s.guard.Unlock()
	if keys := s.keys[by]; len(keys) > 0 {
		return keys[len(keys)/2]
	}
	return fresh
}

// ask sends the wish until it is answered, at any of the web processes, and records the answer.
func (s *sale) ask(w wish) told {
	s.guard.Lock()
	if _, known := s.told[w]; !known {
		s.told[w], s.keys[w.user] = nil, append(s.keys[w.user], w.key)
	}
	s.guard.Unlock()
	a, final := s.send(s.ctx, call{method: "POST", path: "/claims", user: w.user, body: map[string]any{"template_id": fmt.Sprint(s.template)}}, w.key)
	s.guard.Lock()
	defer s.guard.Unlock()
	if !final {
		s.answers["none"]++
		return a
	}
	s.told[w] = append(s.told[w], a)
	s.answers[a.name()]++
	return a
}

// name of an answer, for counting.
func (a told) name() string {
	if a.positive() {
		return a.state
	}
	return a.code
}

// send is one request until it is answered for good.
func (c *claims) send(ctx context.Context, q call, key string) (a told, final bool) {
	a.from = time.Now()
	r, final := c.crowd.sendAs(ctx, q, key)
	a.at, a.status, a.code = time.Now(), r.status, r.code
	if !r.ok() {
		return a, final
	}
	a.read(r.body)
	return a, final
}

func (a *told) read(body []byte) {
	var view struct {
		ClaimID  string `json:"claim_id"`
		CouponID string `json:"coupon_id"`
		State    string
		Reason   string
	}
	if json.Unmarshal(body, &view) == nil {
		a.claim, a.coupon, a.state, a.reason = view.ClaimID, view.CouponID, view.State, view.Reason
	}
}

// watch reads the ledger repeatedly, at any of the web processes. Whenever it can be read, it
// must be exact.
func (s *sale) watch(_ time.Duration, over <-chan struct{}) {
	s.claims.watchLedger(s.template, s.mode, over, &s.looks, &s.unread)
}

func (c *claims) watchLedger(template int64, name string, over <-chan struct{}, looks, unread *int) {
	wrong := 0
	repeatedly(c.ctx, 50*time.Millisecond, over, func() {
		r, err := c.crowd.once(c.ctx, call{method: "GET", path: fmt.Sprintf("/admin/templates/%d/balance", template)}, "", nil)
		var a account
		if err != nil || r.status != http.StatusOK || json.Unmarshal(r.body, &a) != nil {
			*unread++ // a process or a server was away
			return
		}
		*looks++
		l, now := a.Stock, time.Now()
		c.mu.Lock()
		// Claims that a writer held when Redis was emptied are available in the shards once
		// more, until the gate has been rebuilt because of them.
		excess := overlaps(c.emptied, now.Add(-writtenWithin), now)
		c.mu.Unlock()
		if l.Difference != 0 || l.Total != l.Shelf+l.Writing+l.Issued || l.Shelf < 0 && !excess || l.Writing < 0 || l.OverLimit != 0 {
			if wrong++; wrong <= 3 {
				c.t.Errorf("%s: %.1f s: the ledger is off: %s", name, time.Since(c.start).Seconds(), r.body)
			}
		}
	})
}

// watchRows counts the coupons without the product's code: never more than the stock, never more
// per user than the limit, and always as many as the counters say.
func (s *sale) watchRows(_ time.Duration, over <-chan struct{}) {
	repeatedly(s.ctx, 200*time.Millisecond, over, func() {
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		defer cancel()
		var stock, issued, coupons, most int64
		err := s.stack.SQL.QueryRow(ctx, `select stock, issued, (select count(*) from coupons where template_id = $1),
			(select coalesce(max(n), 0) from (select count(*) as n from coupons where template_id = $1 group by user_id) p) from templates where id = $1`,
			s.template).Scan(&stock, &issued, &coupons, &most)
		if err == nil && (coupons != issued || issued > stock || most > int64(s.rush.limit)) {
			s.t.Errorf("%s: stock %d, %d issued, %d coupons, %d of one user", s.mode, stock, issued, coupons, most)
		}
	})
}

// originKey is the wish's key in the database.
func (w wish) originKey() string { return claim.TapKey(user.ID(w.user), w.key) }
