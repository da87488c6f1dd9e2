package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// optOuts returns the opt-outs of a worker that reads users after one looked-up id, and
// forgets them after more than twenty changes.
func (w *fixture) optOuts() deliverydb.OptOuts {
	w.Helper()
	w.Exec(`create table histories (name text not null)`)
	w.Exec(`insert into histories values ('1')`)
	w.Exec(`insert into users (id, opt_outs) select i, case i % 4 when 0 then 1 when 1 then 3 else 0 end from generate_series(1, 40) i`)
	w.ended()
	o := deliverydb.NewOptOuts(w.DB, 1, 20)
	w.Cleanup(o.Close)
	return o
}

// ended waits until all transactions that began before the latest change have ended, in all
// databases of the server: other tests create databases meanwhile.
func (w *fixture) ended() {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); w.Number(`select count(*) from opt_out_changes where changed >= pg_snapshot_xmin(pg_current_snapshot())`) != 0; {
		if time.Now().After(end) {
			w.Fatal("a transaction has been open for 30 s")
		}
	}
}

// remembering returns opt-outs that remember the users of the app.
func (w *fixture) remembering() (o deliverydb.OptOuts, known any) {
	w.Helper()
	o = w.optOuts()
	w.optedOut(o)
	known = o.Known(delivery.App)
	w.optedOut(o)
	if known == nil || o.Known(delivery.App) != known {
		w.Fatal("the users were not remembered")
	}
	return o, known
}

