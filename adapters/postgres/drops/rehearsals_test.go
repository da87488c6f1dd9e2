package drops_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A world is made in part, and its worker dies: the next worker ends the rehearsal and removes what was made. A schema whose row is
// gone is removed too, and the schema of a rehearsal that runs is not.
func TestRemainsOfRehearsals(t *testing.T) {
	f := newFixture(t)
	store := dropsdb.NewRehearsals(f.DB)
	drop := f.Published(3 * time.Hour)
	ask := func() int64 {
		t.Helper()
		r, err := store.Ask(t.Context(), rehearsal.Rehearsal{TemplateID: drop.ID, Shop: drop.ShopNumber}, staff.Entry{Actor: staff.System(), Action: "template.rehearse"})
		f.Must(err)
		return r.ID
	}
	remains := func(want int64, when string) {
		t.Helper()
		got, err := store.Remains(t.Context(), time.Hour)
		if err != nil || got != want {
			t.Fatalf("%s: %d remains, %v; want %d", when, got, err, want)
		}
	}
	id := ask()
	if id == drop.ID || f.Number(`select count(*) from templates where id = $1`, id) != 0 {
		t.Errorf("the rehearsal has the id %d of a drop", id)
	}
	r, ok, err := store.Take(t.Context(), "a", time.Minute)
	if err != nil || !ok || r.ID != id {
		t.Fatal(r, ok, err)
	}
	f.Exec(`create schema ` + dropsdb.WorldSchema(id)) // and dies
	remains(0, "while it runs")
	f.Exec(`update rehearsals set lease_until = now() - interval '1 second'`)
	if _, ok, err := store.Take(t.Context(), "b", time.Minute); ok || err != nil {
		t.Fatal("a rehearsal that was lost is run again", err)
	}
	for what, err := range map[string]error{"note": store.Note(t.Context(), id, "a", rehearsal.Progress{}, time.Minute), "begin": store.Began(t.Context(), id, "a", 1, time.Now())} {
		if !errors.Is(err, rehearsal.ErrLost) {
			t.Errorf("the lost worker's %s: %v", what, err)
		}
	}
	f.Must(store.End(t.Context(), id, "a", &rehearsal.Report{}, ""))
	if got, err := store.Of(t.Context(), drop.ID, 5); err != nil || len(got) != 1 || got[0].State != rehearsal.Failed || got[0].Report != nil {
		t.Errorf("%+v %v", got, err)
	}
	remains(id, "after its worker died")
	f.Must(store.DropWorld(t.Context(), id))
	f.Must(store.Removed(t.Context(), id))
	remains(0, "after the removal")
	f.Must(store.DropWorld(t.Context(), id)) // may be repeated
	second := ask()
	f.Exec(`create schema ` + dropsdb.WorldSchema(second))
	f.Exec(`delete from rehearsals where id = $1`, second)
	remains(second, "after its row is gone")
	f.Must(store.DropWorld(t.Context(), second))
	remains(0, "in the end")
}

// About the share of the users is copied, without their contacts and names. A world has the channels of each user.
func TestAWorldHasNoContacts(t *testing.T) {
	f := newFixture(t)
	store := dropsdb.NewRehearsals(f.DB)
	drop := f.Published(3 * time.Hour)
	f.Seed(drop, 1000, pgtest.Reminders(delivery.Email, 5)...)
	f.Exec(`insert into users (id, name, email, phone, locale) select user_id, 'Customer', case when user_id % 2 = 0 then 'c@shop.example' else '' end, '+4912345' || user_id, 'de' from reservations where template_id = $1
		on conflict (id) do update set name = excluded.name, email = excluded.email, phone = excluded.phone, locale = excluded.locale`, drop.ID)
	url := f.SQL.Config().ConnString()
	f.Must(store.MakeWorld(t.Context(), url, 9001))
	if err := store.MakeWorld(t.Context(), url, 9001); err == nil {
		t.Error("a world is made twice")
	}
	db := pgtest.On(t, dropsdb.WorldURL(url, 9001)).DB
	world := dropsdb.NewRehearsals(db)
	from, err := store.Schema(t.Context())
	f.Must(err)
	users, err := world.Fill(t.Context(), dropsdb.Filling{From: from, Drop: drop.ID, ID: 9001, Shop: drop.ShopNumber, SharePermille: 200, OpensAt: time.Now().Add(time.Hour).Truncate(time.Second)})
	f.Must(err)
	if users < 120 || users > 280 {
		t.Errorf("%d of 1,000 users are a fifth", users)
	}
	in := dropsdb.WorldSchema(9001) + "."
	for what, want := range map[string]int64{
		`select count(*) from ` + in + `users where name <> '' or email like '%shop.example' or phone not in ('', '+10000000000') or locale <> 'de'`: 0,
		`select count(*) from ` + in + `users where (email = '') <> (id % 2 = 1)`:                                                                    0,
		`select count(*) from ` + in + `users`:        users,
		`select count(*) from ` + in + `reservations`: users,
		`select sum(booked) from ` + in + `bookings`:  users,
		`select count(*) from ` + in + `templates where state = 'draft' and stock = ` + fmt.Sprint(max(1, drop.Stock/5)): 1,
	} {
		if got := f.Number(what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	f.Must(store.DropWorld(t.Context(), 9001))
	if n := f.Number(`select count(*) from pg_namespace where nspname like 'rehearsal_%'`); n != 0 {
		t.Errorf("%d schemas are left", n)
	}
}

// A hundredth of the users are guests of a dress rehearsal, others of each drop.
func TestGuests(t *testing.T) {
	f := newFixture(t)
	store := dropsdb.NewRehearsals(f.DB)
	if id, err := store.Stranger(t.Context(), 1); id != 0 || err != nil {
		t.Error(id, err)
	}
	f.Exec(`insert into users (id) select n from generate_series(1, 20000) n`)
	all := func(drop int64) (list []user.ID) {
		t.Helper()
		for after := user.ID(0); ; after = list[len(list)-1] {
			ids, err := store.Guests(t.Context(), drop, after, 50)
			f.Must(err)
			if list = append(list, ids...); len(ids) < 50 {
				return list
			}
		}
	}
	one, other := all(1), all(2)
	if len(one) < 120 || len(one) > 280 || fmt.Sprint(one) == fmt.Sprint(other) || fmt.Sprint(one) != fmt.Sprint(all(1)) {
		t.Errorf("%d and %d guests", len(one), len(other))
	}
	if id, err := store.Stranger(t.Context(), 1); err != nil || id == 0 || id == one[0] {
		t.Error(id, err)
	}
}
