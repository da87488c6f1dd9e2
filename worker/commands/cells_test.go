package commands

import (
	"strings"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

// TestCellsByCommands: migrate brings all cells up to date, and a shop moves between two of them, from
// where it is and by the cell's name.
func TestCellsByCommands(t *testing.T) {
	home, further := localstack.Database(t), localstack.Database(t)
	w, o := pgtest.On(t, home), pgtest.On(t, further)
	_, err := workdb.NewCells(o.DB).Number(t.Context(), 1, 0)
	w.Must(err)
	env := map[string]string{"CELLS": "a=" + home + ",b=" + further}
	run := func(want string, code int, args ...string) {
		t.Helper()
		var out strings.Builder
		err := Do(t.Context(), args, func(name string) string { return env[name] }, &out)
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := config.ExitCode(err); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("%q: code %d, %s; want %d, %q", args, got, out.String(), code, want)
		}
	}
	run("cell b:\nnothing to do", 0, "migrate")
	drop := w.Published(100 * time.Minute)
	w.Exec(`update slots s set opens_at = s.opens_at + interval '1 day', due_at = s.due_at + interval '1 day' where state = 'waiting'`)
	w.Exec(`update templates set opens_at = opens_at + interval '1 day', closes_at = closes_at + interval '1 day'`)
	w.Exec(`delete from outbox`)
	// Its own shop does not arrive in a database that was told that home has it, unless it moves.
	w.Must(workdb.NewCells(o.DB).KnowElsewhere(t.Context(), 0, []int64{10}))
	if _, err := o.SQL.Exec(t.Context(), `insert into shops (number, name, timezone) values (10, 'Tea', 'UTC')`); err == nil {
		t.Error("a shop was made twice")
	}
	run("is no cell of CELLS", 2, "move", "10", "c")
	run("no cell but a has a shop 10", 1, "move", "10", "a")
	run("tables are equal there and removed here", 0, "move", "10", "b")
	run("moved to cell 1 before", 0, "move", "10", "b")
	w.Exec(`insert into copying_cells (cell, compared_at) values (1, now())`)
	run("still needed, nothing was changed; it has: shops 10", 1, "cell", "remove", "b")
	run("is not the last cell of CELLS", 2, "cell", "remove", "a")
	if err := workdb.NewCells(w.DB).Named(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "CELLS does not name cell 1") {
		t.Errorf("programs that do not name the cell: %v", err)
	}
	if n := o.Number(`select count(*) from templates where id = $1`, drop.ID); n != 1 {
		t.Error("the drop has not arrived")
	}
	if _, err := o.Service.Create(t.Context(), pgtest.Actor, pgtest.Spec(time.Hour), ""); err != nil {
		t.Errorf("a drop of the shop that has arrived, although home's worker has not told that it has left: %v", err)
	}
	held, err := workdb.NewCells(w.DB).Held(t.Context())
	if err != nil || len(held.Shops) != 0 || len(held.Left) != 1 || held.Left[0] != 1 {
		t.Errorf("home says %+v, %v", held, err)
	}
	held, err = workdb.NewCells(o.DB).Held(t.Context())
	if err != nil || len(held.Shops) != 1 || len(held.Arriving) != 0 || held.Number != 1 || held.Joined {
		t.Errorf("the cell says %+v, %v", held, err)
	}
	o.Exec(`delete from outbox`)
	run("tables are equal there and removed here", 0, "move", "10", "a")
	o.Exec(`delete from outbox`)
	for range 2 { // a command that died is given again
		run("cell b is taken out", 0, "cell", "remove", "b")
	}
	w.Must(workdb.NewCells(w.DB).Named(t.Context(), 1))
	run("this database was taken out of the installation", 1, "move", "10", "b")
	env["DATABASE_URL"] = home
	run("cell 1 was taken out of the installation", 0, "cell")
	if held, err := workdb.NewCells(o.DB).Held(t.Context()); err != nil || held.Joined {
		t.Errorf("the cell that was taken out says %+v, %v", held, err)
	}
}
