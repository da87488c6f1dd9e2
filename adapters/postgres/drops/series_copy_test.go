package drops_test

import (
	"context"
	"errors"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestCopyInChunks copies to many users while a user of one chunk reserves, after a copy that was given up, and with several
// workers at once. Every user has the reminders once, and the sums agree with the rows.
func TestCopyInChunks(t *testing.T) {
	const n, rival, gone = 60_000, 30_000, 55_000
	g := newDaily(t, func(s *series.Spec) { s.Publishes = false })
	g.sweep()
	g.Exec(`insert into series_reservations (series_id, user_id, slots) select $1, id, 2 from generate_series(1, $2::bigint) id order by hashint8(id)`, g.series.ID, n)
	d := g.Do(g.drops()[0], template.Publishing)
	g.Exec(`insert into former_reservations (user_id, template_id) values ($1, $2)`, gone, d.ID)

	// A rival of which the copy does not know the end: it waits, and then skips the user.
	tx, err := g.SQL.Begin(t.Context())
	g.Must(err)
	_, err = tx.Exec(t.Context(), `insert into reservations (template_id, user_id, slots) values ($1, $2, 4)`, d.ID, rival)
	g.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := g.store.Copy(ctx, series.Copy{SeriesID: g.series.ID, TemplateID: d.ID})
		given <- err
	}()
	g.Blocked(1)
	if n, err := g.store.Copy(t.Context(), series.Copy{SeriesID: g.series.ID, TemplateID: d.ID}); n != 0 || err != nil {
		t.Errorf("a second worker copied to %d users: %v", n, err)
	}
	cancel() // as a process that dies in the middle
	if err := <-given; err == nil {
		t.Error("the copy was not given up")
	}
	g.Must(tx.Commit(t.Context()))
	if n := g.Number(`select count(*) from series_drops where template_id = $1 and copied_at is null`, d.ID); n != 1 {
		t.Error("a copy that was given up is noted as done")
	}
	g.stand(rival+1, pgtest.Reminders(delivery.Email, 5)...)
	for _, err := range pgtest.Together(3, func(int) error { return g.keeper.Sweep(t.Context()) }) {
		g.Must(err)
	}
	g.sweep()

	other := reminder.BitmapOf(pgtest.Reminders(delivery.Email, 5)...).Int64()
	for id, want := range map[user.ID]int64{1: 2, rival: 4, rival + 1: other, gone: 0, n: 2} {
		if got := g.bits(d, id); got != want {
			t.Errorf("user %d has %d, want %d", id, got, want)
		}
	}
	if got := g.Number(`select count(*) from reservations where template_id = $1`, d.ID); got != n-1 {
		t.Errorf("%d reservations", got)
	}
	if got := g.Number(`select reminded from series_drops where template_id = $1 and copied_at is not null`, d.ID); got != n-3 { // the copy skips three users
		t.Errorf("copied to %d users", got)
	}
	g.RelayCounts()
	if got := g.Number(`select coalesce(sum(booked), 0) from bookings where template_id = $1`, d.ID); got != n-2 { // of the rival nothing was announced
		t.Errorf("%d booked", got)
	}
}

// TestCopyBesideReservations copies while users of all chunks reserve the drop, which makes COPY fail.
func TestCopyBesideReservations(t *testing.T) {
	const n, rivals = 30_000, 40
	g := newDaily(t, func(s *series.Spec) { s.Publishes = false })
	g.sweep()
	g.Exec(`insert into series_reservations (series_id, user_id, slots) select $1, id, 2 from generate_series(1, $2::bigint) id`, g.series.ID, n)
	d := g.Do(g.drops()[0], template.Publishing)
	tx, err := g.SQL.Begin(t.Context())
	g.Must(err)
	_, err = tx.Exec(t.Context(), `insert into reservations (template_id, user_id, slots) select $1, i * 700, 4 from generate_series(1, $2::bigint) i`, d.ID, rivals)
	g.Must(err)
	copied := make(chan error, 1)
	go func() { copied <- g.keeper.Sweep(t.Context()) }()
	g.Blocked(2) // both chunks
	g.Must(tx.Commit(t.Context()))
	select {
	case err := <-copied:
		g.Must(err)
	case <-time.After(time.Minute):
		t.Fatal("the copy did not end")
	}
	if got := g.Number(`select count(*) filter (where slots = 2) * 1000000 + count(*) filter (where slots = 4) from reservations where template_id = $1`, d.ID); got != (n-rivals)*1_000_000+rivals {
		t.Errorf("copied to %d users beside %d rivals", got/1_000_000, got%1_000_000)
	}
}

