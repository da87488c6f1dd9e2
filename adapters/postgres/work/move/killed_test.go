package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"dropbell/domain/cell"
	"dropbell/domain/staff"
	"dropbell/killpoint"
)

// at decides, while a test runs, whether the process dies at an instant.
var at atomic.Pointer[deaths]

func TestMain(m *testing.M) {
	killpoint.Handle(func(point string, p killpoint.Phase) error {
		if d := at.Load(); d != nil {
			return d.pass(point, p)
		}
		return nil
	})
	os.Exit(m.Run())
}

var errDied = errors.New("died")

// deaths has a process die once at each instant of the points whose names begin with of. A process that
// has died passes nothing further: its transactions are rolled back.
type deaths struct {
	of   string
	dead atomic.Bool
	seen []string
}

func (d *deaths) pass(point string, p killpoint.Phase) error {
	instant := string(p) + " " + point
	if strings.HasPrefix(point, d.of) && !d.dead.Load() && !slices.Contains(d.seen, instant) {
		d.seen = append(d.seen, instant)
		d.dead.Store(true)
	}
	if d.dead.Load() {
		return errDied
	}
	return nil
}

// run calls do again and again until a process lives, and check after each death. It fails unless
// processes have died at all points.
func (d *deaths) run(t *testing.T, do func() error, check func(when string), points ...string) {
	t.Helper()
	at.Store(d)
	defer at.Store(nil)
	for d.dead.Store(true); d.dead.Load(); {
		d.dead.Store(false)
		err := do()
		if died := d.dead.Load(); died != (err != nil) {
			t.Fatalf("died: %v, error: %v, after %q", died, err, d.seen)
		}
		at.Store(nil)
		when := "at the end"
		if err != nil {
			when = d.seen[len(d.seen)-1]
		}
		check(when)
		at.Store(d)
	}
	for _, point := range points {
		for _, p := range []killpoint.Phase{killpoint.BeforeIt, killpoint.AfterIt} {
			if !slices.Contains(d.seen, string(p)+" "+point) {
				t.Errorf("no process died %s %s", p, point)
			}
		}
	}
}

// TestMoveKilledAtEachWrite: the process that moves a shop dies before and after each of its writes, and
// the next one goes on. At any time all rows are in the source or all in the target, and no row that acts
// is in both. An undone move leaves nothing behind.
func TestMoveKilledAtEachWrite(t *testing.T) {
	s := bothSides(t)
	s.source.Exec(`update templates set state = 'closed', ended_at = date_trunc('second', now()) - interval '30 hours' where id = 65`)
	s.source.Exec(`insert into handled_events (handler, event_id)
		select 'hooks', (lpad(to_hex(extract(epoch from ended_at)::bigint * 1000), 12, '0') || '7001' || lpad(to_hex(id), 16, '0'))::uuid from templates where id = 65`)
	r := s.ids()
	before := s.rowsOf(s.source, r)
	check := func(when string) {
		here, there := s.rowsOf(s.source, r), s.rowsOf(s.target, r)
		left := s.source.Number(`select count(*) from moves where state in ('emptied', 'left')`) > 0
		for name, n := range before {
			acts := slices.ContainsFunc(acting, func(t table) bool { return t.name == name })
			carried := s.source.Number(`select count(*) from moving_rows where name = $1`, name)
			switch {
			case !left && here[name] != n, left && !acts && (here[name] != 0 || there[name] != n), left && acts && there[name]+carried < n, there[name] > n:
				t.Fatalf("%s: %s: %d rows here, %d on their way, %d there, want %d", when, name, here[name], carried, there[name], n)
			}
		}
		const waiting = `select count(*) from slots where state = 'waiting'`
		if s.source.Number(waiting) > 0 && s.target.Number(waiting) > 0 {
			t.Fatalf("%s: slots wait in both databases", when)
		}
	}
	m := s.mover
	m.Check = func(context.Context, int64) error { return errDied }
	if _, err := m.Move(t.Context(), 10); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	(&deaths{of: "move.und"}).run(t, func() error { return s.mover.Undo(t.Context(), 10) }, check, "move.undo", "move.undone")
	if got := s.rowsOf(s.target, r); got["coupons"]+got["templates"] != 0 || s.target.Number(`select count(*) from moves`)+s.source.Number(`select count(*) from moves`) != 0 {
		t.Errorf("undone: %v", got)
	}
	s.target.Exec(`insert into reservations (template_id, user_id, slots) values (1, 4711, 1)`) // of a move of another day
	(&deaths{of: "move."}).run(t, func() error { _, err := s.mover.Move(t.Context(), 10); return err }, check,
		"move.arriving", "move.leaving", "move.above", "move.page.remove", "move.page.store", "move.users", "move.told", "move.leave", "move.arrive", "move.arrived", "move.taken", "move.left")
	if got := s.rowsOf(s.target, r); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("%v, want %v", got, before)
	}
	if n := s.source.Number(`select count(*) from moving_rows`) + s.target.Number(`select count(*) from moves`) + s.source.Number(`select count(*) from audit where action = 'shop.move'`) - 1; n != 0 {
		t.Errorf("%d rows are left of the move", n)
	}
	if moved, err := s.mover.Move(t.Context(), 10); err != nil || !moved.Before || moved.To != cell.Number(1) {
		t.Errorf("%+v %v", moved, err)
	}
}

// TestCopiesKilledAtEachWrite: the process that copies home's rows dies before and after each of its
// writes, and the next one goes on. The copies are complete then.
func TestCopiesKilledAtEachWrite(t *testing.T) {
	s := twoCells(t)
	s.fillHome()
	all := func() error {
		err := s.Begin(t.Context())
		var due bool
		if err == nil {
			due, err = s.Due(t.Context())
		}
		if err == nil && due {
			err = s.Compare(t.Context())
		}
		for more := err == nil; more; {
			more, err = s.Step(t.Context())
		}
		return err
	}
	nothing := func(string) {}
	(&deaths{of: "copies."}).run(t, all, nothing, "copies.store", "copies.lift", "copies.compared")
	(&deaths{of: "move.begin"}).run(t, all, nothing, "move.begin")
	s.same("begun")
	s.home.Exec(`update users set email = 'new@example.com', updated_at = now() where id between 5 and 1500`)
	s.home.Exec(`delete from segments`)
	s.home.Exec(`update api_keys set revoked_at = now()`)
	s.cell.Exec(`insert into suppressions (address, reason) values ('bounced@example.com', 'bounced')`)
	s.home.Must(s.home.Users.Erase(t.Context(), 2000, staff.Entry{Actor: staff.System(), Action: "user.erase", ObjectKind: "user", ObjectID: "2000"}))
	(&deaths{of: ""}).run(t, all, nothing, "copies.store", "copies.lift", "move.Copier.step")
	s.copyAll()
	s.same("changed")
	if n := s.cell.Number(`select count(*) from users where id = 2000`) + s.home.Number(`select 1 - count(*) from suppressions where address = 'bounced@example.com'`); n != 0 {
		t.Error("an erasure, or an address of the cell, was lost")
	}
}
