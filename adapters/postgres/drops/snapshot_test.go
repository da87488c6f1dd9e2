package drops_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
)

// TestARushBesideAnOpenSnapshot: each group of claims counts in the row of its drop, and
// while a transaction keeps an old snapshot open PostgreSQL keeps all of its versions.
// Pages of the console find the newest one without a visit to each of them, and a list
// of open and sold-out drops visits them once.
func TestARushBesideAnOpenSnapshot(t *testing.T) {
	const groups = 4000
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Exec(`alter table templates set (autovacuum_enabled = off)`)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', stock = 1000000 where id = $1`, tpl.ID)
	w.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) select $1, n, n, 'claim', now(), now() + interval '1 day' from generate_series(1, 20) n`, tpl.ID)
	w.Exec(`vacuum analyze templates`)
	old, err := w.SQL.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.Must(err)
	defer func() { _ = old.Rollback(context.Background()) }()
	_, err = old.Exec(t.Context(), `select from shops limit 1`)
	w.Must(err)
	w.Exec(fmt.Sprintf(`do $$ begin for i in 1..%d loop update templates set issued = issued + 1 where id = %d; end loop; end $$`, groups, tpl.ID))
	pages := w.Number(`select pg_relation_size('templates') / 8192`)
	if pages < groups/50 {
		t.Fatalf("%d versions lie on %d pages", groups, pages)
	}

	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), MaxConns: 1})
	w.Must(err)
	t.Cleanup(db.Close)
	visited := func() (n int64) { // pages of the table, each time one is visited
		_, err := db.Pool.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		w.Must(err)
		w.Must(db.Pool.QueryRow(t.Context(), `select heap_blks_hit + heap_blks_read from pg_statio_user_tables where relname = 'templates'`).Scan(&n))
		return n
	}
	templates, boards, cockpits := dropsdb.NewTemplates(db), dropsdb.NewBoards(db), dropsdb.NewCockpits(db)
	for _, c := range []struct {
		what string
		most int64
		read func(context.Context) error
	}{
		{"the template", 5, func(ctx context.Context) error {
			now, err := templates.Template(ctx, tpl.ID)
			if err == nil && now.Issued != groups {
				err = fmt.Errorf("%d coupons are issued", now.Issued)
			}
			return err
		}},
		{"its board", 10, func(ctx context.Context) error {
			_, err := boards.Board(ctx, tpl.ID)
			return err
		}},
		{"its cockpit", 10, func(ctx context.Context) error {
			_, err := cockpits.Cockpit(ctx, tpl.ID, nil)
			return err
		}},
		{"what became of its coupons", 5, func(ctx context.Context) error {
			tally, err := couponsdb.NewCouponTallies(db).Tally(ctx, tpl.ID)
			if err == nil && tally.Issued != groups {
				err = fmt.Errorf("%d coupons are issued", tally.Issued)
			}
			return err
		}},
		{"its coupons", 5 * 20, func(ctx context.Context) error {
			list, err := couponsdb.NewCouponSteps(db).Listed(ctx, coupon.Query{TemplateID: tpl.ID, Limit: 50})
			if err == nil && len(list) != 20 {
				err = fmt.Errorf("%d coupons are listed", len(list))
			}
			return err
		}},
		{"open and sold-out drops", pages + pages/2, func(ctx context.Context) error {
			list, err := templates.Templates(ctx, template.Query{States: []template.State{template.Open, template.SoldOut}, Limit: 50})
			if err == nil && (len(list) != 1 || list[0].Issued != groups) {
				err = fmt.Errorf("%d drops", len(list))
			}
			return err
		}},
	} {
		for range 7 { // after five a plan is kept
			before := visited()
			w.Must(c.read(t.Context()))
			if n := visited() - before; n > c.most {
				t.Errorf("%s: %d pages of templates are visited, at most %d; the versions lie on %d", c.what, n, c.most, pages)
			}
		}
	}
}
