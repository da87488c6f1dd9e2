package audience_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/timeline"
)

// lived fills the life of user 7: a reminder that was sent and opened, a coupon that was used and
// refunded, one that staff gave and revoked, an order, an opt-out and a new address.
func (w *fixture) lived() {
	w.Helper()
	t := w.Published(90 * time.Minute)
	w.Reserve(t, 7, pgtest.Reminders(delivery.Email, 60)...)
	w.Reserve(t, 8, pgtest.Reminders(delivery.Email, 60)...)
	w.CutSlot(t, 12, 10)
	w.Exec(`update reservations set created_at = now() - interval '3 hours'`)
	w.Exec(`update batches set sent = due, sent_count = due_count, state = 'done', due_at = now() - interval '100 minutes'`)
	w.Exec(`insert into drop_openings values ($1, 7, 12, 1, now() - interval '95 minutes'), ($1, 8, 12, 1, now())`, t.ID)
	w.Exec(`insert into users (id, email, phone) values (7, 'a@example.com', ''), (8, 'b@example.com', '')`)
	w.Exec(`insert into coupons (id, template_id, user_id, claim_id, origin, issued_at, expires_at) overriding system value values
		(71, $1, 7, 71, 'claim', now() - interval '90 minutes', now()), (72, $1, 7, 72, 'grant', now() - interval '30 minutes', now()), (81, $1, 8, 81, 'claim', now(), now())`, t.ID)
	w.Exec(`insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, discount, actor, at) values
		(71, 'A-1', 'lock', 'done', 'unused', 'locked', 18000, 3000, 'key:1', now() - interval '60 minutes'),
		(71, 'A-1', 'lock', 'used', 'used', 'used', 0, 0, 'key:1', now() - interval '60 minutes'),
		(71, 'A-1', 'confirm', 'done', 'locked', 'used', 18000, 3000, 'key:1', now() - interval '59 minutes'),
		(71, 'A-1', 'refund', 'done', 'used', 'unused', 18000, 3000, 'staff:1 Ada', now() - interval '58 minutes'),
		(72, '', 'revoke', 'done', 'unused', 'revoked', 0, 0, 'staff:1 Ada', now() - interval '20 minutes')`)
	w.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, refunded, ordered_at) values
		(10, 'A-1', 7, 'CNY', 18000, 0, now() - interval '59 minutes'), (10, 'B-2', 7, 'CNY', 5000, 1000, now() - interval '40 minutes')`)
	w.Exec(`insert into coupon_orders (order_id, user_id, shop_number, currency, state) values ('A-1', 7, 10, 'CNY', 'refunded')`)
	w.Exec(`insert into coupon_order_refunds (order_id, refund_id, pay_back, clawback, lines, quantities, coupons, at) values
		('A-1', 'R-1', 2533, 0, '{tea}', '{1}', '{}', now() - interval '58 minutes 30 seconds'), ('A-1', 'R-2', 12467, 0, '{cup}', '{1}', '{71}', now() - interval '58 minutes')`)
	w.Exec(`update users set opt_outs = 2 where id = 7`)
	w.Exec(`update users set opt_outs = 4, email = 'new@example.com', phone = '+8613800138000', name = 'Ada' where id = 7`)
	w.Exec(`update users set name = 'Ada Q' where id = 7`)
}

// Everything that happened to a user is listed once, newest first, whatever the size of the pages;
// groups select kinds, and members of other shops see only what belongs to no shop.
func TestTimeline(t *testing.T) {
	w := newFixture(t)
	w.lived()
	s := &timeline.Service{Store: audiencedb.NewUsers(w.DB), Batches: &delivery.Ledger{Store: w.Ledger}}
	list := func(by staff.Actor, group timeline.Group, size int) string {
		t.Helper()
		var kinds []string
		q := timeline.Query{UserID: 7, Group: group, Limit: size}
		for range 100 {
			p, err := s.Page(t.Context(), by, q)
			w.Must(err)
			for _, l := range p.Lines {
				kinds = append(kinds, string(l.Kind))
				if l.Kind == timeline.Used && (l.OrderID != "A-1" || l.Amount != 18000 || l.Discount != 3000 || l.CouponID != 71 || l.Drop == "") {
					t.Errorf("%+v", l)
				}
				if l.Kind == timeline.PartRefunded && (l.OrderID != "A-1" || l.Refunded != 2533 || l.Currency != "CNY") {
					t.Errorf("%+v", l)
				}
				if l.Kind == timeline.Message && (l.Outcome != delivery.Sent || l.Slot != 12 || l.Channels != delivery.Email.Bit()) {
					t.Errorf("%+v", l)
				}
				if l.Kind == timeline.OptedIn && l.Channels != 2 {
					t.Errorf("%+v", l)
				}
			}
			if q.After = timeline.ParseCursor(p.Next.String()); q.After.IsZero() {
				break
			}
		}
		return strings.Join(kinds, " ")
	}
	want := "phone_changed email_changed opted_in opted_out opted_out revoked given ordered refunded part_refunded used locked claimed opened message reserved"
	for _, size := range []int{1, 2, 7, 100} {
		if got := list(pgtest.Actor, "", size); got != want {
			t.Errorf("pages of %d:\n got %s\nwant %s", size, got, want)
		}
	}
	for group, want := range map[timeline.Group]string{timeline.Reservations: "reserved", timeline.Messages: "message", timeline.Openings: "opened",
		timeline.Coupons: "revoked given refunded used locked claimed", timeline.Orders: "ordered refunded part_refunded used",
		timeline.Choices: "phone_changed email_changed opted_in opted_out opted_out"} {
		if got := list(pgtest.Actor, group, 2); got != want {
			t.Errorf("%s: %s, want %s", group, got, want)
		}
	}
	elsewhere := staff.Actor{Label: "staff:2", Role: staff.Viewer, Shops: []int64{11}}
	if got, want := list(elsewhere, "", 100), "phone_changed email_changed opted_in opted_out opted_out"; got != want {
		t.Errorf("of another shop: %s", got)
	}
	w.Must(audiencedb.NewUsers(w.DB).Erase(t.Context(), 7, staff.Entry{Actor: pgtest.Actor, Action: "user.erase", ObjectKind: "user", ObjectID: "7"}))
	if n := w.Number(`select count(*) from user_changes where user_id = 7`); n != 0 {
		t.Errorf("%d changes are left after the erasure", n)
	}
}

// Every large table is read by an index of the user or of the user's rows, never as a whole.
func TestTimelineReadsIndexes(t *testing.T) {
	w := newFixture(t)
	w.lived()
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `set local enable_seqscan = off`)
	w.Must(err)
	rows, err := tx.Query(t.Context(), `explain `+audiencedb.TimelineSQL, pgx.NamedArgs{"user": 7, "part": "", "shops": []int64{}, "at": time.Now(), "rank": 10, "id": 1, "limit": 26})
	w.Must(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	text := strings.Join(plan, "\n")
	for _, index := range []string{"reservations_user", "former_reservations_pkey", "drop_openings_pkey", "campaign_openings_pkey", "coupons_user",
		"coupon_operations_", "orders_user", "coupon_orders_user", "coupon_order_refunds_pkey", "user_changes_user"} {
		if !strings.Contains(text, index) {
			t.Errorf("%s is not used", index)
		}
	}
	if bad := slices.IndexFunc(plan, func(l string) bool {
		return strings.Contains(l, "Seq Scan") && !strings.Contains(l, "on campaigns") && !strings.Contains(l, "on templates")
	}); bad >= 0 {
		t.Error(fmt.Sprint(plan[bad], "\n", text))
	}
}
