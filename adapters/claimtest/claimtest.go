// Package claimtest is the contract test of claim gates: it checks the answer to each claim and
// the rows stored afterwards, in any interleaving.
package claimtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Harness is a gate and its surroundings (store, drops, staff). Its methods fail the test on
// any failure that the contract does not cover.
type Harness interface {
	claim.Gate
	// Open returns a published template whose window is open now. The template has the given
	// stock and limit; change then modifies the spec. Instants that change sets are kept: a
	// window in the past is over.
	Open(stock int64, limit int, change func(*template.Spec)) template.Template
	// Draft returns a template that is not published.
	Draft() template.Template
	// Do applies the transition to the template, for all nodes of the gate.
	Do(id int64, tr template.Transition)
	// Raise sets the template's stock, for all nodes of the gate.
	Raise(id, stock int64)
	// Doors sets the doors of the template, for all nodes of the gate.
	Doors(id int64, doors []template.Door)
	// Household makes the user one of the household.
	Household(by user.ID, household string)
	// Coupons returns every coupon of the template after all accepted claims have been written.
	Coupons(id int64) []claim.Claim
	// Balance returns the template's stock and the value of its counter of issued coupons, after
	// all accepted claims have been written.
	Balance(id int64) (total, issued int64)
}

// Later is a harness whose gate may accept a claim before it knows that the key belongs to
// another claim. The accepted claim then fails when it is written, with the reason that other
// gates refuse with.
type Later interface {
	// Outcome returns the user's accepted claim in its final state.
	Outcome(by user.ID, id claim.ID) claim.Claim
}

// Run holds the harness's gate to the contract.
func Run(t *testing.T, start func(*testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"one claim", oneClaim},
		{"refusals", refusals},
		{"refusals change nothing", refusalsChangeNothing},
		{"limit per user", limitPerUser},
		{"grants beyond the limit", grantsBeyondTheLimit},
		{"never oversold", neverOversold},
		{"repetitions", repetitions},
		{"repetitions at once", repetitionsAtOnce},
		{"keys belong to one claim", keysBelongToOneClaim},
		{"pause and resume", pauseAndResume},
		{"stock raised in the rush", stockRaisedInTheRush},
		{"doors", doors},
		{"households", households},
		{"any order of steps", anyOrderOfSteps},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, start(t)) })
	}
}

// Tap returns a request by tap with a random id.
func Tap(t template.Template, by user.ID, key string) claim.Request {
	r := claim.Request{ID: claim.NewID(rand.Uint64(), t.ID), TemplateID: t.ID, UserID: by, Origin: claim.ByTap}
	if key != "" {
		r.Key = claim.TapKey(by, key)
	}
	return r
}

func oneClaim(t *testing.T, h Harness) {
	drop := h.Open(10, 1, nil)
	before := time.Now().Add(-time.Minute)
	r := Tap(drop, 7, "")
	got, err := h.Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != r.ID || got.TemplateID != drop.ID || got.UserID != 7 || got.At.Before(before) || got.At.After(time.Now().Add(time.Minute)) {
		t.Errorf("claim %+v does not answer %+v", got, r)
	}
	if got.State != claim.Accepted && (got.State != claim.Issued || got.CouponID == 0) {
		t.Errorf("claim %+v is neither accepted nor issued", got)
	}
	coupons := h.Coupons(drop.ID)
	if len(coupons) != 1 || coupons[0].ID != r.ID || coupons[0].UserID != 7 {
		t.Errorf("stored: %+v", coupons)
	}
	Holds(t, h, drop.ID, 1, 1)
}

// refusal is a request that must be refused, by a template in some condition.
type refusal struct {
	name string
	make func(Harness) template.Template
	want *fault.Fault
}

func refusalsOf() []refusal {
	window := func(opens, closes time.Duration) func(*template.Spec) {
		return func(s *template.Spec) {
			now := time.Now().UTC().Truncate(time.Second)
			s.OpensAt, s.ClosesAt = now.Add(opens), now.Add(closes)
		}
	}
	after := func(steps ...template.Transition) func(Harness) template.Template {
		return func(h Harness) template.Template {
			drop := h.Open(10, 1, nil)
			for _, s := range steps {
				h.Do(drop.ID, s)
			}
			return drop
		}
	}
	opened := func(change func(*template.Spec)) func(Harness) template.Template {
		return func(h Harness) template.Template { return h.Open(10, 1, change) }
	}
	return []refusal{
		{"no template", func(h Harness) template.Template { t := h.Open(1, 1, nil); t.ID += 1000; return t }, template.ErrNotFound},
		{"draft", Harness.Draft, template.ErrNotFound},
		{"paused", after(template.Pausing), claim.ErrPaused},
		{"closed", after(template.Closing), claim.ErrEnded},
		{"not started", opened(window(time.Hour, 2*time.Hour)), claim.ErrNotStarted},
		{"cancelled", func(h Harness) template.Template {
			drop := h.Open(10, 1, window(time.Hour, 2*time.Hour))
			h.Do(drop.ID, template.Cancelling)
			return drop
		}, claim.ErrCancelled},
		{"ended", opened(window(-2*time.Hour, -time.Hour)), claim.ErrEnded},
		{"by code", opened(func(s *template.Spec) { s.Obtain = template.ByCode }), claim.ErrNeedsCode},
	}
}

