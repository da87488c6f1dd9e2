package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// heldOf returns how many of the users 1 to n are held out of drop 1 at this percentage.
func heldOf(percent, n int) (held int) {
	for id := range n {
		if HeldOutOfDrop(1, percent, user.ID(id+1)) {
			held++
		}
	}
	return held
}

// A drop holds out its share of the users: the same users for every message, other users than
// another drop or a campaign with the same number, and none without a share. A greater share
// contains the smaller share.
func TestADropHoldsOutAShare(t *testing.T) {
	const n = 100_000
	campaign := Copy{Variants: []Variant{{Percent: 100}}, HoldOut: 10}
	held, both, other := 0, 0, 0
	for i := range n {
		id := user.ID(i + 1)
		is := HeldOutOfDrop(7, 10, id)
		if is != HeldOutOfDrop(7, 10, id) || is && !HeldOutOfDrop(7, 20, id) || HeldOutOfDrop(7, 0, id) {
			t.Fatalf("user %d is held out at one time and not at another", id)
		}
		if is {
			held++
			if campaign.Group(7, id) == HeldOut {
				both++
			}
			if HeldOutOfDrop(8, 10, id) {
				other++
			}
		}
	}
	for name, got := range map[string]float64{"all": float64(held) / n, "held out of the campaign too": float64(both) / float64(held),
		"held out of the other drop too": float64(other) / float64(held)} {
		if got < 0.09 || got > 0.11 {
			t.Errorf("%s: %.3f, want 0.10", name, got)
		}
	}
}

// Held-out users are skipped with the end of the batch, without an exception for each of them,
// also if other users are tried again before.
func TestHeldOutUsersAreSkippedAtTheEnd(t *testing.T) {
	for _, c := range []Channel{App, SMS} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(c, 100, time.Hour), newProvider(c, 7, 0))
			r.depot.holdOut = 30
			r.depot.optedOut[1], r.depot.optedOut[2], r.depot.optedOut[3], r.depot.optedOut[4] = true, true, true, true
			refused := 0
			r.provider.answer = func(id user.ID, times int) Result {
				switch {
				case HeldOutOfDrop(1, 30, id):
					t.Errorf("user %d is held out and gets a message", id)
				case times == 1 && id%9 == 0:
					refused++
					return Result{Status: Transient, Detail: "502"}
				}
				return Result{Status: Delivered}
			}
			r.finish()
			r.once()
			held, optedOut := heldOf(30, 100), 4-heldOf(30, 4)
			r.want(map[Outcome]int{Sent: 100 - held - optedOut, Skipped: held + optedOut})
			if n := len(r.depot.exceptions); held == 0 || refused == 0 || n != refused+optedOut || r.depot.rest != Skipped || r.depot.restReason != ReasonHoldOut {
				t.Errorf("%s: %d held out, %d exceptions, the others are %s: %s", c, held, n, r.depot.rest, r.depot.restReason)
			}
		})
	}
}

// Users who are held out are not lost: if a batch expires they are skipped, and other users
// expire. Corrections skip them as well; notices of coupons reach everybody.
func TestHeldOutUsersDoNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, 0), newProvider(SMS, 5, 0))
		r.depot.holdOut = 30
		r.must()
		held := heldOf(30, 100)
		r.want(map[Outcome]int{Skipped: held, Expired: 100 - held})
		for id, e := range r.depot.exceptions {
			if e.Reason != ReasonHoldOut || e.LastAt.IsZero() || !HeldOutOfDrop(1, 30, id) {
				t.Errorf("user %d: %+v", id, e)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 5, 0))
		r.depot.holdOut, r.depot.subject.Kind = 30, KindCorrection
		r.finish()
		held := heldOf(30, 100)
		r.want(map[Outcome]int{Skipped: held, Sent: 100 - held})
	})
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 5, 0))
		r.depot.holdOut, r.depot.subject.Kind = 30, KindNotice
		r.finish()
		r.want(map[Outcome]int{Sent: 100})
	})
	synctest.Test(t, func(t *testing.T) { // nobody is left
		r := newFixture(t, newFakeStore(SMS, 0, time.Hour), newProvider(SMS, 5, 0))
		for id := user.ID(1); len(r.depot.due) < 3; id++ {
			if HeldOutOfDrop(1, 30, id) {
				r.depot.due = append(r.depot.due, id)
			}
		}
		r.depot.holdOut = 30
		r.must()
		r.want(map[Outcome]int{Skipped: 3})
		if !r.depot.done || len(r.provider.calls) != 0 {
			t.Errorf("done %v, %d calls", r.depot.done, len(r.provider.calls))
		}
	})
}
