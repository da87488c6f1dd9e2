package coupons_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// offers makes the waitlist of a drop of a day one with offers.
func offers(s *template.Spec) {
	s.Waitlist, s.AcceptMinutes, s.ClosesAt = template.OfferNext, 30, s.OpensAt.Add(24*time.Hour)
}

// accept lets the user accept a coupon.
func (h *waitFixture) accept(drop int64, by user.ID) (waitlist.Waiter, error) {
	h.Helper()
	return h.lists.Accept(h.Context(), drop, by)
}

func (h *waitFixture) sweep() {
	h.Helper()
	h.Must(h.filler.Sweep(h.Context()))
}

// endOffers lets all offers of the drop end.
func (h *waitFixture) endOffers(drop int64) {
	h.Helper()
	h.Exec(`update waiters set offer_until = now() where template_id = $1 and state = 'offered'`, drop)
}

// TestOffers: stock that comes back is kept for the users who are next until they accept it. A user who leaves
// passes the offer on, and accepting twice gives one coupon.
func TestOffers(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, offers)
	h.join(drop.ID, 10, 11, 12)
	h.Raise(drop.ID, 3)
	h.sweep()
	h.sweep()
	if got := h.states(drop.ID); got != "offered 10 11, waiting 12" {
		t.Fatal(got)
	}
	if l := h.whole(drop.ID); l.Held != 2 || l.OnSale != 0 || l.Issued != 1 {
		t.Fatalf("%+v", l)
	}
	if w, err := h.lists.Waiter(t.Context(), drop.ID, 10); err != nil || w.State != waitlist.Offered || w.OfferUntil.IsZero() || w.Shared {
		t.Errorf("the place of an offered user: %+v, %v", w, err)
	}
	if w, joined, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: 10, Channels: 1, Limit: 1}); err != nil || joined || w.State != waitlist.Offered || w.OfferUntil.IsZero() {
		t.Errorf("an offered user joins again: %+v %v %v", w, joined, err)
	}
	first, err := h.accept(drop.ID, 10)
	if err != nil || first.State != waitlist.Filled || first.CouponID == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := h.accept(drop.ID, 10); err != nil || again.CouponID != first.CouponID || again.State != waitlist.Filled {
		t.Errorf("accepted again: %+v, %v", again, err)
	}
	for by, want := range map[user.ID]error{12: waitlist.ErrNoOffer, 99: waitlist.ErrNotWaiting} {
		if _, err := h.accept(drop.ID, by); !errors.Is(err, want) {
			t.Errorf("user %d: %v", by, err)
		}
	}
	_, err = h.lists.Leave(t.Context(), drop.ID, 11)
	h.Must(err)
	h.whole(drop.ID)
	h.sweep()
	if got := h.states(drop.ID); got != "filled 10, left 11, offered 12" {
		t.Fatal(got)
	}
	_, err = h.accept(drop.ID, 12)
	h.Must(err)
	if l := h.whole(drop.ID); l.Held != 0 || l.Issued != 3 {
		t.Errorf("%+v", l)
	}
	if n := h.Number(`select count(*) from batches where template_id = $1 and kind = 'offer'`, drop.ID); n != 2 {
		t.Errorf("%d messages, want one for each transaction that made offers", n)
	}
	h.Balance(drop.ID)
}

// TestLapses: a user who does not accept in time waits behind all others, and is out after the second time. Nothing is
// given to a user who accepts too late.
func TestLapses(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, offers)
	h.join(drop.ID, 10, 11)
	h.Raise(drop.ID, 2)
	h.sweep()
	h.endOffers(drop.ID)
	if _, err := h.accept(drop.ID, 10); !errors.Is(err, waitlist.ErrLapsed) {
		t.Fatalf("too late: %v", err)
	}
	h.sweep()
	h.join(drop.ID, 12) // joins after the lapse, and is before the user who lapsed
	for _, want := range []string{"offered 11, waiting 10 12", "offered 12, waiting 10 11", "offered 10, waiting 11 12", "lapsed 10, offered 11, waiting 12", "lapsed 10 11, offered 12"} {
		if got := h.states(drop.ID); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		h.whole(drop.ID)
		h.endOffers(drop.ID)
		h.sweep()
	}
	if got := h.states(drop.ID); got != "lapsed 10 11 12" {
		t.Error(got)
	}
	if w, joined, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: 10, Channels: 1, Limit: 1}); err != nil || joined || w.State != waitlist.Lapsed || w.Lapses != 2 {
		t.Errorf("a user who is out joins: %+v %v %v", w, joined, err)
	}
	h.sweep()
	if l := h.whole(drop.ID); l.Held != 0 || l.OnSale != 1 {
		t.Errorf("stock that no user waits for is kept: %+v", l)
	}
}

