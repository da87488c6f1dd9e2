package work_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
)

var keepCoupons = workdb.Retention{Coupons: 10 * pgtest.Day}

// sold makes a drop that ended that many days ago. n users had a coupon each, one coupon was
// returned to stock, and one claim was refused.
func (w *fixture) sold(n int64, days float64) int64 {
	w.Helper()
	d := w.Published(2 * time.Hour)
	w.Exec(`update templates set state = 'closed', stock = $2 * 2, issued = $2 - 1, returned = 1, opens_at = date_trunc('second', now()) - interval '90 days',
		closes_at = now() - $3 * interval '1 day' - interval '48 hours', ended_at = now() - $3 * interval '1 day' - interval '48 hours', valid_hours = 48 where id = $1`, d.ID, n, days)
	w.Fill("coupons", fmt.Sprintf("generate_series(1, %d) u", n), pgtest.Row{"template_id": d.ID, "user_id": pgtest.SQL("u"), "claim_id": pgtest.SQL("u"),
		"state": pgtest.SQL("case when u = 1 then 'revoked' when u % 2 = 0 then 'used' else 'expired' end"), "returned": pgtest.SQL("u = 1"),
		"issued_at": pgtest.SQL("now() - interval '60 days'"), "expires_at": pgtest.SQL("now() - interval '20 days'")})
	w.Exec(`insert into claim_counts select $1, u, 1 from generate_series(1, $2::bigint) u`, d.ID, n)
	w.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - $3 * interval '1 day' - interval '50 hours', $2)`, d.ID, n, days)
	w.Exec(`insert into claim_results (claim_id, template_id, user_id, origin, origin_key, reason) values ($1 + 1000000, $1, 1, 'claim', '', 'limit_reached')`, d.ID)
	w.Exec(`insert into coupon_tallies (template_id, used, expired, revoked, discounted) values ($1, $2 / 2, $2 / 2 - 1, 1, 500)`, d.ID, n)
	return d.ID
}

func (w *fixture) soldRows(id int64) int64 {
	w.Helper()
	return w.Number(`select (select count(*) from coupons where template_id = $1) + (select count(*) from claim_counts where template_id = $1)
		+ (select count(*) from claim_seconds where template_id = $1) + (select count(*) from claim_results where template_id = $1)`, id)
}

// wantBooks checks that the stock adds up, and that the totals have not changed.
func (w *fixture) wantBooks(id, n, removed int64) {
	w.Helper()
	l, err := w.Ledgers.Ledger(w.Context(), id)
	if want := (claim.Ledger{TemplateID: id, Total: 2 * n, OnSale: n + 1, Issued: n - 1, Returned: 1, PerUser: n}); err != nil || l != want {
		w.Errorf("ledger %+v, %v, want %+v", l, err, want)
	}
	y, err := w.Tallies.Tally(w.Context(), id)
	if want := (coupon.Tally{Issued: n, Used: n / 2, Expired: n/2 - 1, Revoked: 1, Returned: 1, Discounted: 500, Removed: removed}); err != nil || y != want {
		w.Errorf("tally %+v, %v, want %+v", y, err, want)
	}
}

func TestCouponsOfDropsThatAreOverAreRemoved(t *testing.T) {
	w := newFixture(t)
	const n = 6000 // more than a chunk
	old, recent := w.sold(n, 10.1), w.sold(10, 9.9)
	w.wantBooks(old, n, 0)
	for _, id := range []int64{old, recent} {
		w.Exec(`insert into draw_entries (template_id, user_id, ticket, salt, entered_at) values ($1, 1, gen_random_uuid(), gen_random_uuid(), now())`, id)
		w.Exec(`insert into draw_growth (template_id, minute, shard, delta) values ($1, date_trunc('minute', now()), 0, 1)`, id)
		w.Exec(`insert into draw_chunks (template_id, chunk, rows) values ($1, 0, '\x00')`, id)
	}
	removed, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keepCoupons, 0)
	if w.Must(err); removed != n+4 { // coupons, one second, one refused claim, an entry of a draw and its minute
		t.Errorf("%d removed, want %d", removed, n+4)
	}
	if entries, lists := w.Number(`select count(*) from draw_entries where template_id = $1`, old), w.Number(`select count(*) from draw_chunks`); entries != 0 || lists != 2 {
		t.Errorf("%d entries of the old draw are left, and %d sealed lists of 2", entries, lists)
	}
	if got := w.soldRows(old); got != 0 {
		t.Errorf("%d rows are left of the old drop", got)
	}
	if got := w.soldRows(recent); got != 22 {
		t.Errorf("%d rows are left of the recent drop, want 22", got)
	}
	w.wantBooks(old, n, n)
	w.wantBooks(recent, 10, 0)
	if removed, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keepCoupons, 0); err != nil || removed != 0 {
		t.Errorf("again: %d removed, %v", removed, err)
	}
}

// TestCouponsAreKept: of a drop that is not over in some respect nothing is removed.
func TestCouponsAreKept(t *testing.T) {
	for name, change := range map[string]string{
		"a coupon was given later":      `insert into claim_seconds values ({id}, date_trunc('second', now()) - interval '12 days' + interval '1 minute', 1)`,
		"valid for longer":              `update templates set valid_hours = 0, valid_until = now() - interval '9 days' where id = {id}`,
		"still open":                    `update templates set state = 'published' where id = {id}`,
		"closed by staff lately":        `update templates set ended_at = now() where id = {id}`,
		"a coupon is locked":            `update coupons set state = 'locked' where template_id = {id} and user_id = 1`,
		"its gate stands":               `insert into gates (template_id, shards, epoch, state, reason, lease_until) values ({id}, 1, 1, 'standing', 'new', now())`,
		"the sweep of expiry is behind": `update coupons set state = 'unused' where template_id = {id} and user_id = 2`,
		"a campaign for its users runs": campaignAbout("running", `'{"kind":"holds_template_id","id":"{id}"}'`, "null"),
		"a campaign grants it":          campaignAbout("scheduled", `'{"kind":"all"}'`, "{id}"),
		"a campaign's results are due":  campaignAbout("finished", `'{"kind":"reserved_template_id","id":"{id}"}'`, "null"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			id := w.sold(6, 10.1)
			w.Exec(withID(change, id))
			before := w.soldRows(id)
			if removed, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keepCoupons, 0); err != nil || removed != 0 || w.soldRows(id) != before {
				t.Errorf("%d removed, %v", removed, err)
			}
		})
	}
}

func campaignAbout(state, audience, grant string) string {
	return fmt.Sprintf(`insert into campaigns (name, channel, content, audience, grant_template_id, starts_at, ends_at, started_at, state, creator, created_by)
		values ('c', 0, '{}', %s, %s, now() - interval '2 days', now() - interval '1 day', now() - interval '2 days', '%s', 'x', 'x')`, audience, grant, state)
}

// TestCouponsAreRemovedOnce: several concurrent cleanings remove each coupon once. A coupon that
// is given away afterwards is accounted for.
func TestCouponsAreRemovedOnce(t *testing.T) {
	w := newFixture(t)
	const n = 12_000
	id := w.sold(n, 10.1)
	_, release := w.Hold(`select from templates where id = $1 for update`, id)
	go func() {
		w.Blocked(3)
		release()
	}()
	for _, err := range pgtest.Together(3, func(int) error { _, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keepCoupons, 0); return err }) {
		w.Must(err)
	}
	w.wantBooks(id, n, n)
	w.Insert("coupons", pgtest.Row{"template_id": id, "user_id": 7, "origin": "grant"})
	w.Exec(`insert into claim_counts values ($1, 7, 1)`, id)
	w.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()), 1)`, id)
	w.Exec(`update templates set issued = issued + 1 where id = $1`, id)
	for range 2 {
		selling, err := w.Ledgers.Selling(t.Context(), time.Hour, 10, 10)
		if w.Must(err); len(selling) != 1 || selling[0].Difference() != 0 || selling[0].Issued != n {
			t.Errorf("given away after the removal: %+v", selling)
		}
	}
	if removed, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), keepCoupons, 0); err != nil || removed != 0 {
		t.Errorf("%d removed, %v", removed, err)
	}
}

func withID(sql string, id int64) string { return strings.ReplaceAll(sql, "{id}", fmt.Sprint(id)) }
