package postgres_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

// fillPast stores thousands of drops that ended 49 days ago, with all rows that housekeeping may
// have to look at, and some recent rows.
func fillPast(w *pgtest.Fixture) {
	w.Helper()
	w.Shops(10)
	w.Fill("templates", "generate_series(1, 1000) n", pgtest.Row{"shop_number": 10, "state": "closed", "stock": 10, "issued": 2, "per_user_limit": 5,
		"opens_at": pgtest.SQL("date_trunc('second', now()) - interval '50 days'"), "closes_at": pgtest.SQL("now() - interval '49 days'"), "valid_hours": 24})
	w.Exec(`insert into slots (template_id, slot, opens_at, due_at, state) select id, n, opens_at, opens_at - n * interval '5 minutes', 'finished' from templates, generate_series(1, 2) n`)
	w.Exec(`insert into slot_results (slot_id, channel, reserved, sent) select id, 0, 1, 1 from slots`)
	w.Exec(`insert into bookings select id, 1, 0, 1 from templates`)
	w.Exec(`insert into reservations (template_id, user_id, slots) select id, id, 1 from templates`)
	w.Exec(`insert into former_reservations (template_id, user_id) select id, id from templates`)
	w.Exec(`insert into booking_growth select id, date_trunc('minute', now()), 1 from templates`)
	w.Fill("coupons", "templates t", pgtest.Row{"template_id": pgtest.SQL("t.id"), "user_id": pgtest.SQL("t.id"), "claim_id": pgtest.SQL("t.id"), "state": "used",
		"issued_at": pgtest.SQL("now() - interval '49 days'"), "expires_at": pgtest.SQL("now() - interval '48 days'")})
	w.Exec(`insert into claim_counts select id, id, 1 from templates`)
	w.Exec(`insert into claim_seconds select id, date_trunc('second', now()) - interval '49 days', 1 from templates`)
	w.Exec(`insert into coupon_tallies (template_id, used, changed_at) select id, 1, now() - interval '40 days' from templates`)
	w.Exec(`insert into stock_counts (template_id, coupons, counted_to, seen_to, seen_xact, checked_to) select id, 1, 1, 1, '1', 1 from templates`)
	w.Exec(`insert into sale_hours (template_id, hour, refund, orders) select id, now() - interval '49 days', false, 1 from templates`)
	w.Fill("campaigns", "generate_series(1, 1000)", pgtest.Row{"shop_number": 10, "state": "finished", "archived": true, "settled_at": pgtest.SQL("now()"),
		"starts_at": pgtest.SQL("now() - interval '30 days'"), "ends_at": pgtest.SQL("now() - interval '29 days'")})
	w.Exec(`insert into campaign_openings (campaign_id, user_id, variant, opened_at) select id, 1, 0, now() from campaigns`)
	w.Exec(`insert into jobs (kind, title, needs, state, created_by, actor) values ('coupons.grant', 'x', 'x', 'done', 'x', '{}')`)
	w.Exec(`insert into grant_rows (sheet_id, line) select 1, n from generate_series(1, 5000) n`)
	w.Fill("batches", "generate_series(1, 5000) n", pgtest.Row{"owner_id": pgtest.SQL("n"), "template_id": 0, "state": "done", "worthless_after": pgtest.SQL("now() - interval '1 day'")})
}

// TestHousekeepingWithNothingToDoReadsNothing: however many past drops, campaigns, batches,
// coupons and lists there are, a cleaning after the cleaning that removed their rows reads next
// to nothing, and so do the counts that compare figures with the rows.
func TestHousekeepingWithNothingToDoReadsNothing(t *testing.T) {
	w := pgtest.New(t)
	fillPast(w)
	keep := workdb.Retention{Delivery: 10 * pgtest.Day, Audit: 10 * pgtest.Day, Coupons: 400 * pgtest.Day, Operations: 10 * pgtest.Day, Idempotency: pgtest.Day,
		Events: 7 * pgtest.Day, Jobs: 30 * pgtest.Day, Uploads: 7 * pgtest.Day, Hooks: 7 * pgtest.Day}
	if n, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keep, 0); err != nil || n < 1000*7 {
		t.Fatalf("%d removed, %v", n, err)
	}
	w.Exec(`vacuum analyze`)
	seen := &recorder{all: true}
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), Tracer: seen})
	w.Must(err)
	t.Cleanup(db.Close)
	ctx, tallies, counters := t.Context(), couponsdb.NewCouponTallies(db), dropsdb.NewCounters(db)
	for name, run := range map[string]func() error{
		"cleaning":             func() error { _, err := workdb.NewHousekeeping(db).Clean(ctx, keep, 0); return err },
		"tallies to recount":   func() error { _, err := tallies.ToRecount(ctx, 100); return err },
		"impossible tallies":   func() error { _, err := tallies.Impossible(ctx, 100); return err },
		"sales to recount":     func() error { _, err := tallies.SalesToRecount(ctx, 100); return err },
		"impossible sales":     func() error { _, err := tallies.SalesImpossible(ctx, 100); return err },
		"selling":              func() error { _, err := couponsdb.NewLedgers(db).Selling(ctx, time.Hour, 10, 10); return err },
		"impossible bookings":  func() error { _, err := counters.Impossible(ctx, 100); return err },
		"finished slots":       func() error { _, err := dropsdb.NewSlots(db, nil).FinishSlots(ctx); return err },
		"progress of cleaning": func() error { _, err := workdb.NewHousekeeping(db).Steps(ctx); return err },
	} {
		seen.list = nil
		w.Must(run())
		for _, s := range seen.list {
			word, _, _ := strings.Cut(strings.TrimSpace(s.sql), " ")
			if word == "begin" || word == "commit" || word == "rollback" || word == "set" || strings.Contains(s.sql, "add_event_day") {
				continue
			}
			for table, rows := range readBy(t, w, s) {
				// Tables that are small at all times are read whole; "" are no rows of a table.
				if rows > 100 && table != "" {
					t.Errorf("%s reads %v rows of %s:\n%s", name, rows, table, s.sql)
				}
			}
		}
	}
}