// optedOut fails unless o finds exactly the users 1 to 50 whose rows say that they have opted
// out of the app.
func (w *fixture) optedOut(o deliverydb.OptOuts) {
	w.Helper()
	ids := make([]user.ID, 50)
	for i := range ids {
		ids[i] = user.ID(i + 1)
	}
	found, err := o.Among(w.Context(), delivery.App, ids...)
	w.Must(err)
	o.Settled()
	rows, err := w.DB.Pool.Query(w.Context(), `select id from users where opt_outs & 1 <> 0 and id <= 50`)
	w.Must(err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	w.Must(err)
	for _, id := range out {
		if !found[user.ID(id)] {
			w.Errorf("user %d has opted out and was not found", id)
		}
	}
	if len(found) != len(out) {
		w.Errorf("found %v, in the table %v", found, out)
	}
}

// TestOptOutsAreAsNewAsTheirRows: each change after users were read is in the next answer,
// without reading all users again.
func TestOptOutsAreAsNewAsTheirRows(t *testing.T) {
	for name, statements := range map[string][]string{
		"opts out":                    {`update users set opt_outs = opt_outs | 1 where id in (2, 3)`},
		"opts in":                     {`update users set opt_outs = opt_outs & ~1 where id in (4, 5)`},
		"of another channel":          {`update users set opt_outs = 4 where id = 2`, `update users set opt_outs = opt_outs | 4 where id = 4`},
		"out and in again":            {`update users set opt_outs = 1 where id = 2`, `update users set opt_outs = 0 where id = 2`},
		"is stored":                   {`insert into users (id, opt_outs) values (41, 1), (42, 2), (43, 0)`},
		"is stored or changed":        {`insert into users (id, opt_outs) values (2, 1), (4, 0), (44, 1) on conflict (id) do update set opt_outs = excluded.opt_outs`},
		"is removed":                  {`delete from users where id in (4, 5, 6)`},
		"is removed and stored again": {`delete from users where id in (4, 5)`, `insert into users (id, opt_outs) values (4, 0), (5, 1)`},
		"has another id":              {`update users set id = 49 where id = 4`, `update users set id = 50 where id = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			o, known := w.remembering()
			for _, s := range statements {
				w.Exec(s)
				w.optedOut(o)
			}
			if o.Known(delivery.App) != known {
				t.Error("all were read again")
			}
		})
	}
}

// TestOtherChangesAreNotNoted: imports, sign-ins and name changes of users are not recorded as
// changes of opt-outs.
func TestOtherChangesAreNotNoted(t *testing.T) {
	w := newFixture(t)
	w.optOuts()
	w.Exec(`truncate opt_out_changes`)
	w.Exec(`insert into users (id) values (41) on conflict (id) do update set opt_outs = excluded.opt_outs`)
	w.Exec(`insert into users (id) values (41) on conflict (id) do update set opt_outs = excluded.opt_outs`)
	w.Exec(`update users set name = 'Ann', locale = 'en', opt_outs = opt_outs where id < 10`)
	w.Exec(`delete from users where id = 2`)
	if n := w.Number(`select count(*) from opt_out_changes`); n != 0 {
		t.Errorf("%d changes", n)
	}
}

// TestOptOutsOfTransactionsUnderWay: a change that began before users were read and committed
// after that is in the next answer, even if housekeeping ran in between.
func TestOptOutsOfTransactionsUnderWay(t *testing.T) {
	w := newFixture(t)
	o := w.optOuts()
	early, err := w.DB.Pool.Begin(t.Context())
	w.Must(err)
	defer func() { _ = early.Rollback(context.WithoutCancel(t.Context())) }()
	exec := func(tx pgx.Tx, sql string) {
		t.Helper()
		_, err := tx.Exec(t.Context(), sql)
		w.Must(err)
	}
	exec(early, `update users set opt_outs = 0 where id = 8`)
	inner, err := early.Begin(t.Context())
	w.Must(err)
	exec(inner, `update users set opt_outs = 1 where id = 2`)
	w.Must(inner.Commit(t.Context()))
	w.optedOut(o)
	known := o.Known(delivery.App)
	if known == nil {
		t.Fatal("not read")
	}
	w.optedOut(o)
	w.Exec(`update users set opt_outs = 1 where id = 3`) // a later one, committed earlier
	w.optedOut(o)
	w.Clean()
	w.Must(early.Commit(t.Context()))
	w.Clean()
	w.optedOut(o)
	if o.Known(delivery.App) != known {
		t.Error("all were read again")
	}
}

// TestChangesOfOptOutsAreRemoved: recorded changes are removed an hour after housekeeping saw
// them.
func TestChangesOfOptOutsAreRemoved(t *testing.T) {
	w := newFixture(t)
	w.optOuts()
	for _, want := range []int64{20, 20, 0} {
		w.Clean()
		if n := w.Number(`select count(*) from opt_out_changes where seen is not null`); n != want {
			t.Errorf("%d are seen, want %d", n, want)
		}
		if want == 20 {
			w.Exec(`update opt_out_changes set seen = seen - interval '40 minutes'`)
		}
	}
	if n := w.Number(`select count(*) from opt_out_changes`); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestOptOutsAreReadAgain: when the remembered users can no longer be used, ids are looked up,
// and the users are read again.
func TestOptOutsAreReadAgain(t *testing.T) {
	for name, change := range map[string]func(*fixture, deliverydb.OptOuts){
		"all users are removed": func(w *fixture, _ deliverydb.OptOuts) { w.Exec(`truncate users cascade`) },
		"very many change": func(w *fixture, _ deliverydb.OptOuts) {
			w.Exec(`update users set opt_outs = opt_outs | 5 where id > 10`)
		},
		"the server may have lost the newest": func(w *fixture, _ deliverydb.OptOuts) { w.Exec(`update histories set name = '2'`) },
		"they were remembered for too long":   func(_ *fixture, o deliverydb.OptOuts) { o.Age(delivery.App, 3*time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			o, _ := w.remembering()
			change(w, o)
			w.ended()
			before := o.Known(delivery.App)
			w.optedOut(o)
			if after := o.Known(delivery.App); after == nil || after == before {
				t.Error("the same users were used again")
			}
			w.optedOut(o)
		})
	}
}

// TestOptOutsAreNotReadInVain: users are not read while a transaction has been open for so
// long that many users have changed since, nor while reading the changes is slow.
func TestOptOutsAreNotReadInVain(t *testing.T) {
	w := newFixture(t)
	o, _ := w.remembering()
	open, err := w.DB.Pool.Begin(t.Context())
	w.Must(err)
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = open.Exec(t.Context(), `update users set opt_outs = 0 where id = 8`)
	w.Must(err)
	w.Exec(`update users set opt_outs = opt_outs | 5 where id > 10`)
	for range 3 {
		w.optedOut(o)
		if o.Known(delivery.App) != nil {
			t.Error("read during a long transaction")
		}
	}
	w.Must(open.Commit(t.Context()))
	w.ended()
	w.optedOut(o)
	known := o.Known(delivery.App)
	if known == nil {
		t.Error("not read after it")
	}
	o.Slow()
	for range 3 { // the first one's answer is still from those it knew
		w.optedOut(o)
		if o.Known(delivery.App) != nil {
			t.Error("remembered, though reading changes is slow")
		}
	}
}

// TestOptOutsAreReadOnceItIsWorthIt: users are not read for a few ids of a small drop when a
// million users may have opted out.
func TestOptOutsAreReadOnceItIsWorthIt(t *testing.T) {
	w := newFixture(t)
	o := w.optOuts()
	w.Exec(`insert into users (id, opt_outs) select i, 1 from generate_series(101, 3280) i`)
	w.Exec(`analyze users`)
	w.ended()
	for asked := 0; asked < 200; asked += 50 {
		if o.Known(delivery.App) != nil {
			t.Fatalf("3,200 users were read for %d ids", asked)
		}
		w.optedOut(o)
	}
	if o.Known(delivery.App) == nil {
		t.Error("200 ids were looked up, and users not read")
	}
	if o.Known(delivery.SMS) != nil {
		t.Error("users of another channel were read")
	}
}

// TestManyOptOutsAreReadPageByPage reads several pages, of which the last is not full.
func TestManyOptOutsAreReadPageByPage(t *testing.T) {
	w := newFixture(t)
	o := w.optOuts()
	w.Exec(`insert into users (id, opt_outs) select 51 + i, 1 from generate_series(1, 100001) i`)
	w.ended()
	w.optedOut(o)
	known := o.Known(delivery.App)
	for _, id := range []user.ID{51, 52, 100_051, 100_052, 100_053} {
		found, err := o.Among(t.Context(), delivery.App, id)
		w.Must(err)
		if want := id > 51 && id < 100_053; found[id] != want {
			t.Errorf("user %d: %t", id, found[id])
		}
	}
	if known == nil || o.Known(delivery.App) != known {
		t.Error("not remembered")
	}
}

// TestOptOutsDuringChanges: several callers each change one user and ask for it right
// afterwards. Other callers change their users at the same time, and all users are read again
// and again.
func TestOptOutsDuringChanges(t *testing.T) {
	w := newFixture(t)
	o, first := w.remembering()
	var all sync.WaitGroup
	for mine := user.ID(100); mine < 108; mine++ {
		all.Go(func() {
			for i := range 100 {
				if _, err := w.DB.Pool.Exec(t.Context(), `insert into users (id, opt_outs) values ($1, $2) on conflict (id) do update set opt_outs = excluded.opt_outs`,
					mine, i%2); err != nil {
					t.Error(err)
					return
				}
				found, err := o.Among(t.Context(), delivery.App, 4, mine)
				if err != nil || found[mine] != (i%2 == 1) || !found[4] {
					t.Errorf("user %d: %v %v after %d changes", mine, found, err, i+1)
					return
				}
			}
		})
	}
	all.Wait()
	o.Settled()
	w.ended()
	w.optedOut(o)
	if again := o.Known(delivery.App); again == nil || again == first {
		t.Error("users were not read again")
	}
}

// TestClosedOptOutsReadNothing: a task that outlives its program's end asks for opt-outs; no
// users are read.
func TestClosedOptOutsReadNothing(t *testing.T) {
	w := newFixture(t)
	o := w.optOuts()
	o.Close()
	w.optedOut(o)
	if o.Known(delivery.App) != nil {
		t.Error("users were read")
	}
}

// TestHistoryOfTheServer: any role may read the history's name, and a checkpoint changes it.
func TestHistoryOfTheServer(t *testing.T) {
	w := newFixture(t)
	name := func() (name string) {
		w.Must(w.DB.Pool.QueryRow(t.Context(), `select `+deliverydb.HistorySQL).Scan(&name))
		return name
	}
	before := name()
	w.Exec(`insert into users (id) values (1)`)
	w.Exec(`checkpoint`)
	if after := name(); after == before || len(strings.Fields(after)) < 3 {
		t.Errorf("%q, then %q", before, after)
	}
	for _, f := range []string{"pg_control_checkpoint()", "pg_walfile_name(pg_lsn)", "pg_current_wal_insert_lsn()", "pg_postmaster_start_time()"} {
		if w.Number(`select has_function_privilege('public', $1, 'execute')::int`, f) != 1 {
			t.Errorf("not every role may call %s", f)
		}
	}
}

// TestPlansOfOptOuts: changes and users are read from their indexes, whatever the statistics.
func TestPlansOfOptOuts(t *testing.T) {
	w := newFixture(t)
	w.Exec(`vacuum analyze users`) // without any
	changed, all := deliverydb.OptOutsPlanned()
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{pg.IndexesOnly, `prepare changed as ` + changed, `prepare everyone as ` + all} {
		_, err := tx.Exec(t.Context(), sql)
		w.Must(err)
	}
	for execution, index := range map[string]string{
		`execute changed ('1', '', now(), '2 minutes', 0, 1000)`: "Index Scan using opt_out_changes_changed",
		`execute everyone (0, 0, 1000)`:                          "Index Only Scan using users_opt_outs",
	} {
		rows, err := tx.Query(t.Context(), `explain `+execution, pgx.QueryExecModeSimpleProtocol)
		w.Must(err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.Must(err)
		if plan := strings.Join(lines, "\n"); !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan on users") || strings.Contains(plan, "Seq Scan on opt") {
			t.Error(fmt.Sprintf("%s:\n%s", execution, plan))
		}
	}
}
