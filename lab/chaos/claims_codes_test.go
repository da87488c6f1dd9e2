package chaos_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
)

// triedBy is how many users try each code.
const triedBy = 3

// A codeSale is a drop behind the gate whose coupons are obtained with redeem codes. Several
// users have each code.
type codeSale struct {
	*claims
	template int64
	opensAt  time.Time
	codes    []string

	guard   sync.Mutex
	yes     map[int64][]told // of each user
	answers map[string]int
	looks   int
	unread  int
}

// openCodes publishes a drop at the gate of the mode, which opens after the duration in, and
// reads the drop's codes.
func (c *claims) openCodes(mode string, in time.Duration) *codeSale {
	s := &codeSale{claims: c, yes: map[int64][]told{}, answers: map[string]int{}}
	s.opensAt = time.Now().Add(in)
	s.template = c.publishDrop("Codes", mode, "code", int64(c.rush.codes), 1, in)
	path := fmt.Sprintf("/admin/templates/%d/codes", s.template)
	var batch struct{ ID, State string }
	c.crowd.must(c.ctx, call{method: "POST", path: path, body: map[string]any{"count": c.rush.codes}}, &batch)
	for end := time.Now().Add(30 * time.Second); batch.State != "ready"; wait(50*time.Millisecond, c.ctx.Done()) {
		c.crowd.must(c.ctx, call{method: "GET", path: path + "/" + batch.ID}, &batch)
		if time.Now().After(end) {
			c.t.Fatalf("codes: %+v", batch)
		}
	}
	r, _ := c.crowd.send(c.ctx, call{method: "GET", path: path + ".csv"})
	lines, err := csv.NewReader(strings.NewReader(string(r.body))).ReadAll()
	if err != nil || len(lines) != c.rush.codes+1 {
		c.t.Fatalf("codes: answer %d, %d lines, %v", r.status, len(lines), err)
	}
	for _, line := range lines[1:] {
		s.codes = append(s.codes, line[0])
	}
	return s
}

// holder is the n-th user with the code.
func holder(code, n int) int64 { return int64(20_000_000 + 10*code + n) }

// actions plans which user tries which code. Some users try a code together with other users,
// some again later, some twice at once.
func (s *codeSale) actions(rng *rand.Rand) (plan []timedAction) {
	begin := s.opensAt
	for code := range s.codes {
		first := begin.Add(time.Duration(rng.Int64N(int64(s.rush.storm * 3 / 4))))
		for n := range triedBy {
			at := first
			if rng.IntN(2) == 0 {
				at = first.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			manner := rng.IntN(3)
			plan = append(plan, timedAction{at, func() { s.visit(holder(code, n), s.codes[code], manner) }})
		}
	}
	return plan
}

func (s *codeSale) visit(by int64, code string, manner int) {
	key := uuid.NewString()
	var twins sync.WaitGroup
	switch manner {
	case 1: // twice at once, the same request
		twins.Go(func() { s.redeem(by, code, key) })
	case 2: // twice at once, two requests
		twins.Go(func() { s.redeem(by, code, uuid.NewString()) })
	}
	s.redeem(by, code, key)
	twins.Wait()
}

func (s *codeSale) redeem(by int64, code, key string) told {
	a, final := s.send(s.ctx, call{method: "POST", path: "/redemptions", user: by, body: map[string]any{"code": code}}, key)
	s.guard.Lock()
	defer s.guard.Unlock()
	if !final {
		a.code = "none"
	}
	if a.positive() {
		s.yes[by] = append(s.yes[by], a)
	}
	s.answers[a.name()]++
	return a
}

func (s *codeSale) watch(_ time.Duration, over <-chan struct{}) {
	s.watchLedger(s.template, "codes", over, &s.looks, &s.unread)
}

// lastAnswers lets each user try once more. Users whose accepted claim was lost, or whose code
// was never redeemed, get the coupon now. All other users get the answer that the code was used.
func (s *codeSale) lastAnswers() {
	s.inParallel(len(s.codes), func(code int) {
		for n := range triedBy {
			by := holder(code, n)
			a := s.redeem(by, s.codes[code], uuid.NewString())
			// There are as many coupons as codes. A user that tries a code which was used a
			// moment ago may hold a coupon until the attempt is refused; then the next user is
			// told that the drop is sold out.
			for end := time.Now().Add(20 * time.Second); a.code == claim.ErrSoldOut.Code && time.Now().Before(end); wait(100*time.Millisecond, s.ctx.Done()) {
				a = s.redeem(by, s.codes[code], uuid.NewString())
			}
			switch {
			case a.positive():
				// A code that the user before had a moment ago may not be marked yet.
				if b := s.became(by, a); b.state != string(claim.Issued) && b.reason != redeemcode.ErrUsed.Code {
					s.t.Errorf("codes: user %d, in quiet weather: %+v", by, b)
				}
			case a.status != http.StatusConflict || a.code != redeemcode.ErrUsed.Code:
				s.t.Errorf("codes: user %d, in quiet weather: %d %s", by, a.status, a.code)
			}
		}
	})
}

// account checks that every code gave exactly one coupon to one of its users, and that every
// accepted redemption has its coupon or a reason for its refusal.
func (s *codeSale) account() {
	s.t.Helper()
	owned := map[int64]row{}
	for _, r := range s.rows(s.template) {
		if _, twice := owned[r.user]; twice {
			s.t.Errorf("codes: user %d has two coupons of one code", r.user)
		}
		owned[r.user] = r
	}
	for code := range s.codes {
		owners := 0
		for n := range triedBy {
			if _, owns := owned[holder(code, n)]; owns {
				owners++
			}
		}
		if owners != 1 {
			s.t.Errorf("codes: a code was used by %d users", owners)
		}
	}
	if len(owned) != len(s.codes) {
		s.t.Errorf("codes: %d coupons of %d codes", len(owned), len(s.codes))
	}
	for by, list := range s.yes {
		for _, a := range list {
			s.verify(by, a, owned[by])
		}
	}
}

func (s *codeSale) verify(by int64, a told, r row) {
	b := s.became(by, a)
	switch {
	case b.state == string(claim.Issued):
		if r.claim != a.claim || r.coupon != b.coupon {
			s.t.Errorf("codes: user %d was told %+v and has %+v", by, b, r)
		}
	case b.state == string(claim.Failed) && b.reason == redeemcode.ErrUsed.Code:
	case b.code == claim.ErrNotFound.Code && s.taken(a):
		s.lost++
	default:
		s.t.Errorf("codes: user %d was told %+v, and it became %+v", by, a, b)
	}
}

func (s *codeSale) cells() []any {
	return []any{"codes, each used exactly once", len(s.codes), "  looks at the ledger, all exact", s.looks, "  answers", answersOf(s.answers)}
}
