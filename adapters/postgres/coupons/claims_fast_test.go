package coupons_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// remembered opens a drop and issues a coupon of it to user 1000 at the first
// gate, so that this gate's lastTerms know the drop.
func (h *claimFixture) remembered(stock int64, limit int) template.Template {
	h.Helper()
	drop := h.Open(stock, limit, nil)
	_, err := h.gates[0].Claim(h.Context(), claimtest.Tap(drop, 1000, theFirst(drop)))
	h.Must(err)
	if !couponsdb.Remembers(h.gates[0], drop.ID) {
		h.Fatal("the gate remembers nothing of what it has read")
	}
	return drop
}

func theFirst(drop template.Template) string { return fmt.Sprint("the first of ", drop.ID) }

// TestFirstsPassOverWhoHasSomething: a group on the fast path issues the first
// coupons of its users and leaves all other requests undecided.
func TestFirstsPassOverWhoHasSomething(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.remembered(100, 2)
	group := []claim.Request{
		claimtest.Tap(drop, 1, "a"), claimtest.Tap(drop, 1000, theFirst(drop)), claimtest.Tap(drop, 1, "b"), claimtest.Tap(drop, 2, "a"),
		claimtest.Tap(drop, 2, "a"), claimtest.Tap(drop, 1, "c"), claimtest.Tap(drop, 1000, "another"), claimtest.Tap(drop, 3, ""),
	}
	issued := []bool{true, false, true, true, true, false, false, true}
	verdicts, err := couponsdb.Firsts(t.Context(), h.gates[0], group)
	h.Must(err)
	for i, v := range verdicts {
		if v.Err != nil || (v.Claim != nil) != issued[i] || v.Claim != nil && v.Claim.CouponID == 0 {
			t.Errorf("request %d: %+v, %v", i, v.Claim, v.Err)
		}
	}
	if verdicts[3].Claim.ID != verdicts[4].Claim.ID {
		t.Error("a repetition within the group has a coupon of its own")
	}
	claimtest.Holds(t, h, drop.ID, 5, 2)
}