// TestLastHourOfOffers: all users who wait are told once, also if the worker dies meanwhile, and the first of them get
// the coupons; offers that were made before still hold.
func TestLastHourOfOffers(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, offers)
	h.join(drop.ID, 10, 11, 12, 13)
	h.Raise(drop.ID, 2)
	h.sweep()
	h.Exec(`update templates set closes_at = date_trunc('second', now()) + interval '30 minutes' where id = $1`, drop.ID)
	h.Raise(drop.ID, 3)
	for range 3 {
		h.sweep()
	}
	if got := h.states(drop.ID); got != "offered 10, waiting 11 12 13" {
		t.Fatal(got)
	}
	if n := h.Number(`select due_count from batches where template_id = $1 and kind = 'offer' order by id desc limit 1`, drop.ID); n != 3 {
		t.Errorf("%d users were told", n)
	}
	if n := h.Number(`select count(*) from batches where template_id = $1 and kind = 'offer'`, drop.ID); n != 2 {
		t.Errorf("%d batches", n)
	}
	if w, err := h.lists.Waiter(t.Context(), drop.ID, 13); err != nil || !w.Shared || w.OfferUntil.IsZero() {
		t.Errorf("a waiting user: %+v, %v", w, err)
	}
	_, err := h.accept(drop.ID, 13)
	h.Must(err)
	if _, err := h.accept(drop.ID, 11); !errors.Is(err, waitlist.ErrTaken) {
		t.Errorf("the second: %v", err)
	}
	if w, err := h.lists.Waiter(t.Context(), drop.ID, 11); err != nil || w.Shared || !w.OfferUntil.IsZero() {
		t.Errorf("nothing is left: %+v, %v", w, err)
	}
	_, err = h.accept(drop.ID, 10)
	h.Must(err)
	h.whole(drop.ID)
	h.Exec(`update templates set closes_at = now() where id = $1`, drop.ID)
	if _, err := h.accept(drop.ID, 11); !errors.Is(err, claim.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	h.sweep()
	if got := h.states(drop.ID); got != "filled 10 13, skipped 11 12" {
		t.Error(got)
	}
	h.whole(drop.ID)
}

// TestOffersOfAPausedDrop: nobody can accept while the drop is paused, so no offer lapses meanwhile. After the end the
// users who have an offer are skipped like the others.
func TestOffersOfAPausedDrop(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, offers)
	h.join(drop.ID, 10, 11)
	h.Raise(drop.ID, 2)
	h.sweep()
	h.Do(drop.ID, template.Pausing)
	if _, err := h.accept(drop.ID, 10); !errors.Is(err, template.ErrNotOpen) {
		t.Errorf("paused: %v", err)
	}
	h.endOffers(drop.ID)
	h.sweep()
	if got := h.states(drop.ID); got != "waiting 10 11" {
		t.Error(got)
	}
	if list, err := h.lists.Unfilled(t.Context(), 0, 10); err != nil || len(list) > 0 {
		t.Errorf("the sweep finds %v again, %v", list, err)
	}
	h.whole(drop.ID)
	h.Do(drop.ID, template.Resuming)
	h.sweep()
	if got := h.states(drop.ID); got != "offered 10, waiting 11" {
		t.Error(got)
	}
	h.Do(drop.ID, template.Closing)
	h.sweep()
	if got := h.states(drop.ID); got != "skipped 10 11" {
		t.Error(got)
	}
	if l := h.whole(drop.ID); l.Held != 0 {
		t.Errorf("%+v", l)
	}
}

// TestAcceptsAtOnce: many users accept the last coupons at the same time, while fillers run: each coupon is given
// once, and no user gets two.
func TestAcceptsAtOnce(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, offers)
	h.Exec(`update templates set closes_at = date_trunc('second', now()) + interval '30 minutes' where id = $1`, drop.ID)
	for by := range user.ID(30) {
		h.join(drop.ID, 100+by)
	}
	h.Raise(drop.ID, 6)
	h.sweep()
	end := h.watched(drop.ID)
	var got, missed atomic.Int64
	var all sync.WaitGroup
	for by := range user.ID(30) {
		for range 2 {
			all.Go(func() {
				switch _, err := h.accept(drop.ID, 100+by); {
				case err == nil:
					got.Add(1)
				case errors.Is(err, waitlist.ErrTaken):
					missed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	all.Go(func() {
		for range 5 {
			h.sweep()
		}
	})
	all.Wait()
	end()
	if got.Load() != 10 || missed.Load() != 50 {
		t.Errorf("%d answers with a coupon, %d without", got.Load(), missed.Load())
	}
	if n := h.Number(`select count(*) from coupons where template_id = $1 and origin = 'waitlist'`, drop.ID); n != 5 {
		t.Errorf("%d coupons", n)
	}
	h.whole(drop.ID)
	h.Balance(drop.ID)
}

// TestDoorsOfWaiters: users of an earlier door are before the others, and a user who has as many coupons as the door
// allows cannot join.
func TestDoorsOfWaiters(t *testing.T) {
	h := newWaitFixture(t)
	drop, coupons := h.soldOut(2, func(s *template.Spec) { s.PerUserLimit = 2 })
	for by, door := range map[user.ID]int{10: 2, 11: 1, 12: 2} {
		_, _, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: by, Channels: 1, Rank: int64(door), Door: door, Limit: 1})
		h.Must(err)
	}
	if _, _, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: 1, Channels: 1, Rank: 1, Door: 1, Limit: 1}); !errors.Is(err, claim.ErrLimit) {
		t.Errorf("at the limit of the door: %v", err)
	}
	_, err := h.decider().Revoke(t.Context(), pgtest.Actor, coupons[0], "fraud", true)
	h.Must(err)
	h.sweep()
	if w, err := h.lists.Waiter(t.Context(), drop.ID, 11); err != nil || w.State != waitlist.Filled {
		t.Errorf("the user of the first door: %+v, %v", w, err)
	}
	if _, err := h.Claim(t.Context(), claimtest.Tap(drop, 40, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a tap: %v", err)
	}
	h.whole(drop.ID)
}
