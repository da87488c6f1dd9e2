package coupons_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// gift starts the job that gives one user a coupon.
func (b *campaignGrant) gift(g coupon.Gift, key string) (job.Job, error) {
	b.Helper()
	b.list.rows = [][]string{{"user_id"}, {g.UserID.String()}}
	u, err := b.Uploads.SaveUpload(b.Context(), "one.csv", strings.NewReader("user_id\n"), 100, pgtest.Actor)
	b.Must(err)
	g.TemplateID, g.Reason = b.drop.ID, "the parcel was late"
	return b.grants.Give(b.Context(), pgtest.Actor, g, u.ID, key)
}

// given gives one user a coupon, each step twice, and returns the result and the coupon.
func (b *campaignGrant) given(g coupon.Gift, key string) (string, int64) {
	b.Helper()
	j, err := b.gift(g, key)
	b.Must(err)
	result, id, err := b.grants.Result(b.Context(), pgtest.Actor, b.work(j, true))
	b.Must(err)
	return result, id
}

// balanced fails unless the drop's stock and the users' counts add up.
func (b *campaignGrant) balanced(issued int64) {
	b.Helper()
	l, err := couponsdb.NewLedgers(b.DB).Ledger(b.Context(), b.drop.ID)
	if err != nil || l.Difference() != 0 || l.Issued != issued {
		b.Errorf("%+v, %v, want %d issued", l, err, issued)
	}
	list, err := couponsdb.NewLedgers(b.DB).Selling(b.Context(), time.Hour, 10, 1000)
	if err != nil || len(list) != 1 || list[0].Difference() != 0 {
		b.Errorf("the census: %+v, %v", list, err)
	}
}