// TestFirstsCountOnlyIfAllIsAsRemembered changes the terms in the database
// without the gate's knowledge. The gate's fast attempt stores nothing, and the
// claim is decided by the stored terms.
func TestFirstsCountOnlyIfAllIsAsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		want   error
	}{
		"paused":  {`state = 'paused', version = version + 1`, template.ErrNotOpen},
		"ended":   {`closes_at = now(), version = version + 1`, claim.ErrEnded},
		"later":   {`opens_at = date_trunc('second', now()) + interval '1 hour', closes_at = date_trunc('second', now()) + interval '2 hours', version = version + 1`, claim.ErrNotStarted},
		"over":    {`closes_at = now()`, claim.ErrEnded}, // as time passes
		"expired": {`valid_until = now()`, claim.ErrEnded},
		"scarce":  {`issued = stock - 1`, claim.ErrSoldOut}, // one left, two ask
		"limited": {`per_user_limit = 1, version = version + 1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newClaimFixture(t, 1)
			drop := h.remembered(100, 5)
			h.Exec(`update templates set `+c.change+` where id = $1`, drop.ID)
			group := []claim.Request{claimtest.Tap(drop, 1, "a "+name), claimtest.Tap(drop, 2, "b "+name)}
			verdicts, err := couponsdb.Firsts(t.Context(), h.gates[0], group)
			h.Must(err)
			for i, v := range verdicts {
				if v.Claim != nil || v.Err != nil {
					t.Errorf("request %d was decided: %+v, %v", i, v.Claim, v.Err)
				}
			}
			if n := h.Number(`select (select count(*) from coupons where template_id = $1) + (select count(*) from claim_counts where template_id = $1)`,
				drop.ID); n != 2 {
				t.Errorf("%d rows are stored, want the first claim's 2", n)
			}
			verdicts, err = h.gates[0].Group(t.Context(), group)
			h.Must(err)
			if v := verdicts[1]; !errors.Is(v.Err, c.want) || (v.Err == nil) != (v.Claim != nil) {
				t.Errorf("the second of the group: %+v, %v, want %v", v.Claim, v.Err, c.want)
			}
		})
	}
}

// TestAReusedKeyConcernsItsUserOnly: a user claims with a key that was used for
// another template. The other users of the group get their coupons on the fast
// path, in this group and in the next groups.
func TestAReusedKeyConcernsItsUserOnly(t *testing.T) {
	h := newClaimFixture(t, 1)
	other, drop := h.remembered(100, 1), h.remembered(100, 1)
	for round := range 3 {
		by := user.ID(10 * (round + 1))
		_, err := h.gates[0].Claim(t.Context(), claimtest.Tap(other, by, "the key"))
		h.Must(err)
		reused := claimtest.Tap(drop, by, "the key")
		group := []claim.Request{claimtest.Tap(drop, by+1, "a"), reused, claimtest.Tap(drop, by+2, "a")}
		verdicts, err := couponsdb.Firsts(t.Context(), h.gates[0], group)
		h.Must(err)
		for i, v := range verdicts {
			if v.Err != nil || (v.Claim != nil) != (i != 1) {
				t.Errorf("round %d, request %d: %+v, %v", round, i, v.Claim, v.Err)
			}
		}
		if !couponsdb.Remembers(h.gates[0], drop.ID) || !couponsdb.Remembers(h.gates[0], other.ID) {
			t.Fatal("the fast path pauses because of a reused key")
		}
		if _, err := h.gates[0].Claim(t.Context(), reused); !errors.Is(err, claim.ErrIdempotency) {
			t.Errorf("the reused key: %v", err)
		}
	}
	claimtest.Holds(t, h, drop.ID, 7, 1)
	claimtest.Holds(t, h, other.ID, 4, 1)
}

// TestAChangedTemplateConcernsItsClaimsOnly: in a group of many templates, the
// terms of one template have changed. Claims of all other templates are issued,
// and the fast path pauses for the changed template only.
func TestAChangedTemplateConcernsItsClaimsOnly(t *testing.T) {
	h := newClaimFixture(t, 1)
	var drops []template.Template
	var group []claim.Request
	for range 8 {
		drops = append(drops, h.remembered(100, 1))
	}
	for _, d := range drops {
		group = append(group, claimtest.Tap(d, 1, fmt.Sprint("a", d.ID)), claimtest.Tap(d, 2, fmt.Sprint("a", d.ID)))
	}
	changed := drops[5]
	h.Exec(`update templates set state = 'paused', version = version + 1 where id = $1`, changed.ID)
	verdicts, err := couponsdb.Firsts(t.Context(), h.gates[0], group)
	h.Must(err)
	for i, v := range verdicts {
		if v.Err != nil || (v.Claim != nil) != (group[i].TemplateID != changed.ID) {
			t.Errorf("request %d: %+v, %v", i, v.Claim, v.Err)
		}
	}
	for _, d := range drops {
		want := 3
		if d.ID == changed.ID {
			want = 1
		} else if !couponsdb.Remembers(h.gates[0], d.ID) {
			t.Error("the fast path pauses for a template that did not change")
		}
		claimtest.Holds(t, h, d.ID, want, 1)
	}
}

// TestFirstsMeetAChange locks the drop's row while a claim on the fast path has
// written its coupon.
func TestFirstsMeetAChange(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.remembered(100, 1)
	_, commit := h.Hold(`update templates set state = 'paused', version = version + 1 where id = $1`, drop.ID)
	var err error
	var asking sync.WaitGroup
	asking.Go(func() { _, err = h.gates[0].Claim(t.Context(), claimtest.Tap(drop, 1, "a")) })
	h.Blocked(1)
	commit()
	asking.Wait()
	if !errors.Is(err, template.ErrNotOpen) {
		t.Errorf("%v, want %v", err, template.ErrNotOpen)
	}
	claimtest.Holds(t, h, drop.ID, 1, 1)
}

// TestFirstClaimsMeetAFirstClaimElsewhere: another node is about to issue a first
// coupon to one of the group's users. That user is left out, and all other users
// get a coupon.
func TestFirstClaimsMeetAFirstClaimElsewhere(t *testing.T) {
	h := newClaimFixture(t, 2)
	drop := h.remembered(100, 1)
	_, release := h.Hold(`select from templates where id = $1 for no key update`, drop.ID)
	group := []claim.Request{claimtest.Tap(drop, 1, "a"), claimtest.Tap(drop, 2, "a"), claimtest.Tap(drop, 3, "a")}
	var elsewhere error
	var verdicts []claim.Verdict
	var err error
	var asking sync.WaitGroup
	asking.Go(func() { _, elsewhere = h.gates[1].Claim(t.Context(), claimtest.Tap(drop, 2, "elsewhere")) })
	h.Blocked(1)
	asking.Go(func() { verdicts, err = couponsdb.Firsts(t.Context(), h.gates[0], group) })
	h.Blocked(2)
	release()
	asking.Wait()
	h.Must(elsewhere)
	h.Must(err)
	for i, v := range verdicts {
		if v.Err != nil || (v.Claim != nil) != (i != 1) {
			t.Errorf("request %d: %+v, %v", i, v.Claim, v.Err)
		}
	}
	claimtest.Holds(t, h, drop.ID, 4, 1)
}

// TestACrowdThatTriesAgain: most users already have their coupon and claim again
// on several nodes, with the old key and with new keys.
func TestACrowdThatTriesAgain(t *testing.T) {
	const users, tries = 60, 8
	h := newClaimFixture(t, 3)
	drop := h.Open(1000, 2, nil)
	var mu sync.Mutex
	told := map[string]claim.ID{}
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			for range tries {
				by, key := user.ID(i+1), fmt.Sprint(rand.IntN(3))
				got, err := h.gates[rand.IntN(3)].Claim(t.Context(), claimtest.Tap(drop, by, key))
				if err != nil {
					if !errors.Is(err, claim.ErrLimit) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				wish := fmt.Sprint(by, " ", key)
				if before, again := told[wish]; again && before != got.ID {
					t.Errorf("user %d heard of two claims for one key", by)
				}
				told[wish] = got.ID
				mu.Unlock()
			}
		})
	}
	all.Wait()
	claimtest.Holds(t, h, drop.ID, len(told), 2)
}

// TestADropThatEndsWhileAGroupWaits: a group checks the time and then waits for
// the lock on the drop's row. The drop ends meanwhile, and the lock is released
// without a change to the row.
func TestADropThatEndsWhileAGroupWaits(t *testing.T) {
	for name, ends := range map[string]string{"closes_at": "ends", "valid_until": "expires"} {
		t.Run(ends, func(t *testing.T) {
			h := newClaimFixture(t, 1)
			drop := h.remembered(100, 1)
			for _, c := range []struct {
				by  user.ID
				ask func([]claim.Request) ([]claim.Verdict, error)
			}{
				{1, func(group []claim.Request) ([]claim.Verdict, error) {
					return couponsdb.Firsts(couponsdb.Patiently(t.Context()), h.gates[0], group)
				}},
				{2, func(group []claim.Request) ([]claim.Verdict, error) {
					return h.gates[0].Group(couponsdb.Patiently(t.Context()), group)
				}},
			} {
				h.Exec(`update templates set `+name+` = clock_timestamp() + interval '400 ms' where id = $1`, drop.ID)
				_, release := h.Hold(`select from templates where id = $1 for no key update`, drop.ID)
				var verdicts []claim.Verdict
				var err error
				var asking sync.WaitGroup
				asking.Go(func() { verdicts, err = c.ask([]claim.Request{claimtest.Tap(drop, c.by, "a")}) })
				h.Blocked(1)
				for h.Number(`select count(*) from templates where id = $1 and `+name+` > clock_timestamp()`, drop.ID) > 0 && t.Context().Err() == nil {
					continue
				}
				release()
				asking.Wait()
				h.Must(err)
				if verdicts[0].Claim != nil {
					t.Errorf("user %d was given a coupon after the end: %+v", c.by, verdicts[0].Claim)
				}
			}
			claimtest.Holds(t, h, drop.ID, 1, 1)
		})
	}
}

// TestTermsAreNotRememberedForLong: reading the terms of one drop does not
// refresh the older terms of another drop.
func TestTermsAreNotRememberedForLong(t *testing.T) {
	h := newClaimFixture(t, 1)
	old := h.remembered(100, 1)
	couponsdb.Age(h.gates[0], 11*time.Second)
	young := h.remembered(100, 1)
	if couponsdb.Remembers(h.gates[0], old.ID) || !couponsdb.Remembers(h.gates[0], young.ID) {
		t.Error("terms are remembered by the age of others'")
	}
}
