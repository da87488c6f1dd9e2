package commands

import (
	"strings"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// TestMoveCommand: a shop with a drop whose first reminders were sent moves to the other database. The
// balance sheets of both sides are equal, and reservations and claims of the drop go on there.
func TestMoveCommand(t *testing.T) {
	here, there := localstack.Database(t), localstack.Database(t)
	w, o := pgtest.On(t, here), pgtest.On(t, there)
	_, err := workdb.NewCells(o.DB).Number(t.Context(), 1, 0)
	w.Must(err)
	env := map[string]string{"DATABASE_URL": here, "MOVE_DATABASE_URL": there}
	run := func(want string, code int, args ...string) {
		t.Helper()
		var out strings.Builder
		err := Do(t.Context(), append([]string{"move"}, args...), func(name string) string { return env[name] }, &out)
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := config.ExitCode(err); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("%q: code %d, %s; want %d, %q", args, got, out.String(), code, want)
		}
	}
	for _, args := range [][]string{{}, {"0"}, {"x"}, {"10", "back"}, {"10", "undo", "x"}} {
		run("usage: ", 2, args...)
	}
	drop := w.Published(100 * time.Minute)
	w.Seed(drop, 50, pgtest.Reminders(delivery.App, 5, 60)...)
	slot := w.CutSlot(drop, 12, 20)
	w.Exec(`update batches set state = 'done', sent = due, sent_count = due_count, finished_at = now()`)
	w.Exec(`update slots set state = 'finished', finished_at = now() where id = $1`, slot.ID)
	w.Exec(`delete from outbox`)
	w.Exec(`update slots s set opens_at = s.opens_at + interval '1 day', due_at = s.due_at + interval '1 day' where state = 'waiting'`)
	w.Exec(`update templates set opens_at = opens_at + interval '1 day', closes_at = closes_at + interval '1 day'`)
	w.Exec(`insert into users (id, email) values (1, 'one@example.com')`)
	run("shop 10 stays here", 0, "10", "undo")
	run("tables are equal there and removed here", 0, "10")
	run("moved to cell 1 before", 0, "10")
	run("there is no shop 11 here", 1, "11")
	if n := o.Number(`select count(*) from reservations where template_id = $1`, drop.ID); n != 50 {
		t.Errorf("%d reservations have arrived", n)
	}
	if v, err := o.Reservations.Reserve(t.Context(), reminder.Change{TemplateID: drop.ID, UserID: 60, Bits: reminder.StoredBitmap(1)}); err != nil || !v.Applied {
		t.Errorf("reserving in the other database: %+v %v", v, err)
	}
	if n := o.Number(`select count(*) from users where email = 'one@example.com'`); n != 1 {
		t.Error("the contacts of a customer have not arrived")
	}
	if n := o.Number(`select booked from bookings where template_id = $1 and slot = 1`, drop.ID); n != 50 {
		t.Errorf("%d are counted as booked", n)
	}
	o.Exec(`insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	run("the other one at 99999", 1, "10")
	env["MOVE_DATABASE_URL"] = ""
	run("MOVE_DATABASE_URL is missing", 2, "10")
}
