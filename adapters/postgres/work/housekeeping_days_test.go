package work_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

const (
	eventTables = `select count(*) from pg_inherits where inhparent = 'handled_events'::regclass`
	placeOf     = `select tableoid::regclass::text from handled_events where event_id = $1`
)

// handled notes that a handler has dealt with the event and reports whether it was new.
func (w *fixture) handled(id string) bool {
	w.Helper()
	tag, err := w.SQL.Exec(w.Context(), `insert into handled_events (handler, event_id) values ('h', $1) on conflict do nothing`, id)
	w.Must(err)
	return tag.RowsAffected() == 1
}

// eventOf returns the id of an event that is made so many days from now.
func (w *fixture) eventOf(days int) (id, table string) {
	w.Helper()
	w.Must(w.SQL.QueryRow(w.Context(), `select overlay(first_event_id(now() + $1 * interval '1 day')::text placing substr(gen_random_uuid()::text, 24) from 24),
		'handled_events_' || to_char((now() + $1 * interval '1 day') at time zone 'UTC', 'YYYYMMDD')`, days).Scan(&id, &table))
	return id, table
}

func (w *fixture) clean(keep workdb.Retention) {
	w.Helper()
	_, err := workdb.NewHousekeeping(w.DB).Clean(w.Context(), keep, 0)
	w.Must(err)
}

// TestEventIDsTellTheirDay: ids made by the database contain the current instant, are stored in
// the table of the day, and are found there again.
func TestEventIDsTellTheirDay(t *testing.T) {
	w := newFixture(t)
	pgtest.WithinOneDay()
	var id string
	var inTime bool
	w.Must(w.SQL.QueryRow(t.Context(), `insert into outbox (topic, payload) values ('t', '{}') returning event_id::text,
		event_id between first_event_id(now() - interval '1 second') and first_event_id(clock_timestamp() + interval '1 second')`).Scan(&id, &inTime))
	if !inTime || id[14] != '7' || id[19] < '8' || id[19] > 'b' {
		t.Errorf("id %s", id)
	}
	if !w.handled(id) || w.handled(id) {
		t.Error("an id is new once")
	}
	if n := w.Number(`select count(*) from handled_events_rest`); n != 0 {
		t.Errorf("%d ids are in no day", n)
	}
	if n := w.Number(`select count(distinct new_event_id()) from generate_series(1, 10000)`); n != 10_000 {
		t.Errorf("%d different ids of 10,000", n)
	}
	random := "5f0f1cb4-0f0e-4a35-9c0f-6ac4e8f4a1aa"
	if !w.handled(random) || w.handled(random) || w.Number(`select count(*) from handled_events_rest`) != 1 {
		t.Error("an id of no day is new once")
	}
}

// TestDaysAreAddedAndDropped, also after no worker has added a table for weeks. Ids that were
// stored during that time are not lost.
func TestDaysAreAddedAndDropped(t *testing.T) {
	w := newFixture(t)
	pgtest.WithinOneDay()
	keep := workdb.Retention{Events: 7 * pgtest.Day}
	if n := w.Number(eventTables); n < 16 { // today, the days to come, and the rest
		t.Fatalf("%d tables after the migrations", n)
	}
	w.Exec(`do $$ declare name regclass; begin
		for name in select inhrelid::regclass from pg_inherits where inhparent = 'handled_events'::regclass and inhrelid <> 'handled_events_rest'::regclass loop
			execute 'drop table ' || name;
		end loop; end $$`)
	h := workdb.NewHousekeeping(w.DB)
	if days, err := h.EventDaysAhead(t.Context()); err != nil || days != 0 {
		t.Errorf("%d days ahead, %v", days, err)
	}
	var ids, tables []string
	for _, day := range []int{-9, -1, 0, 1} {
		id, table := w.eventOf(day)
		if ids, tables = append(ids, id), append(tables, table); !w.handled(id) {
			t.Errorf("day %d is known", day)
		}
	}
	for range 2 {
		w.clean(keep)
		if days, err := h.EventDaysAhead(t.Context()); err != nil || days != 14 || w.Number(eventTables) != 16 {
			t.Errorf("%d days ahead, %v", days, err)
		}
	}
	for i, id := range ids {
		var place string
		w.Must(w.SQL.QueryRow(t.Context(), placeOf, id).Scan(&place))
		if want := map[bool]string{true: tables[i], false: "handled_events_rest"}[i >= 2]; place != want || w.handled(id) {
			t.Errorf("%s is in %s, want %s", id, place, want)
		}
	}
	w.Exec(`select add_event_day(now() - n * interval '1 day') from generate_series(1, 12) n`)
	if w.handled(ids[0]) || w.handled(ids[1]) {
		t.Error("forgotten by a table that was added late")
	}
	w.clean(workdb.Retention{})
	if n := w.Number(eventTables); n != 28 {
		t.Errorf("%d tables, and nothing was to be dropped", n)
	}
	w.clean(keep)
	if n := w.Number(eventTables); n != 23 { // seven whole days before today
		t.Errorf("%d tables are left", n)
	}
	if w.handled(ids[1]) || !w.handled(ids[0]) {
		t.Error("yesterday's is known, and that of nine days ago is forgotten")
	}
}

// TestDaysWaitForNobody: a transaction that uses the table keeps tables of days from being added
// and dropped, and cleaning continues. Several concurrent cleanings add a day once.
func TestDaysWaitForNobody(t *testing.T) {
	w := newFixture(t)
	pgtest.WithinOneDay()
	w.clean(workdb.Retention{})
	before := w.Number(eventTables)
	w.Exec(`select add_event_day(now() - interval '12 days')`)
	_, gone := w.eventOf(14)
	w.Exec(`drop table ` + pgx.Identifier{gone}.Sanitize())
	w.Exec(`insert into sessions (token, data, expiry) values ('old', '', now() - interval '2 hours')`)
	_, release := w.Hold(`select from handled_events`)
	w.clean(workdb.Retention{Events: 7 * pgtest.Day})
	if tables, sessions := w.Number(eventTables), w.Number(`select count(*) from sessions`); tables != before || sessions != 0 {
		t.Errorf("%d tables, %d sessions", tables, sessions)
	}
	release()
	for _, err := range pgtest.Together(3, func(int) error {
		_, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), workdb.Retention{Events: 7 * pgtest.Day}, time.Minute)
		return err
	}) {
		w.Must(err)
	}
	if n := w.Number(eventTables); n != before {
		t.Errorf("%d tables, want %d", n, before)
	}
}
