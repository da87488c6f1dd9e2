package work_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
)

// TestReservationsAreNamed: if an endpoint of the shop wants them, reservations and
// cancellations are announced one by one. The later event has the greater number.
func TestReservationsAreNamed(t *testing.T) {
	h := newHooked(t)
	tpl := h.Published(2 * time.Hour)
	h.shop = tpl.ShopNumber
	listed := func() (list []event.ReservationList) {
		rows, err := h.SQL.Query(t.Context(), `select payload from outbox where topic = $1 order by id`, event.ReservationsListed)
		h.Must(err)
		for rows.Next() {
			var raw []byte
			h.Must(rows.Scan(&raw))
			var l event.ReservationList
			h.Must(json.Unmarshal(raw, &l))
			list = append(list, l)
		}
		h.Must(rows.Err())
		return list
	}
	h.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 5)...)
	h.Reservations.Listed = func(context.Context, bool) bool { return true } // the statement itself looks which endpoints want them
	h.Reserve(tpl, 2, pgtest.Reminders(delivery.App, 5)...)
	if list := listed(); len(list) != 0 {
		t.Errorf("named without an endpoint: %+v", list)
	}
	h.endpoint(hook.ReservationMade, hook.ReservationCancelled)
	h.Reserve(tpl, 3, pgtest.Reminders(delivery.App, 5, 10)...)
	h.Cancel(tpl, 3, pgtest.Reminders(delivery.App, 5)...)
	h.Reserve(tpl, 3, pgtest.Reminders(delivery.App, 5)...)
	list := listed()
	if len(list) != 3 || list[0].Cancelled || !list[1].Cancelled || list[2].Cancelled {
		t.Fatalf("%+v", list)
	}
	last := int64(0)
	for i, l := range list {
		if len(l.Items) != 1 || l.TemplateID != tpl.ID || l.Items[0].UserID != 3 || l.Items[0].Sequence <= last || l.Items[0].Bits != []int64{3, 1, 1}[i] {
			t.Errorf("%d: %+v", i, l)
		}
		last = l.Items[0].Sequence
	}
	if n := h.Number(`select count(*) from outbox where topic = $1`, event.ReservationsChanged); n != 5 {
		t.Errorf("%d sums", n)
	}
}

// TestCouponsIssuedAreTold: each coupon is announced once, in parts. Coupons from before an
// endpoint chose the type are not announced.
func TestCouponsIssuedAreTold(t *testing.T) {
	h := newHooked(t)
	tpl := h.Published(2 * time.Hour)
	h.shop = tpl.ShopNumber
	issue := func(n int) {
		h.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", n), pgtest.Row{"template_id": tpl.ID, "user_id": pgtest.SQL("n"), "issued_at": pgtest.SQL("clock_timestamp()")})
	}
	issue(3)
	h.Must(h.events.SkipIssued(t.Context()))
	h.endpoint(hook.CouponIssued)
	issue(1201)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				_, more, err := h.events.Issued(t.Context(), 1000)
				if err != nil {
					t.Error(err)
					return
				}
				if !more && h.Number(`select count(*) from hook_cursor where planned_to = seen_to and seen_to = (select max(id) from coupons)`) == 1 {
					return
				}
			}
		})
	}
	all.Wait()
	rows, err := h.SQL.Query(t.Context(), `select payload, items from hook_events where type = 'coupon.issued' order by id`)
	h.Must(err)
	seen, events := map[string]bool{}, 0
	for rows.Next() {
		var raw []byte
		var items int
		h.Must(rows.Scan(&raw, &items))
		var p struct {
			Data struct {
				Items []struct {
					CouponID string `json:"coupon_id"`
				}
			}
		}
		h.Must(json.Unmarshal(raw, &p))
		events++
		if items != len(p.Data.Items) || items > hook.MaxItems {
			t.Errorf("%d items, %d said", len(p.Data.Items), items)
		}
		for _, i := range p.Data.Items {
			seen[i.CouponID] = true
		}
	}
	if len(seen) != 1201 || events > 5 {
		t.Errorf("%d of 1201 coupons in %d events", len(seen), events)
	}
	if n := h.Number(`select sum(items) from hook_events`); n != 1201 {
		t.Errorf("told %d times", n)
	}
}

