package pgtest

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	"dropbell/domain/template"
)

// A Rush is a drop whose coupons are being claimed while a transaction keeps an old snapshot
// open, so that PostgreSQL keeps every version of the drop's row.
type Rush struct {
	template.Template
	// DB has one connection, whose statements are counted.
	DB *postgres.DB
	// Pages is the size of the table of drops in pages. Nearly all pages hold versions of the
	// drop's row, one of which is visible.
	Pages int64

	w *Fixture
}

// Rush returns a drop from whose stock that many groups of claims have taken a coupon each since
// the snapshot.
func (w *Fixture) Rush(groups int) *Rush {
	w.Helper()
	r := &Rush{Template: w.Published(2 * time.Hour), w: w}
	w.Exec(`alter table templates set (autovacuum_enabled = off)`)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', stock = 1000000 where id = $1`, r.ID)
	w.Exec(`vacuum analyze templates`)
	old, err := w.SQL.BeginTx(w.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.Must(err)
	w.Cleanup(func() { _ = old.Rollback(context.Background()) })
	_, err = old.Exec(w.Context(), `select from shops limit 1`)
	w.Must(err)
	w.Exec(fmt.Sprintf(`do $$ begin for i in 1..%d loop update templates set issued = issued + 1 where id = %d; end loop; end $$`, groups, r.ID))
	if r.Pages = w.Number(`select pg_relation_size('templates') / 8192`); r.Pages < int64(groups/50) {
		w.Fatalf("%d versions lie on %d pages", groups, r.Pages)
	}
	r.DB, err = postgres.Open(w.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), MaxConns: 1})
	w.Must(err)
	w.Cleanup(r.DB.Close)
	return r
}

// Visits fails the test if read visits pages of the table of drops more than most times. It
// calls read several times: after five executions PostgreSQL may keep a plan.
func (r *Rush) Visits(what string, most int64, read func(context.Context) error) {
	r.w.Helper()
	for range 7 {
		before := r.visited()
		if err := read(r.w.Context()); err != nil {
			r.w.Errorf("%s: %v", what, err)
		}
		if n := r.visited() - before; n > most {
			r.w.Errorf("%s: %d pages of drops are visited, at most %d; the versions lie on %d", what, n, most, r.Pages)
			return
		}
	}
}

func (r *Rush) visited() (n int64) {
	r.w.Helper()
	_, err := r.DB.Pool.Exec(r.w.Context(), `select pg_stat_force_next_flush()`)
	r.w.Must(err)
	r.w.Must(r.DB.Pool.QueryRow(r.w.Context(), `select heap_blks_hit + heap_blks_read from pg_statio_user_tables where relname = 'templates'`).Scan(&n))
	return n
}
