package drops_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestALockedDropStopsNoOtherReservations: a session locks the slots of one drop, as a
// suspended process does that was moving the opening. Reservations and cancellations of all
// drops keep coming. Requests for other drops are answered, and requests for the locked drop
// are refused. When the lock ends, requests for the drop are accepted again.
func TestALockedDropStopsNoOtherReservations(t *testing.T) {
	m := newFixture(t)
	held := m.Published(2 * time.Hour)
	var others []template.Template
	for range 3 {
		others = append(others, m.Published(2*time.Hour))
	}
	bits := reminder.BitmapOf(reminder.Reminder{Channel: delivery.App, Slot: 1})
	var mu sync.Mutex
	var next user.ID
	var took []time.Duration
	refused := 0
	change := func(drop template.Template) {
		mu.Lock()
		next++
		c := reminder.Change{TemplateID: drop.ID, UserID: next, Bits: bits}
		mu.Unlock()
		for _, do := range []func() (reminder.Decision, error){
			func() (reminder.Decision, error) { return m.Reservations.Reserve(t.Context(), c) },
			func() (reminder.Decision, error) { return m.Reservations.Cancel(t.Context(), c) },
		} {
			start := time.Now()
			d, err := do()
			mu.Lock()
			switch {
			case drop.ID == held.ID && fault.CodeOf(err) == "overloaded":
				refused++
			case drop.ID == held.ID:
				t.Errorf("a drop that is locked: %+v, %v", d, err)
			case err != nil || !d.Applied:
				t.Errorf("another drop: %+v, %v", d, err)
			default:
				took = append(took, time.Since(start))
			}
			mu.Unlock()
		}
	}
	over := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused >= 2000 || t.Failed()
	}
	_, release := m.Hold(`select from slots where template_id = $1 for update`, held.ID)
	var all sync.WaitGroup
	for range 24 {
		for _, drops := range [][]template.Template{others, {held}} {
			all.Go(func() {
				for i := 0; !over(); i++ {
					change(drops[i%len(drops)])
				}
			})
		}
	}
	all.Wait()
	slices.Sort(took)
	p95, last := took[len(took)*95/100], took[len(took)-1]
	t.Logf("%d changes of other drops: p95 %v, slowest %v", len(took), p95, last)
	if p95 > 300*time.Millisecond || last > 2*time.Second {
		t.Errorf("changes of other drops took up to %v, p95 %v", last, p95)
	}
	release()
	reserved := errors.New("none")
	for end := pgtest.Clock().Add(10 * time.Second); reserved != nil && pgtest.Clock().Before(end); {
		_, reserved = m.Reservations.Reserve(t.Context(), reminder.Change{TemplateID: held.ID, UserID: 1_000_000, Bits: bits})
	}
	m.Must(reserved)
	if n := m.Number(`select count(*) from reservations`); n != 1 {
		t.Errorf("%d reservations are left", n)
	}
}
