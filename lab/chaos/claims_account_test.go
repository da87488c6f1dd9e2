package chaos_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"dropbell/domain/claim"
)

const (
	// writtenWithin is how long at most an accepted claim waits for another writer after its
	// writer has died. A claim that is lost when Redis is emptied is younger than this.
	writtenWithin = 20 * time.Second
	// toldWithin is how long after a pause the shards of a drop may still accept claims, if
	// Redis or every process that applies the pause was down.
	toldWithin = 5 * time.Second
)

// newcomers have ids of their own.
const newcomers = 10_000_000

// sellOut lets new users claim the remaining stock: all of it, and not one coupon more.
func (s *sale) sellOut() {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				a := s.ask(wish{newcomers + next.Add(1), uuid.NewString()})
				switch {
				case a.positive():
				case a.code == claim.ErrSoldOut.Code:
					return
				default:
					s.t.Errorf("%s: a newcomer is answered %d %s", s.mode, a.status, a.code)
					return
				}
			}
		})
	}
	all.Wait()
	s.calm(s.template)
}

// lastAnswers repeats every wish of the sale and records its last answer. A claim that was only
// accepted is polled until it is decided.
func (s *sale) lastAnswers() {
	wishes := make([]wish, 0, len(s.told))
	for w := range s.told {
		wishes = append(wishes, w)
	}
	s.inParallel(len(wishes), func(i int) {
		a := s.ask(wishes[i])
		if a.positive() && a.state == string(claim.Accepted) {
			a = s.became(wishes[i].user, a)
		}
		s.guard.Lock()
		defer s.guard.Unlock()
		s.last[wishes[i]] = a
	})
}

// became polls a claim until it is decided.
func (c *claims) became(by int64, a told) told {
	for end := time.Now().Add(20 * time.Second); ; wait(50*time.Millisecond, c.ctx.Done()) {
		r, final := c.crowd.send(c.ctx, call{method: "GET", path: "/claims/" + a.claim, user: by})
		if !final || !r.ok() {
			a.status, a.code, a.state = r.status, r.code, ""
			return a
		}
		if a.read(r.body); a.state != string(claim.Accepted) || time.Now().After(end) {
			return a
		}
	}
}

// A row is one coupon as it is stored.
type row struct {
	coupon, claim string
	user          int64
	issuedAt      time.Time
}

// rows returns the drop's coupons by their origin's key.
func (c *claims) rows(template int64) map[string]row {
	rows, err := c.stack.SQL.Query(c.ctx, `select id, claim_id, user_id, origin_key, issued_at from coupons where template_id = $1`, template)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]row{}
	for rows.Next() {
		var id, claim int64
		var r row
		var key string
		if err := rows.Scan(&id, &claim, &r.user, &key, &r.issuedAt); err != nil {
			c.t.Fatal(err)
		}
		r.coupon, r.claim = strconv.FormatInt(id, 10), strconv.FormatInt(claim, 10)
		found[key] = r
	}
	return found
}

// account checks that exactly the stock was issued, that no user is over the limit, and that
// each user's last answer is true.
func (s *sale) account() {
	s.t.Helper()
	rows := s.rows(s.template)
	if int64(len(rows)) != s.stock {
		s.t.Errorf("%s: %d coupons of a stock of %d", s.mode, len(rows), s.stock)
	}
	perUser := map[int64]int{}
	for _, r := range rows {
		if perUser[r.user]++; perUser[r.user] > s.rush.limit {
			s.t.Errorf("%s: user %d has %d coupons", s.mode, r.user, perUser[r.user])
		}
		s.inTime(r)
	}
	wished := map[string]bool{}
	for w, a := range s.last {
		wished[w.originKey()] = true
		if wrong := truth(w, a, rows); wrong != "" {
			s.t.Errorf("%s: user %d: %s", s.mode, w.user, wrong)
		}
		s.history(w, a)
	}
	for key, r := range rows {
		if !wished[key] {
			s.t.Errorf("%s: nobody wished coupon %s of user %d", s.mode, r.coupon, r.user)
		}
	}
	s.counters()
}

