package delivery_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const everyone = `insert into users (id, opt_outs) select i, case i % 4 when 0 then 1 when 1 then 3 else 0 end from generate_series(1, 40) i`

// optedOut fails unless exactly those of users 1 to 50 are found who have opted out of the app by their rows.
func (w *fixture) optedOut(o deliverydb.OptOuts) {
	w.Helper()
	ids := make([]user.ID, 50)
	for i := range ids {
		ids[i] = user.ID(i + 1)
	}
	found, err := o.Among(w.Context(), delivery.App, ids...)
	w.Must(err)
	for _, id := range ids {
		if want := w.Number(`select count(*) from users where id = $1 and opt_outs & 1 <> 0`, id) == 1; found[id] != want {
			w.Errorf("user %d: opted out %t, in the table %t", id, found[id], want)
		}
	}
}

// keeping returns opt-outs of which those of the app are kept.
func (w *fixture) keeping() deliverydb.OptOuts {
	w.Helper()
	w.Exec(everyone)
	o := deliverydb.NewOptOuts(w.DB, 1)
	w.optedOut(o)
	kept := o.Kept(delivery.App)
	w.optedOut(o)
	if kept == nil || o.Kept(delivery.App) != kept {
		w.Fatal("the users were not kept")
	}
	return o
}

// TestOptOutsAreAsNewAsTheirRows: each change after users were read is in the next answer,
// without all being read again.
func TestOptOutsAreAsNewAsTheirRows(t *testing.T) {
	for name, statements := range map[string][]string{
		"opts out":                    {`update users set opt_outs = opt_outs | 1 where id in (2, 3)`},
		"opts in":                     {`update users set opt_outs = opt_outs & ~1 where id in (4, 5)`},
		"of another channel":          {`update users set opt_outs = 4 where id = 2`, `update users set opt_outs = opt_outs | 4 where id = 4`},
		"to and fro":                  {`update users set opt_outs = 1 where id = 2`, `update users set opt_outs = 0 where id = 2`},
		"is stored":                   {`insert into users (id, opt_outs) values (41, 1), (42, 2), (43, 0)`},
		"is stored or changed":        {`insert into users (id, opt_outs) values (2, 1), (4, 0), (44, 1) on conflict (id) do update set opt_outs = excluded.opt_outs`},
		"is removed":                  {`delete from users where id in (4, 5, 6)`},
		"is removed and stored again": {`delete from users where id in (4, 5)`, `insert into users (id, opt_outs) values (4, 0), (5, 1)`},
		"changes in another way":      {`update users set name = 'Ann', locale = 'en' where id < 10`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			o := w.keeping()
			kept := o.Kept(delivery.App)
			for _, s := range statements {
				w.Exec(s)
				w.optedOut(o)
			}
			if o.Kept(delivery.App) != kept {
				t.Error("all were read again")
			}
		})
	}
}

// TestOptOutsOfTransactionsUnderWay: a change that was begun before users were read, and
// committed after that, is in the next answer.
func TestOptOutsOfTransactionsUnderWay(t *testing.T) {
	w := newFixture(t)
	w.Exec(everyone)
	early, err := w.DB.Pool.Begin(t.Context())
	w.Must(err)
	defer early.Rollback(t.Context())
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
	o := deliverydb.NewOptOuts(w.DB, 1)
	w.optedOut(o)
	kept := o.Kept(delivery.App)
	w.optedOut(o)
	w.Exec(`update users set opt_outs = 1 where id = 3`) // a later one, committed earlier
	w.optedOut(o)
	w.Must(early.Commit(t.Context()))
	w.optedOut(o)
	if o.Kept(delivery.App) != kept {
		t.Error("all were read again")
	}
}

// TestOptOutsAreReadAgain: where the users that were kept are of no use any more, ids are
// looked up, and users read again.
func TestOptOutsAreReadAgain(t *testing.T) {
	for name, change := range map[string]func(*fixture, deliverydb.OptOuts){
		"all users are removed": func(w *fixture, _ deliverydb.OptOuts) { w.Exec(`truncate users cascade`) },
		"very many change": func(w *fixture, _ deliverydb.OptOuts) {
			w.Exec(`insert into users (id, opt_outs) select i, 1 from generate_series(45, 1100) i`)
		},
		"the server may have lost the newest": func(w *fixture, _ deliverydb.OptOuts) { w.Exec(`checkpoint`) },
		"they were kept too long":             func(_ *fixture, o deliverydb.OptOuts) { o.Age(delivery.App, 3*time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			o := w.keeping()
			change(w, o)
			before := o.Kept(delivery.App)
			w.optedOut(o)
			if after := o.Kept(delivery.App); after == nil || after == before {
				t.Error("the same users were used again")
			}
			w.optedOut(o)
		})
	}
}

// TestOptOutsAreReadOnceItIsWorthIt: not for a few ids of a small drop, when a million users
// may have opted out.
func TestOptOutsAreReadOnceItIsWorthIt(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, opt_outs) select i, 1 from generate_series(1, 3200) i`)
	w.Exec(`analyze users`)
	o := deliverydb.NewOptOuts(w.DB, 1)
	for asked := 0; asked < 200; asked += 50 {
		if o.Kept(delivery.App) != nil {
			t.Fatalf("3,200 users were read for %d ids", asked)
		}
		w.optedOut(o)
	}
	if o.Kept(delivery.App) == nil {
		t.Error("200 ids were looked up, and users not read")
	}
	if o.Kept(delivery.SMS) != nil {
		t.Error("users of another channel were read")
	}
}

// TestManyOptOutsAreReadPageByPage: the last page is not full.
func TestManyOptOutsAreReadPageByPage(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, opt_outs) select 51 + i, 1 from generate_series(1, 100001) i`)
	o := w.keeping()
	for _, id := range []user.ID{51, 52, 100_051, 100_052, 100_053} {
		found, err := o.Among(t.Context(), delivery.App, id)
		w.Must(err)
		if want := id > 51 && id < 100_053; found[id] != want {
			t.Errorf("user %d: %t", id, found[id])
		}
	}
}

// TestOptOutsBesideChanges: several workers' answers, each asked for right after a change of
// its own users, while others change theirs and all are read again and again.
func TestOptOutsBesideChanges(t *testing.T) {
	w := newFixture(t)
	o := w.keeping()
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
}
