package coupons_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// waitFixture is a database with a durable gate and waitlists.
type waitFixture struct {
	*claimFixture
	lists  *couponsdb.Waitlists
	filler *waitlist.Filler
}

// noQueue is a queue that is away.
type noQueue struct{}

func (noQueue) Enqueue(context.Context, ...task.Task) error { return errors.New("the queue is away") }

func newWaitFixture(t *testing.T) *waitFixture {
	t.Helper()
	h := &waitFixture{claimFixture: newClaimFixture(t, 1)}
	h.lists = couponsdb.NewWaitlists(h.DB, postgres.Grouping{})
	t.Cleanup(h.lists.Close)
	h.filler = &waitlist.Filler{Store: h.lists, Queue: noQueue{}}
	return h
}

// soldOut opens a drop with a waitlist, whose stock the users 1 to stock have.
func (h *waitFixture) soldOut(stock int64, change func(*template.Spec)) (drop template.Template, coupons []int64) {
	h.Helper()
	drop = h.Open(stock, 1, func(s *template.Spec) {
		s.Waitlist = template.IssueNext
		if change != nil {
			change(s)
		}
	})
	for i := range stock {
		c, err := h.Claim(h.Context(), claimtest.Tap(drop, user.ID(i+1), ""))
		h.Must(err)
		coupons = append(coupons, c.CouponID)
	}
	return drop, coupons
}

// join lets users join in this order.
func (h *waitFixture) join(drop int64, users ...user.ID) {
	h.Helper()
	for _, id := range users {
		_, joined, err := h.lists.Join(h.Context(), waitlist.Wish{TemplateID: drop, UserID: id, Channels: delivery.ChannelSetOf(delivery.App), Limit: 2})
		if err != nil || !joined {
			h.Fatalf("user %d: joined %v, %v", id, joined, err)
		}
	}
}

// states are the users of a waitlist by state, in order.
func (h *waitFixture) states(drop int64) string {
	h.Helper()
	var text string
	h.Must(h.SQL.QueryRow(h.Context(), `select coalesce(string_agg(state || ' ' || users, ', ' order by state), '')
		from (select state, string_agg(user_id::text, ' ' order by user_id) as users from waiters where template_id = $1 group by 1) s`, drop).Scan(&text))
	return text
}

// whole recounts the stock and the waitlist, which must add up.
func (h *waitFixture) whole(drop int64) claim.Ledger {
	h.Helper()
	sheet, off, err := h.Ledgers.WaitsCounted(h.Context(), drop)
	if err != nil || off != 0 || sheet.Difference() != 0 {
		h.Errorf("the waitlist %+v is off by %d and %d, %v", sheet, off, sheet.Difference(), err)
	}
	return h.balanced(drop)
}

// TestJoinAndLeave: joining and leaving have one effect, however often they are asked for. A user who
// comes back is last.
func TestJoinAndLeave(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(2, nil)
	h.join(drop.ID, 11, 12, 13)
	first, err := h.lists.Waiter(t.Context(), drop.ID, 11)
	h.Must(err)
	again, joined, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: 11, Channels: 1})
	if err != nil || joined || !again.JoinedAt.Equal(first.JoinedAt) || again.State != waitlist.Waiting {
		t.Errorf("a repetition: joined %v, %+v, %v", joined, again, err)
	}
	for range 2 {
		if w, err := h.lists.Leave(t.Context(), drop.ID, 11); err != nil || w.State != waitlist.Left {
			t.Errorf("left: %+v, %v", w, err)
		}
	}
	if _, err := h.lists.Leave(t.Context(), drop.ID, 99); !errors.Is(err, waitlist.ErrNotWaiting) {
		t.Errorf("a user who never joined leaves: %v", err)
	}
	h.whole(drop.ID)
	h.join(drop.ID, 11)
	if got := h.states(drop.ID); got != "waiting 11 12 13" {
		t.Error(got)
	}
	h.Raise(drop.ID, 4)
	h.Must(h.filler.Sweep(t.Context()))
	if got := h.states(drop.ID); got != "filled 12 13, waiting 11" {
		t.Error(got)
	}
	if w, err := h.lists.Leave(t.Context(), drop.ID, 12); err != nil || w.State != waitlist.Filled || w.CouponID == 0 {
		t.Errorf("a user with a coupon leaves: %+v, %v", w, err)
	}
	h.whole(drop.ID)
}