// TestOpeningIsToldOnce: an opening is announced when its instant has passed. Openings from
// before an endpoint chose the type are not announced.
func TestOpeningIsToldOnce(t *testing.T) {
	h := newHooked(t)
	early, late := h.Published(2*time.Hour), h.Published(2*time.Hour)
	h.shop = early.ShopNumber
	h.Exec(`update templates set opens_at = date_trunc('second', now() - interval '1 hour') where id = $1`, early.ID)
	h.endpoint()
	h.Exec(`update templates set opens_at = date_trunc('second', now()) where id = $1`, late.ID)
	h.Exec(`update hook_endpoints set created_at = now() - interval '1 minute'`)
	for range 3 {
		if _, err := h.events.Opened(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.Number(`select count(*) from hook_events where type = 'drop.opened' and subject = $1`, hook.Drop(late.ID)); n != 1 || h.Number(`select count(*) from hook_events`) != 1 {
		t.Errorf("told %d times", n)
	}
}

// TestEarningsAreToldOnce: one day after its end a drop's closing figures are told, once, also by
// several workers at once and after a crash between two of them.
func TestEarningsAreToldOnce(t *testing.T) {
	h := newHooked(t)
	ended := map[int64]time.Duration{}
	for _, ago := range []time.Duration{23 * time.Hour, 25 * time.Hour, 47 * time.Hour, 49 * time.Hour} {
		d := h.Published(2 * time.Hour)
		h.shop, ended[d.ID] = d.ShopNumber, ago
		h.Exec(`update templates set state = 'closed', ended_at = clock_timestamp() - $2::interval where id = $1`, d.ID, ago)
		h.Exec(`insert into sale_hours (template_id, hour, refund, orders, ordered, discount) values ($1, now(), false, 5, 50000, 4000), ($1, now(), true, 1, 9000, 1000),
			($1, now() - interval '1 hour', false, 2, 10000, 500)`, d.ID)
		h.Exec(`insert into sms_drop_costs (template_id, hour, currency, parts, micros) values ($1, now(), 'CNY', 3, 135000), ($1, now() - interval '1 hour', 'CNY', 1, 45000),
			($1, now(), 'EUR', 1, 70000)`, d.ID)
	}
	h.endpoint()
	h.Exec(`update hook_endpoints set created_at = now() - interval '3 days'`)
	for _, err := range pgtest.Together(3, func(int) error {
		for range 3 {
			if _, err := h.events.Earned(context.Background(), 1); err != nil {
				return err
			}
		}
		return nil
	}) {
		h.Must(err)
	}
	for id, ago := range ended {
		want := int64(0)
		if ago > 24*time.Hour && ago < 48*time.Hour {
			want = 1
		}
		if n := h.Number(`select count(*) from hook_events where type = 'drop.earned' and subject = $1`, hook.Drop(id)); n != want {
			t.Errorf("a drop that ended %v ago is told %d times", ago, n)
		}
	}
	if n := h.Number(`select count(*) from hook_events v, lateral (select v.payload::jsonb -> 'data' as d) p where (d ->> 'orders')::int = 6
		and (d ->> 'ordered')::int = 51000 and (d ->> 'discount')::int = 3500 and (d ->> 'revenue')::int = 47500 and (d ->> 'refunds')::int = 1 and (d ->> 'refunded')::int = 8000 and d ->> 'currency' = 'CNY'
		and d -> 'sms' = '[{"currency": "CNY", "parts": 4, "cost_micros": 180000}, {"currency": "EUR", "parts": 1, "cost_micros": 70000}]'`); n != 2 {
		t.Errorf("%d events have the figures", n)
	}
}
