package past_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	"dropbell/app"
	"dropbell/lab/tools/dev/demo"
	"dropbell/lab/tools/dev/demo/past"
	"dropbell/musttest"
)

// fixture is a database with the demo's users and its admin.
type fixture struct {
	*testing.T
	url  string
	conn *pgx.Conn
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, url: localstack.Database(t)}
	var err error
	if f.conn, err = pgx.Connect(t.Context(), f.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.conn.Close(context.WithoutCancel(t.Context())) })
	f.exec(`insert into staff (email, name, role, password_hash) values ('demo@dropbell.test', 'Demo', 'admin', 'x')`)
	f.exec(`insert into users (id, name, email, phone, locale, timezone, opt_outs)
		select n, 'Customer ' || n, 'user' || n || '@example.test', '+1201555' || n, case when n % 3 = 0 then 'en' else 'zh-CN' end, 'Asia/Shanghai', case when n % 37 = 0 then 4 else 0 end
		from generate_series($1::int, $2::int) n`, demo.FirstUser, demo.LastUser)
	return f
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.conn.Exec(f.Context(), sql, args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

// make makes the history, as a start of `up` does.
func (f *fixture) make(ctx context.Context) error {
	steps, err := demo.OpenSteps(ctx, f.url)
	if err != nil {
		return err
	}
	defer steps.Close(context.WithoutCancel(ctx))
	at, ok, err := steps.Begun(ctx)
	if err == nil && !ok {
		at, err = steps.Begin(ctx)
	}
	if err != nil {
		return err
	}
	return past.Make(ctx, steps, at, past.Config{DatabaseURL: f.url, ProvidersKeys: []string{"a key of at least thirty-two bytes"}, First: demo.FirstUser, Last: demo.LastUser})
}

// rows returns the number of rows of each table.
func (f *fixture) rows() map[string]int64 {
	f.Helper()
	rows, err := f.conn.Query(f.Context(), `select c.relname, (xpath('/row/n/text()', query_to_xml('select count(*) as n from ' || c.oid::regclass, false, true, '')))[1]::text::bigint
		from pg_class c where c.relkind in ('r', 'p') and c.relnamespace in ('public'::regnamespace, 'demo'::regnamespace)`)
	if err != nil {
		f.Fatal(err)
	}
	all := map[string]int64{}
	var name string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { all[name] = n; return nil }); err != nil {
		f.Fatal(err)
	}
	return all
}

// TestBalances makes the history, lets the product's audits judge every drop and campaign, and
// makes it again.
func TestBalances(t *testing.T) {
	f := newFixture(t)
	began := time.Now()
	musttest.OK(t, f.make(t.Context()))
	t.Logf("made in %.1f s", time.Since(began).Seconds())
	f.audit()
	first := f.rows()
	musttest.OK(t, f.make(t.Context()))
	if diff := cmp.Diff(first, f.rows()); diff != "" {
		t.Errorf("a second start changed rows:\n%s", diff)
	}
	for table, least := range map[string]int64{"templates": 27, "campaigns": 3, "campaign_results": 8, "exceptions": 500, "dead_letter_groups": 2, "suppressions": 20,
		"alerts": 5, "providers": 1, "staff": 2, "shops": 2, "coupon_operations": 10000, "reservations": 19000, "slot_forecasts": 500, "orders": 3000} {
		if first[table] < least {
			t.Errorf("%d rows in %s, want at least %d", first[table], table, least)
		}
	}
}