// TestWhoCannotJoin: each reason is told, and nothing is stored.
func TestWhoCannotJoin(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, nil)
	full := h.Open(5, 1, func(s *template.Spec) { s.Waitlist = template.IssueNext })
	without := h.Open(1, 1, nil)
	for name, c := range map[string]struct {
		drop int64
		by   user.ID
		want error
	}{
		"there are coupons left":    {full.ID, 11, waitlist.ErrNotOpen},
		"no waitlist":               {without.ID, 11, waitlist.ErrNotOpen},
		"no such drop":              {1 << 40, 11, waitlist.ErrNotOpen},
		"the user has a coupon":     {drop.ID, 1, claim.ErrLimit},
		"the user waits everywhere": {drop.ID, 77, waitlist.ErrTooMany},
		"over":                      {h.over(), 11, waitlist.ErrNotOpen},
	} {
		if c.by == 77 {
			h.Exec(`insert into waiters (template_id, user_id, joined_at) select 900000 + n, 77, now() from generate_series(1, $1) n`, waitlist.MaxWaits)
		}
		if _, joined, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: c.drop, UserID: c.by, Channels: 1, Limit: 1}); !errors.Is(err, c.want) || joined {
			t.Errorf("%s: joined %v, %v", name, joined, err)
		}
	}
	if n := h.Number(`select count(*) from waiters where user_id <> 77`); n != 0 {
		t.Errorf("%d users were stored", n)
	}
}

// over returns a drop that sold out and is over.
func (h *waitFixture) over() int64 {
	drop, _ := h.soldOut(1, nil)
	h.Exec(`update templates set closes_at = now() - interval '1 second' where id = $1`, drop.ID)
	return drop.ID
}

// TestStockThatComesBackReachesNoTap: while users wait, raised and returned stock is theirs, in the
// order of joining. Once no user waits, it is for taps.
func TestStockThatComesBackReachesNoTap(t *testing.T) {
	h := newWaitFixture(t)
	drop, coupons := h.soldOut(3, nil)
	tap := func(by user.ID) error {
		_, err := h.Claim(t.Context(), claimtest.Tap(drop, by, ""))
		return err
	}
	h.join(drop.ID, 30, 20)
	h.Raise(drop.ID, 4)
	_, err := h.decider().Revoke(t.Context(), pgtest.Actor, coupons[0], "fraud", true)
	h.Must(err)
	if err := tap(40); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatalf("a tap got stock that is kept: %v", err)
	}
	if l := h.whole(drop.ID); l.Held != 2 || l.OnSale != 0 {
		t.Fatalf("%+v", l)
	}
	h.join(drop.ID, 10)
	h.Must(h.filler.Sweep(t.Context()))
	if got := h.states(drop.ID); got != "filled 20 30, waiting 10" {
		t.Fatal(got)
	}
	if l := h.whole(drop.ID); l.Held != 0 || l.Issued != 4 {
		t.Fatalf("%+v", l)
	}
	if n := h.Number(`select count(*) from coupons c join waiters w on w.coupon_id = c.id and w.user_id = c.user_id where c.template_id = $1 and c.origin = 'waitlist'`, drop.ID); n != 2 {
		t.Errorf("%d coupons of the waitlist", n)
	}
	// More than are waited for: the others are for taps.
	h.Raise(drop.ID, 7)
	h.Must(h.filler.Sweep(t.Context()))
	if l := h.whole(drop.ID); l.Held != 0 || l.OnSale != 2 {
		t.Fatalf("%+v", l)
	}
	h.Must(tap(41))
	h.Raise(drop.ID, 8) // no user waits
	if l := h.whole(drop.ID); l.Held != 0 || l.OnSale != 2 {
		t.Fatalf("%+v", l)
	}
}

// TestWhoIsSkipped: a coupon goes past users who may not have it, with the reason.
func TestWhoIsSkipped(t *testing.T) {
	h := newWaitFixture(t)
	drop, coupons := h.soldOut(2, func(s *template.Spec) { s.PerUserLimit = 1 })
	h.join(drop.ID, 10, 11, 12, 13)
	h.Exec(`insert into erased_users (user_id, erased_by) values (10, 'test')`)
	h.Exec(`insert into claim_counts (template_id, user_id, issued) values ($1, 11, 1)`, drop.ID) // from elsewhere
	h.Exec(`update templates set per_user_limit = 2 where id = $1`, drop.ID)
	h.Exec(`update claim_counts set issued = 2 where template_id = $1 and user_id = 11`, drop.ID)
	h.join(drop.ID, 1) // may have a second coupon
	_, err := h.decider().Revoke(t.Context(), pgtest.Actor, coupons[0], "fraud", true)
	h.Must(err)
	h.Exec(`update waiters set rank = -1 where user_id = 1`) // the first in rank: not even then
	h.Must(h.filler.Sweep(t.Context()))
	if got := h.states(drop.ID); got != "filled 12, skipped 1 10 11, waiting 13" {
		t.Error(got)
	}
	for by, reason := range map[int]string{1: waitlist.ReasonTakenBack, 10: "user_erased", 11: "limit_reached"} {
		if w, err := h.lists.Waiter(t.Context(), drop.ID, user.ID(by)); err != nil || w.Reason != reason {
			t.Errorf("user %d: %+v, %v", by, w, err)
		}
	}
	h.Exec(`delete from claim_counts where user_id = 11`)
	h.whole(drop.ID)
}

