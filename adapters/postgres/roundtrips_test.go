package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/localstack/network"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// TestRoundTripsInSequence counts how often a lone request waits for the database, by a proxy
// between the stores and the server. On another host each wait costs a round trip of the network.
// The first calls, which open connections and prepare statements, are not counted.
func TestRoundTripsInSequence(t *testing.T) {
	w := pgtest.New(t)
	p, url, err := network.Through(w.SQL.Config().ConnString())
	w.Must(err)
	t.Cleanup(p.Close)
	db, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4, Log: slog.New(slog.DiscardHandler)})
	w.Must(err)
	t.Cleanup(db.Close)
	reservations, claims, payments := dropsdb.NewReservations(db, postgres.Grouping{}), couponsdb.NewClaims(db, postgres.Grouping{}), pgtest.Payments(t, db)
	inbox := deliverydb.NewInbox(db, postgres.Grouping{})
	t.Cleanup(reservations.Close)
	t.Cleanup(claims.Close)
	t.Cleanup(inbox.Close)
	later, open := w.Published(time.Hour), w.Published(time.Hour)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, open.ID)
	steps := &coupon.Service{Store: payments, LockFor: time.Hour}
	const calls = 30
	coupons := make([]int64, calls)
	for i := range coupons {
		w.Exec(`update templates set issued = issued + 1 where id = $1`, later.ID)
		coupons[i] = w.ID("coupons", pgtest.Row{"template_id": later.ID, "user_id": 1000 + i})
	}
	reminded := w.Published(30 * time.Minute)
	for i := range calls {
		w.Reserve(reminded, user.ID(i+1), pgtest.Reminders(delivery.App, 5)...)
	}
	w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), w.DueNow(reminded, 1).ID))
	sent := w.ID("campaigns", pgtest.Row{"shop_number": 10, "state": "finished", "channel": 0})
	w.Must(w.Deliverer(&pgtest.MemoryQueue{}, pgtest.NewSink(delivery.App, 10)).Drain(t.Context(), delivery.App))
	all := make([]user.ID, calls+1)
	for i := range all {
		all[i] = user.ID(i + 1)
	}
	now := time.Now()
	w.Insert("batches", pgtest.Row{"kind": delivery.KindCampaign, "owner_id": sent, "from_user": 1, "to_user": len(all), "state": "done", "due_at": now,
		"worthless_after": now, "due": pgtest.Bitmap(all...), "due_count": len(all), "sent": pgtest.Bitmap(all...), "sent_count": len(all), "finished_at": now})
	for _, c := range []struct {
		name string
		want int
		do   func(i int) error
	}{
		{"a reservation", 1, func(i int) error {
			_, err := reservations.Reserve(t.Context(), reminder.Change{TemplateID: later.ID, UserID: user.ID(i + 1), Bits: reminder.BitmapOf(pgtest.Reminders(delivery.App, 5)...)})
			return err
		}},
		{"a cancellation", 1, func(i int) error {
			_, err := reservations.Cancel(t.Context(), reminder.Change{TemplateID: later.ID, UserID: user.ID(i + 1), Bits: reminder.BitmapOf(pgtest.Reminders(delivery.App, 5)...)})
			return err
		}},
		{"a claim", 1, func(i int) error {
			_, err := claims.Claim(t.Context(), claim.Request{ID: claim.NewID(uint64(i+1)<<20, open.ID), TemplateID: open.ID, UserID: user.ID(i + 1), Origin: claim.ByTap})
			return err
		}},
		{"a lock of a coupon", 2, func(i int) error {
			_, err := steps.Lock(t.Context(), "key:1 till", coupons[i], coupon.Order{ID: "order", Amount: 2500})
			return err
		}},
		{"a confirmed payment", 2, func(i int) error {
			_, err := steps.Confirm(t.Context(), "key:1 till", coupons[i], "order")
			return err
		}},
		{"a page of the inbox", 3, func(i int) error {
			page, err := inbox.Page(t.Context(), user.ID(i+1), time.Time{}, 20)
			if err == nil && len(page.Items) != 2 {
				t.Errorf("user %d has %d messages in the inbox, want a reminder and a campaign", i+1, len(page.Items))
			}
			return err
		}},
		{"a mark of reading", 1, func(i int) error {
			_, err := inbox.MarkRead(t.Context(), user.ID(i+1), time.Now())
			return err
		}},
	} {
		most := 0
		for i := range calls {
			p.Record()
			w.Must(c.do(i))
			if n := network.InSequence(p.Recorded()); i >= calls/2 {
				most = max(most, n)
			}
		}
		if most > c.want {
			t.Errorf("%s makes %d round trips in sequence, want at most %d", c.name, most, c.want)
		}
	}
}