// audit compares the stored figures with the rows.
func (f *fixture) audit() {
	f.Helper()
	db, err := postgres.Open(f.Context(), f.url, postgres.Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	stores := app.NewStores(db)
	for _, id := range f.ids(`select id from templates order by id`) {
		lines, err := stores.Boards.Balance(f.Context(), id)
		if err != nil || len(lines) != 60 {
			f.Fatalf("%d lines of the balance sheet of drop %d (%v)", len(lines), id, err)
		}
		for _, l := range lines {
			if l.Difference() != 0 {
				f.Errorf("drop %d, slot %d over %s is off: %+v", id, l.Slot.Slot, l.Channel, l)
			}
		}
		ledger, err := stores.StockLedgers.Ledger(f.Context(), id)
		if err != nil || ledger.Difference() != 0 {
			f.Errorf("stock of drop %d: %+v (%v)", id, ledger, err)
		}
		for _, figure := range stores.Figures() {
			if n, err := figure.Off(f.Context(), id); err != nil || n != 0 {
				f.Errorf("%s of drop %d are off by %d (%v)", figure.Name, id, n, err)
			}
		}
	}
	for _, id := range f.ids(`select id from campaigns order by id`) {
		b, err := stores.Campaigns.Balance(f.Context(), id)
		if err != nil || b.Difference() != 0 || b.Counted.Sent == 0 {
			f.Errorf("account of campaign %d: %+v (%v)", id, b, err)
		}
	}
	if lines := f.ids(`select b.template_id from (select template_id, sum(booked) as n from bookings group by 1) b
		join (select template_id, sum(delta) as n from booking_growth group by 1) g using (template_id)
		join (select template_id, sum(bit_count(slots::bit(60))) as n from reservations group by 1) r using (template_id) where b.n <> g.n or b.n <> r.n`); len(lines) > 0 {
		f.Errorf("bookings, growth and reservations differ for the drops %v", lines)
	}
	if early := f.ids(`select id from templates t where request_key like 'demo: %' and (select count(*) from orders o where o.shop_number = t.shop_number and o.ordered_at between t.opens_at and now() and o.refunded < o.amount) < 50`); len(early) > 0 {
		f.Errorf("there are no orders without coupons beside the drops %v", early)
	}
	if rash := f.ids(`select c.id from coupons c join audit p on p.object_id = c.template_id::text and p.action = 'template.pause' join audit r on r.object_id = p.object_id and r.action = 'template.resume'
		where c.issued_at >= p.at and c.issued_at < r.at`); len(rash) > 0 || len(f.ids(`select id from audit where action in ('template.pause', 'template.resume')`)) != 2 {
		f.Errorf("%d coupons were claimed while a drop was paused, or none was", len(rash))
	}
	if late := f.ids(`select id from coupons where issued_at > now() or used_at > now() or state = 'locked' or state = 'unused' and expires_at < now() - interval '1 minute'`); len(late) > 0 {
		f.Errorf("%d coupons are in a state that a worker would change, or of the future", len(late))
	}
}

func (f *fixture) ids(sql string) []int64 {
	f.Helper()
	rows, err := f.conn.Query(f.Context(), sql)
	if err != nil {
		f.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		f.Fatal(err)
	}
	return ids
}

// TestKilledStartIsCompleted ends a start after some of its drops, and compares the completed
// history with a history that was made at once.
func TestKilledStartIsCompleted(t *testing.T) {
	f := newFixture(t)
	f.exec(`create function stop() returns trigger language plpgsql as $$ begin if new.name like '%Osmanthus%' then raise exception 'killed here'; end if; return new; end $$`)
	f.exec(`create trigger stop before insert on templates for each row execute function stop()`)
	if err := f.make(t.Context()); err == nil || !strings.Contains(err.Error(), "killed here") {
		t.Fatalf("the first start: %v", err)
	}
	if n := f.rows()["templates"]; n != 17 {
		t.Fatalf("%d drops before the end", n)
	}
	f.exec(`drop trigger stop on templates`)
	musttest.OK(t, f.make(t.Context()))
	f.audit()
	whole := newFixture(t)
	musttest.OK(t, whole.make(t.Context()))
	const sums = `select t.request_key || ' ' || t.issued || ' ' || coalesce(y.used, 0) || ' ' || coalesce(y.discounted, 0) || ' ' || (select count(*) from exceptions e join batches b on b.id = e.batch_id
		where b.template_id = t.id) from templates t left join coupon_tallies y on y.template_id = t.id where t.request_key like 'demo: %' order by t.opens_at`
	if diff := cmp.Diff(whole.texts(sums), f.texts(sums)); diff != "" {
		t.Errorf("a completed start differs from a whole one:\n%s", diff)
	}
}

func (f *fixture) texts(sql string) []string {
	f.Helper()
	rows, err := f.conn.Query(f.Context(), sql)
	list, collected := pgx.CollectRows(rows, pgx.RowTo[string])
	if err := errors.Join(err, collected); err != nil {
		f.Fatal(err)
	}
	return list
}