// truth describes the error in a user's last answer; "" = the answer is true.
func truth(w wish, a told, rows map[string]row) string {
	r, owns := rows[w.originKey()]
	switch {
	case a.positive() && a.state == string(claim.Issued):
		// The claim may be a later claim that found the coupon of the first claim.
		if !owns || r.coupon != a.coupon || r.user != w.user {
			return fmt.Sprintf("told %+v, stored %+v", a, r)
		}
	case owns:
		return fmt.Sprintf("owns coupon %s and is told %d %s%s %s", r.coupon, a.status, a.code, a.state, a.reason)
	case a.positive() && a.state == string(claim.Failed):
		if a.reason == "" {
			return "failed without a reason"
		}
	case a.code != claim.ErrSoldOut.Code && a.code != claim.ErrLimit.Code:
		return fmt.Sprintf("is told %d %s%s", a.status, a.code, a.state)
	}
	return ""
}

// inTime checks that the coupon was not issued before the opening, and not during a pause that
// was confirmed.
func (s *sale) inTime(r row) {
	if r.issuedAt.Before(s.opensAt) {
		s.t.Errorf("%s: coupon %s was issued %v before the opening", s.mode, r.coupon, s.opensAt.Sub(r.issuedAt))
	}
	for _, p := range s.pauses {
		from := p.from
		if s.mode == "gate" && overlaps(s.redisAway, p.from.Add(-toldWithin), p.to) {
			from = from.Add(toldWithin)
		}
		// Clocks are compared to the millisecond.
		if r.issuedAt.After(from.Add(5*time.Millisecond)) && r.issuedAt.Before(p.to) {
			s.t.Errorf("%s: coupon %s was issued %v after the pause was confirmed", s.mode, r.coupon, r.issuedAt.Sub(p.from))
		}
	}
}

// history checks the answers to one wish in their order: after a positive answer, every later
// answer is the same positive answer. The exception is an accepted claim that was lost because
// Redis was emptied before the claim was written.
func (s *sale) history(w wish, last told) {
	list := append(slices.Clone(s.told[w]), last)
	for i, a := range list[:len(list)-1] {
		if !a.positive() {
			continue
		}
		for _, b := range list[i+1:] {
			if b.from.Before(a.at) && !b.positive() || b.claim == a.claim || b.coupon != "" && b.coupon == a.coupon {
				continue // asked at the same time, or the same answer
			}
			if s.mode == "gate" && s.taken(a) {
				s.claims.lost++
				return
			}
			s.t.Errorf("%s: user %d was told %+v and then %+v", s.mode, w.user, a, b)
			return
		}
	}
}

// taken reports whether an emptied Redis can have taken a promise with it.
func (c *claims) taken(a told) bool {
	return a.coupon == "" && overlaps(c.emptied, a.from, a.at.Add(writtenWithin))
}

// fewestLooks is how often the ledger must have been read in a storm.
const fewestLooks = 3

// counters checks the product's own counters against the rows.
func (s *sale) counters() {
	var issued, counted, over int64
	err := s.stack.SQL.QueryRow(s.ctx, `select issued, (select coalesce(sum(issued), 0) from claim_counts where template_id = $1),
		(select count(*) from claim_counts n where n.template_id = $1 and n.issued <> (select count(*) from coupons c
			where c.template_id = $1 and c.user_id = n.user_id)) from templates where id = $1`, s.template).Scan(&issued, &counted, &over)
	if err != nil || issued != s.stock || counted != s.stock || over != 0 {
		s.t.Errorf("%s: %d issued, %d counted, %d users counted wrongly: %v", s.mode, issued, counted, over, err)
	}
	// How often it can be read is a matter of the machine's speed.
	if s.looks < fewestLooks {
		s.t.Errorf("%s: the ledger was read only %d times", s.mode, s.looks)
	}
	for _, must := range []string{claim.ErrNotStarted.Code, claim.ErrSoldOut.Code, claim.ErrLimit.Code, "issued"} {
		if s.answers[must] == 0 {
			s.t.Errorf("%s: nobody was ever answered %s: %s", s.mode, must, answersOf(s.answers))
		}
	}
}

func (s *sale) cells() []any {
	return []any{s.mode + ": coupons, exactly the stock", s.stock, "  wishes", len(s.told), "  looks at the ledger, all exact", s.looks,
		"  answers", answersOf(s.answers)}
}