// TestNothingIsGivenAtTheEnd: after the end, or with too little validity left, no user gets a coupon.
// The users are told why, and the stock is not kept any longer. A paused drop gives later.
func TestNothingIsGivenAtTheEnd(t *testing.T) {
	h := newWaitFixture(t)
	for name, end := range map[string]string{
		"over":           `update templates set closes_at = now() - interval '1 second' where id = $1`,
		"closed":         `update templates set state = 'closed', ended_at = now() where id = $1`,
		"soon worthless": `update templates set valid_hours = 0, valid_until = now() + interval '59 minutes' where id = $1`,
	} {
		drop, _ := h.soldOut(1, nil)
		h.join(drop.ID, 10, 11)
		h.Raise(drop.ID, 3)
		h.Exec(end, drop.ID)
		h.Must(h.filler.Sweep(t.Context()))
		if got := h.states(drop.ID); got != "skipped 10 11" {
			t.Errorf("%s: %s", name, got)
		}
		if l := h.whole(drop.ID); l.Held != 0 || l.Issued != 1 {
			t.Errorf("%s: %+v", name, l)
		}
		h.Exec(`update templates set state = 'closed', ended_at = now() where id = $1`, drop.ID)
		h.Must(h.filler.Sweep(t.Context()))
		if list, err := h.lists.Unfilled(t.Context(), 0, 10); err != nil || len(list) > 0 {
			t.Errorf("%s: the sweep finds %v again, %v", name, list, err)
		}
	}
	reopened, _ := h.soldOut(1, nil)
	h.join(reopened.ID, 10, 11)
	h.Do(reopened.ID, template.Closing)
	h.Must(h.filler.Sweep(t.Context()))
	h.Exec(`update templates set state = 'published', ended_at = null where id = $1`, reopened.ID)
	h.join(reopened.ID, 11)
	if got := h.states(reopened.ID); got != "skipped 10, waiting 11" {
		t.Errorf("reopened: %s", got)
	}
	h.whole(reopened.ID)
	drop, _ := h.soldOut(1, nil)
	h.join(drop.ID, 10)
	h.Do(drop.ID, template.Pausing)
	h.Raise(drop.ID, 2)
	h.Must(h.filler.Sweep(t.Context()))
	if l := h.whole(drop.ID); l.Held != 1 {
		t.Errorf("paused: %+v", l)
	}
	h.Do(drop.ID, template.Resuming)
	h.Must(h.filler.Sweep(t.Context()))
	if got := h.states(drop.ID); got != "filled 10" {
		t.Errorf("resumed: %s", got)
	}
}

// TestFillersAtOnce: several fillers, users who join and leave, and stock that is raised: each user
// gets one coupon at most, and all adds up at every moment.
func TestFillersAtOnce(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, nil)
	const users = 60
	end := h.watched(drop.ID)
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			by := user.ID(100 + i)
			if _, _, err := h.lists.Join(h.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: by, Channels: 1}); err != nil && !errors.Is(err, waitlist.ErrNotOpen) {
				t.Error(err)
			}
			if i%3 == 0 {
				if _, err := h.lists.Leave(h.Context(), drop.ID, by); err != nil && !errors.Is(err, waitlist.ErrNotWaiting) {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for n := int64(2); n <= 30; n++ {
			h.Raise(drop.ID, n)
		}
	})
	for range 3 {
		all.Go(func() {
			for range 10 {
				if err := h.filler.Sweep(h.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	h.Must(h.filler.Sweep(t.Context()))
	end()
	l := h.whole(drop.ID)
	if l.OnSale > 0 && h.Number(`select waiting from waitlists where template_id = $1`, drop.ID) > 0 || l.Held > 0 {
		t.Errorf("stock is left while users wait: %+v", l)
	}
	if n := h.Number(`select count(*) from (select user_id from coupons where template_id = $1 group by 1 having count(*) > 1) d`, drop.ID); n > 0 {
		t.Errorf("%d users have more than one coupon", n)
	}
	h.Balance(drop.ID)
}