func refusals(t *testing.T, h Harness) {
	for _, c := range refusalsOf() {
		t.Run(c.name, func(t *testing.T) {
			drop := c.make(h)
			for _, key := range []string{"", "key", "key"} {
				if got, err := h.Claim(t.Context(), Tap(drop, 7, key)); !errors.Is(err, c.want) || err.Error() != c.want.Text {
					t.Errorf("with key %q: %+v, %v, want %s: %s", key, got, err, c.want.Code, c.want.Text)
				}
			}
			if n := len(h.Coupons(drop.ID)); n != 0 {
				t.Errorf("%d coupons are stored", n)
			}
		})
	}
}

func refusalsChangeNothing(t *testing.T, h Harness) {
	drop := h.Open(2, 1, nil)
	h.Do(drop.ID, template.Pausing)
	for by := range 20 {
		if _, err := h.Claim(t.Context(), Tap(drop, user.ID(by+1), "k")); !errors.Is(err, template.ErrNotOpen) {
			t.Fatalf("paused: %v", err)
		}
	}
	h.Do(drop.ID, template.Resuming)
	claims(t, h, Tap(drop, 1, "k"), nil)
	for range 20 {
		claims(t, h, Tap(drop, 1, ""), claim.ErrLimit)
	}
	claims(t, h, Tap(drop, 2, "k"), nil)
	for by := range 20 {
		claims(t, h, Tap(drop, user.ID(by+3), "k"), claim.ErrSoldOut)
	}
	h.Raise(drop.ID, 3)
	claims(t, h, Tap(drop, 1, ""), claim.ErrLimit)
	claims(t, h, Tap(drop, 22, "k"), nil) // with a key that was refused before
	Holds(t, h, drop.ID, 3, 1)
}

// Only grants whose key says so pass the limit per user; none passes the stock.
func grantsBeyondTheLimit(t *testing.T, h Harness) {
	drop := h.Open(3, 1, nil)
	grant := func(key string) claim.Request {
		r := Tap(drop, 1, "")
		r.Origin, r.Key = claim.ByGrant, key
		return r
	}
	claims(t, h, Tap(drop, 1, "k"), nil)
	// Written before the grants: writers of a gate may write a later grant first, and the limit
	// then refuses the tap.
	Holds(t, h, drop.ID, 1, 1)
	claims(t, h, grant("1"), claim.ErrLimit)
	first := claims(t, h, grant(claim.OverLimit+"1"), nil)
	if again, err := h.Claim(t.Context(), grant(claim.OverLimit+"1")); err != nil || again.ID != first.ID {
		t.Errorf("the repetition is answered %+v, %v; the first time %+v", again, err, first)
	}
	claims(t, h, grant(claim.OverLimit+"2"), nil)
	claims(t, h, grant(claim.OverLimit+"3"), claim.ErrSoldOut)
	h.Raise(drop.ID, 4)
	claims(t, h, Tap(drop, 1, "later"), claim.ErrLimit)
	Holds(t, h, drop.ID, 3, 3)
}

func limitPerUser(t *testing.T, h Harness) {
	drop, other := h.Open(1000, 3, nil), h.Open(1000, 1, nil)
	results := rush(t, h, 40, func(i int) claim.Request { return Tap(drop, user.ID(1+i%2), "") })
	for by := user.ID(1); by <= 2; by++ {
		won, limited := 0, 0
		for _, r := range results {
			switch {
			case r.asked.UserID != by:
			case r.err == nil:
				won++
			case errors.Is(r.err, claim.ErrLimit):
				limited++
			default:
				t.Errorf("user %d: %v", by, r.err)
			}
		}
		if won != 3 || limited != 17 {
			t.Errorf("user %d has %d coupons and was refused %d times, want 3 and 17", by, won, limited)
		}
	}
	claims(t, h, Tap(other, 1, ""), nil) // one template's limit is not another's
	Holds(t, h, drop.ID, 6, 3)
}

func neverOversold(t *testing.T, h Harness) {
	const stock, users = 50, 200
	drop := h.Open(stock, 1, nil)
	results := rush(t, h, 3*users, func(i int) claim.Request { return Tap(drop, user.ID(1+i%users), fmt.Sprint(i/users)) })
	won := map[claim.ID]bool{}
	for _, r := range results {
		switch {
		case r.err == nil:
			won[r.got.ID] = true
		case !errors.Is(r.err, claim.ErrSoldOut) && !errors.Is(r.err, claim.ErrLimit):
			t.Errorf("user %d: %v", r.asked.UserID, r.err)
		}
	}
	if len(won) != stock {
		t.Errorf("%d claims were won, want %d", len(won), stock)
	}
	for _, c := range Holds(t, h, drop.ID, stock, 1) {
		if !won[c.ID] {
			t.Errorf("the claim of coupon %+v was never answered so", c)
		}
	}
	claims(t, h, Tap(drop, users+1, ""), claim.ErrSoldOut)
}