// A gift is given once however often its form is sent. The limit holds unless staff pass it,
// and stock always.
func TestGiveOneCoupon(t *testing.T) {
	b := newCampaignGrant(t, 3)
	result, first := b.given(coupon.Gift{UserID: 7}, "form")
	if result != coupon.GrantIssued || first == 0 {
		t.Fatal(result)
	}
	if result, again := b.given(coupon.Gift{UserID: 7}, "form"); result != coupon.GrantIssued || again != first {
		t.Errorf("the form sent twice: %s, coupon %d and %d", result, first, again)
	}
	if result, _ := b.given(coupon.Gift{UserID: 7}, "another"); result != claim.ErrLimit.Code {
		t.Errorf("beyond the limit: %s", result)
	}
	for key := range 2 {
		if result, id := b.given(coupon.Gift{UserID: 7, OverLimit: true}, fmt.Sprint("over", key)); result != coupon.GrantIssued || id == first {
			t.Errorf("passing the limit: %s, coupon %d", result, id)
		}
	}
	b.balanced(3)
	if result, _ := b.given(coupon.Gift{UserID: 8, OverLimit: true}, "sold out"); result != claim.ErrSoldOut.Code {
		t.Errorf("without stock: %s", result)
	}
	if result, _ := b.given(coupon.Gift{UserID: 4040}, "nobody"); result != coupon.GrantUnknown {
		t.Errorf("nobody: %s", result)
	}
	if n := b.Number(`select count(*) from audit where action = 'coupon.give' and object_kind = 'user' and object_id = '7' and reason <> ''`); n != 4 {
		t.Errorf("%d audit entries", n)
	}
	viewer := staff.Actor{Label: "staff:2", Role: staff.Viewer}
	if _, err := b.grants.Give(t.Context(), viewer, coupon.Gift{TemplateID: b.drop.ID, UserID: 1, Reason: "x"}, 0, ""); fault.KindOf(err) != fault.Denied {
		t.Errorf("a viewer: %v", err)
	}
	if _, err := b.grants.Give(t.Context(), pgtest.Actor, coupon.Gift{TemplateID: b.drop.ID, UserID: 1}, 0, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a reason: %v", err)
	}

	admin := b.granter.Admin
	for range 2 {
		if c, err := admin.UndoGift(t.Context(), pgtest.Actor, first, "the wrong customer"); err != nil || c.State != coupon.Revoked || !c.Returned {
			t.Fatalf("undone: %+v, %v", c, err)
		}
	}
	if n := b.Number(`select count(*) from audit where action = 'coupon.give_undo'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	b.balanced(2)
	if result, _ := b.given(coupon.Gift{UserID: 8}, "stock again"); result != coupon.GrantIssued {
		t.Errorf("the returned coupon: %s", result)
	}
}

// A coupon that an order has held cannot be taken back, nor one that the customer claimed.
func TestUndoEnds(t *testing.T) {
	b := newCampaignGrant(t, 3)
	_, id := b.given(coupon.Gift{UserID: 7}, "form")
	steps := &coupon.Service{Store: b.Payments, LockFor: time.Hour}
	refused := func(when string) {
		t.Helper()
		if _, err := b.granter.Admin.UndoGift(t.Context(), pgtest.Actor, id, "why"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("%s: %v", when, err)
		}
	}
	_, err := steps.Lock(t.Context(), "key:1", id, coupon.Order{ID: "A-1", Amount: 5000})
	b.Must(err)
	refused("locked")
	_, err = steps.Release(t.Context(), "key:1", id, "A-1")
	b.Must(err)
	refused("released")
	id = b.ID("coupons", pgtest.Row{"template_id": b.drop.ID, "user_id": 9})
	refused("claimed")
}

// A used coupon is refunded by staff as by payment, once.
func TestRefundByStaff(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	if _, err := p.decider.Refund(t.Context(), pgtest.Actor, id, "A-1", "sent back"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("unused: %v", err)
	}
	_, err := p.lock(id, "A-1")
	p.Must(err)
	_, err = p.steps.Confirm(t.Context(), "key:1", id, "A-1")
	p.Must(err)
	for range 2 {
		if c, err := p.decider.Refund(t.Context(), pgtest.Actor, id, "A-1", "sent back"); err != nil || c.State != coupon.Unused {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if n := p.Number(`select count(*) from coupon_operations where step = 'refund' and outcome = 'done' and order_amount = 2500 and reason = 'sent back'`); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	if n := p.Number(`select count(*) from audit where action = 'coupon.refund'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if n := p.Number(`select count(*) from outbox, jsonb_array_elements(payload -> 'changes') c where topic = $1 and c ->> 'step' = 'refund'`, event.CouponsChanged); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A revoked, expired or lost coupon is given again once, whoever asks: also when the stock
// is used up by the lost coupon itself. The limit per customer is not in the way.
func TestGiveAgain(t *testing.T) {
	for name, change := range map[string]string{
		"revoked": `update coupons set state = 'revoked', version = 1 where id = $1`,
		"expired": `update coupons set expires_at = now() - interval '1 hour' where id = $1`,
		"lost":    ``,
	} {
		t.Run(name, func(t *testing.T) {
			b := newCampaignGrant(t, 3)
			_, old := b.given(coupon.Gift{UserID: 7}, "form")
			if change != "" {
				b.Exec(change, old)
			} else {
				b.Exec(`update templates set stock = 1 where id = $1`, b.drop.ID)
			}
			var ids []int64
			for _, key := range []string{"one", "two"} {
				result, id := b.given(coupon.Gift{UserID: 7, Replaces: old}, key)
				if result != coupon.GrantIssued || id == old {
					t.Fatalf("%s: %s", key, result)
				}
				ids = append(ids, id)
			}
			if ids[0] != ids[1] || b.Number(`select count(*) from coupons`) != 2 {
				t.Errorf("given again as %v", ids)
			}
			if again, err := b.granter.Admin.Given(t.Context(), old); err != nil || again != ids[0] {
				t.Errorf("given again as %d, %v, want %d", again, err, ids[0])
			}
			issued := int64(2)
			if name == "lost" {
				if issued = 1; b.Number(`select count(*) from coupons where id = $1 and state = 'revoked' and returned`, old) != 1 {
					t.Error("the lost coupon is not revoked")
				}
			}
			b.balanced(issued)
			if _, err := b.granter.Admin.UndoGift(t.Context(), pgtest.Actor, ids[0], "no"); err != nil {
				t.Fatal(err)
			}
			if result, _ := b.given(coupon.Gift{UserID: 7, Replaces: old}, "three"); result != string(coupon.Revoked) {
				t.Errorf("after the undo: %s", result)
			}
		})
	}
}

// An order that locks the old coupon meanwhile keeps it: the new one goes back to the stock.
func TestGiveAgainWhileAnOrderLocks(t *testing.T) {
	b := newCampaignGrant(t, 3)
	_, old := b.given(coupon.Gift{UserID: 7}, "form")
	j, err := b.gift(coupon.Gift{UserID: user.ID(7), Replaces: old}, "again")
	b.Must(err)
	steps := &coupon.Service{Store: b.Payments, LockFor: time.Hour}
	_, err = steps.Lock(t.Context(), "key:1", old, coupon.Order{ID: "A-1", Amount: 5000})
	b.Must(err)
	result, _, err := b.grants.Result(t.Context(), pgtest.Actor, b.work(j, false))
	if err != nil || result != string(coupon.Locked) {
		t.Errorf("%s, %v", result, err)
	}
	if n := b.Number(`select count(*) from coupons where user_id = 7 and state <> 'revoked'`); n != 1 {
		t.Errorf("the customer has %d coupons", n)
	}
	b.balanced(1)
}

// An undone refund leaves figures, tallies and log as if the order had never been refunded, whether
// or not the events were counted in between; payment can refund the order afterwards. Undoing ends
// with the next step of the coupon.
func TestUndoRefund(t *testing.T) {
	for _, between := range []bool{true, false} {
		w := newTill(t)
		a, admin := w.Published(time.Hour), &coupon.Admin{Store: w.CouponSteps}
		id := w.pay(a, 1, "A-1", 18_000)
		count(w.fixture, relayedSteps(w.fixture)...)
		paid, err := w.Reports.Sums(t.Context(), a.ID)
		w.Must(err)
		if _, err := admin.UndoRefund(t.Context(), pgtest.Actor, id, "no"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("without a refund: %v", err)
		}
		refunder := staff.Actor{Label: "staff:1", Name: "Ada", Role: staff.Operator}
		_, err = admin.Refund(t.Context(), refunder, id, "A-1", "sent back")
		w.Must(err)
		if between {
			count(w.fixture, relayedSteps(w.fixture)...)
		}
		c, err := admin.UndoRefund(t.Context(), refunder, id, "they keep it")
		if err != nil || c.State != coupon.Used || c.OrderID != "A-1" || c.Discount != a.AmountOff {
			t.Fatalf("%+v, %v", c, err)
		}
		w.sumsHold(a)
		count(w.fixture, relayedSteps(w.fixture)...)
		w.sumsHold(a)
		if got, err := w.Reports.Sums(t.Context(), a.ID); err != nil || !cmp.Equal(paid, got) {
			t.Errorf("sums after the undo (-want +got):\n%s %v", cmp.Diff(paid, got), err)
		}
		if y, err := w.Tallies.Tally(t.Context(), a.ID); err != nil || y.Used != 1 || y.Refunded != 0 || y.Discounted != a.AmountOff {
			t.Errorf("%+v, %v", y, err)
		}
		if _, err := admin.UndoRefund(t.Context(), refunder, id, "again"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("undone twice: %v", err)
		}
		w.refund(id, "A-1")
		count(w.fixture, relayedSteps(w.fixture)...)
		w.sumsHold(a)
		if y, err := w.Tallies.Tally(t.Context(), a.ID); err != nil || y.Used != 0 || y.Refunded != 1 {
			t.Errorf("refunded by payment: %+v, %v", y, err)
		}
		if _, err := admin.UndoRefund(t.Context(), refunder, id, "payment's"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("a refund by payment: %v", err)
		}
		other := w.pay(a, 2, "A-2", 5_000)
		_, err = admin.Refund(t.Context(), refunder, other, "A-2", "sent back")
		w.Must(err)
		_, err = w.steps.Lock(t.Context(), "key:1", other, coupon.Order{ID: "A-3", Amount: 9_000})
		w.Must(err)
		_, err = w.steps.Release(t.Context(), "key:1", other, "A-3")
		w.Must(err)
		if _, err := admin.UndoRefund(t.Context(), refunder, other, "late"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("after another order: %v", err)
		}
	}
}

// sumsHold fails unless sums and tallies agree with the log.
func (w *till) sumsHold(tpl template.Template) {
	w.Helper()
	if n, err := w.Tallies.SalesOff(w.Context(), tpl.ID); err != nil || n != 0 {
		w.Errorf("the sums are off by %d, %v", n, err)
	}
	if n, err := w.Tallies.Off(w.Context(), tpl.ID); err != nil || n != 0 {
		w.Errorf("the tallies are off by %d, %v", n, err)
	}
}
