package coupons_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestTermsThatChangeUnderAQuickGroup changes the drop after a group has read its
// terms and written its coupons, and before the group counts them. The change was
// decided first, so it applies, and the group's first attempt leaves nothing
// behind.
func TestTermsThatChangeUnderAQuickGroup(t *testing.T) {
	h := newClaimFixture(t, 1)
	for name, c := range map[string]struct {
		change string
		want   error
		issued int64
	}{
		"paused":  {`state = 'paused', version = version + 1`, template.ErrNotOpen, 0},
		"ended":   {`closes_at = now(), version = version + 1`, claim.ErrEnded, 0},
		"lowered": {`stock = 1, issued = 1, version = version + 1`, claim.ErrSoldOut, 0},
		"limited": {`per_user_limit = 1, version = version + 1`, nil, 1},
		"raised":  {`stock = stock + 1, version = version + 1`, nil, 1},
		"taken":   {`issued = stock`, claim.ErrSoldOut, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drop := h.Open(10, 5, nil)
			_, commit := h.Hold(`update templates set `+c.change+` where id = $1`, drop.ID)
			var got claim.Claim
			var err error
			var asking sync.WaitGroup
			asking.Go(func() { got, err = h.gates[0].Claim(t.Context(), claimtest.Tap(drop, 1, "key of "+name)) })
			h.Blocked(1)
			commit()
			asking.Wait()
			if !errors.Is(err, c.want) || (err == nil) != (got.CouponID != 0) {
				t.Errorf("%+v, %v, want %v", got, err, c.want)
			}
			if n := h.Number(`select count(*) from coupons where template_id = $1`, drop.ID); n != c.issued {
				t.Errorf("%d coupons are stored, want %d", n, c.issued)
			}
			if n := h.Number(`select coalesce(sum(issued), 0) from claim_counts where template_id = $1`, drop.ID); n != c.issued {
				t.Errorf("%d are counted, want %d", n, c.issued)
			}
		})
	}
}

// TestOneUserOnManyNodes lets a few users claim on all nodes at once, so that
// groups conflict in the users' counts. Some requests use the keys of other
// requests.
func TestOneUserOnManyNodes(t *testing.T) {
	const users, tries, limit = 3, 40, 7
	h := newClaimFixture(t, 3)
	drop := h.Open(1000, limit, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	won := map[user.ID]map[claim.ID]bool{}
	for i := range users * tries {
		all.Go(func() {
			by := user.ID(i%users + 1)
			c, err := h.gates[i%len(h.gates)].Claim(t.Context(), claimtest.Tap(drop, by, fmt.Sprint(i/users/2)))
			if err != nil {
				if !errors.Is(err, claim.ErrLimit) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if won[by] == nil {
				won[by] = map[claim.ID]bool{}
			}
			won[by][c.ID] = true
		})
	}
	all.Wait()
	for by, claims := range won {
		if len(claims) != limit {
			t.Errorf("user %d has %d coupons, want %d", by, len(claims), limit)
		}
	}
	claimtest.Holds(t, h, drop.ID, users*limit, limit)
}

// TestTheLastGroupTellsTheWholeNumber: after the last coupon is issued, the
// events contain the total number, whichever groups ran concurrently.
func TestTheLastGroupTellsTheWholeNumber(t *testing.T) {
	const stock = 500
	h := newClaimFixture(t, 3)
	drop := h.Open(stock, 1, nil)
	var all sync.WaitGroup
	for i := range 2 * stock {
		all.Go(func() {
			if _, err := h.gates[i%3].Claim(t.Context(), claimtest.Tap(drop, user.ID(i+1), "")); err != nil && !errors.Is(err, claim.ErrSoldOut) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	claimtest.Holds(t, h, drop.ID, stock, 1)
	if n := h.Number(`select max((i ->> 'total')::bigint) from outbox, jsonb_array_elements(payload -> 'issued') i
		where topic = 'coupons.issued.v1' and i ->> 'template_id' = $1::text`, fmt.Sprint(drop.ID)); n != stock {
		t.Errorf("the events say %d of %d", n, stock)
	}
}

// TestGroupsOfSeveralTemplatesTakeTurns sends two groups that name the templates
// in opposite orders while the second template is locked. The groups do not
// deadlock.
func TestGroupsOfSeveralTemplatesTakeTurns(t *testing.T) {
	h := newClaimFixture(t, 2)
	a, b := h.Open(1000, 1000, nil), h.Open(1000, 1000, nil)
	_, release := h.Hold(`select pg_advisory_xact_lock(hashtextextended('dropbell:claims', $1))`, b.ID)
	var all sync.WaitGroup
	for node, order := range [][]template.Template{{b, a}, {a, b}} {
		all.Go(func() {
			var group []claim.Request
			for _, drop := range order {
				r := claimtest.Tap(drop, 1, fmt.Sprint(node, drop.ID))
				r.Origin = claim.ByGrant
				group = append(group, r)
			}
			verdicts, err := h.gates[node].Group(t.Context(), group)
			if err != nil {
				t.Error(err)
			}
			for _, v := range verdicts {
				if v.Err != nil {
					t.Error(v.Err)
				}
			}
		})
		h.Blocked(int64(node + 1))
	}
	release()
	all.Wait()
	for _, drop := range []template.Template{a, b} {
		claimtest.Holds(t, h, drop.ID, 2, 1000)
	}
}