// mortalSeries and mortalTemplates are the stores of a keeper whose process dies.
type mortalSeries struct {
	dropsdb.Series
	*pgtest.Death
}

func (m mortalSeries) Claim(ctx context.Context, lease time.Duration) (c series.Claim, found bool, err error) {
	err = m.Around(func() error { c, found, err = m.Series.Claim(ctx, lease); return err })
	return c, found, err
}

func (m mortalSeries) Plan(ctx context.Context, id int64, d series.Day) (o series.Occurrence, err error) {
	err = m.Around(func() error { o, err = m.Series.Plan(ctx, id, d); return err })
	return o, err
}

func (m mortalSeries) Note(ctx context.Context, o series.Occurrence) error {
	return m.Around(func() error { return m.Series.Note(ctx, o) })
}

func (m mortalSeries) Settle(ctx context.Context, c series.Claim, next time.Time) error {
	return m.Around(func() error { return m.Series.Settle(ctx, c, next) })
}

func (m mortalSeries) Copy(ctx context.Context, c series.Copy) (n int64, err error) {
	err = m.Around(func() error { n, err = m.Series.Copy(ctx, c); return err })
	return n, err
}

type mortalTemplates struct {
	template.Store
	*pgtest.Death
}

func (m mortalTemplates) Insert(ctx context.Context, c template.Change) (t template.Template, err error) {
	err = m.Around(func() error { t, err = m.Store.Insert(ctx, c); return err })
	return t, err
}

func (m mortalTemplates) Save(ctx context.Context, c template.Change) (t template.Template, err error) {
	err = m.Around(func() error { t, err = m.Store.Save(ctx, c); return err })
	return t, err
}

// TestSeriesOfWorkersThatDie keeps a series by workers of which each dies before or after one of the first writes that follow its claim, until nothing is left to do. At
// the end each day has one drop, published once, and each user has the reminders of each drop once.
func TestSeriesOfWorkersThatDie(t *testing.T) {
	g := newDaily(t, nil)
	for id := user.ID(1); id <= 3; id++ {
		g.stand(id, pgtest.Reminders(delivery.App, 10)...)
	}
	deaths := 0
	for ; ; deaths++ {
		d := &pgtest.Death{At: 3 + deaths%7}
		templates := *g.Service
		templates.Store = mortalTemplates{templates.Store, d}
		keeper := &series.Keeper{Store: mortalSeries{g.store, d}, Templates: &templates}
		err := keeper.Sweep(t.Context())
		if errors.Is(err, pgtest.ErrDied) != d.Died() || deaths > 100 {
			t.Fatalf("after %d deaths: %v", deaths, err)
		}
		if !d.Died() {
			break
		}
		g.Exec(`update series set due_at = now() where due_at < now() + interval '31 seconds'`)
	}
	if deaths < 2*series.Ahead {
		t.Errorf("only %d deaths", deaths)
	}
	g.RelayCounts()
	for what, n := range map[string]int64{"drops": g.Number(`select count(*) from templates`) - 1, "publications": g.Number(`select count(*) from audit where action = 'template.publish'`),
		"drops with reminders": g.Number(`select count(*) from series_drops where copied_at is not null and reminded = 3`), "users of a drop": g.Number(`select count(*) from reservations`) / 3,
		"sums": g.Number(`select sum(booked)::bigint from bookings`) / 3} {
		if n != series.Ahead {
			t.Errorf("%d %s after %d deaths", n, what, deaths)
		}
	}
}
