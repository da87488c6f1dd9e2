package coupons_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// TestFilledUsersAreTold: each user who got a coupon gets one message, over the chosen channels.
func TestFilledUsersAreTold(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, nil)
	for by, channels := range map[user.ID]delivery.ChannelSet{10: delivery.ChannelSetOf(delivery.App), 11: delivery.ChannelSetOf(delivery.App, delivery.Email)} {
		_, _, err := h.lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: by, Channels: channels})
		h.Must(err)
	}
	h.Raise(drop.ID, 3)
	var batches []waitlist.Batch
	h.filler.Done = func(_ int64, f waitlist.Filling) { batches = append(batches, f.Batches...) }
	h.Must(h.filler.Sweep(t.Context()))
	var told []string
	rows, err := h.SQL.Query(t.Context(), `select b.kind || ' ' || b.channel || ' ' || b.due_count || ' ' || a.state from batches b join announcements a on a.id = b.owner_id order by b.channel`)
	h.Must(err)
	for rows.Next() {
		var line string
		h.Must(rows.Scan(&line))
		told = append(told, line)
	}
	h.Must(rows.Err())
	if !slices.Equal(told, []string{"waitlist 0 2 sending", "waitlist 1 1 sending"}) || len(batches) != 2 {
		t.Errorf("%q, %v", told, batches)
	}
}

// TestAGateGivesBackToUsersWhoWait: the coupon of a claim that a gate accepted and the database
// refused is kept for the users who wait, whatever dies meanwhile; its shard sells it no more.
func TestAGateGivesBackToUsersWhoWait(t *testing.T) {
	h := newWaitFixture(t)
	book := couponsdb.NewGateRecorder(h.DB)
	drop := h.Open(4, 1, func(s *template.Spec) { s.Waitlist, s.ClaimMode = template.IssueNext, template.Gate })
	h.Exec(`insert into gates (template_id, shards, epoch, state, reason, lease_until) values ($1, 1, 2, 'standing', 'test', now())`, drop.ID)
	h.Exec(`insert into gate_shards (template_id, shard, epoch, allot) values ($1, 0, 2, 4)`, drop.ID)
	h.join(drop.ID, 10)
	page := []gate.Group{gateEntry(2, accepted(21, 1, "a"), accepted(22, 1, "b")), gateEntry(1, accepted(23, 2, "a"), accepted(24, 2, "b"))}
	shard := gate.Shard{Epoch: 2, Open: true, Allot: 4, Stock: 2, Accepted: 2}
	for range 2 { // as after the death of the writer
		verdicts, err := book.Write(t.Context(), drop.ID, 0, page)
		h.Must(err)
		for _, v := range verdicts {
			if v.Held != (v.ID == 22 || v.ID == 24) || v.Issued == v.Held {
				t.Errorf("%+v", v)
			}
		}
	}
	plan, err := couponsdb.NewGates(h.DB).Plan(t.Context(), drop.ID)
	h.Must(err)
	// The shard keeps the claim of its epoch as taken; it was allotted two more of the former epoch.
	shard.Allot, shard.Stock = plan.Parts[0].Allot, plan.Parts[0].Allot-2
	if l := plan.Ledger([]gate.Shard{shard}); l.Difference != 0 || l.Held != 2 || l.Writing != 0 || l.Issued != 2 || l.OnSale != 0 {
		t.Errorf("%+v of %+v", l, plan)
	}
	h.Must(h.filler.Sweep(t.Context()))
	if got := h.states(drop.ID); got != "filled 10" {
		t.Error(got)
	}
	plan, err = couponsdb.NewGates(h.DB).Plan(t.Context(), drop.ID)
	h.Must(err)
	// No further user waits: the other coupon is allotted to the shard.
	if l := plan.Ledger([]gate.Shard{shard}); l.Difference != 0 || l.Held != 0 || l.Issued != 3 || l.OnSale != 1 {
		t.Errorf("%+v of %+v", l, plan)
	}
	h.whole(drop.ID)
}

// TestManyWaiters: a large raise is given in transactions of a thousand users, in order; how long that
// takes with a million users is measured by lab/bench/waitlist.
func TestManyWaiters(t *testing.T) {
	h := newWaitFixture(t)
	drop, _ := h.soldOut(1, nil)
	const waiting, raised = 20_000, 2500
	h.Exec(`insert into waiters (template_id, user_id, joined_at) select $1, 1000000 - n, now() + n * interval '1 microsecond' from generate_series(1, $2::int) n`, drop.ID, waiting)
	h.Exec(`update waitlists set joined = $2, waiting = $2 where template_id = $1`, drop.ID, waiting)
	h.Raise(drop.ID, 1+raised)
	sizes := []string{}
	h.filler.Done = func(_ int64, f waitlist.Filling) { sizes = append(sizes, fmt.Sprint(f.Filled)) }
	began := time.Now()
	h.Must(h.filler.Sweep(t.Context()))
	t.Logf("%d coupons in %v", raised, time.Since(began))
	if !slices.Equal(sizes, []string{"1000", "1000", "500"}) {
		t.Error(sizes)
	}
	if n := h.Number(`select count(*) from waiters where template_id = $1 and state = 'filled' and user_id >= 1000000 - $2`, drop.ID, raised); n != raised {
		t.Errorf("%d of the first %d are filled", n, raised)
	}
	h.whole(drop.ID)
}
