package drops_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func TestReserveStoresAllOrNothing(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	first := w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5, 10)...)
	if !first.Applied || !first.Created || first.After.Int64() != 3 {
		t.Fatalf("first: %+v", first)
	}
	second := w.Reserve(tpl, 7, pgtest.Reminders(delivery.Email, 20)...)
	if !second.Applied || second.Created || second.After.Int64() != 3+32768 {
		t.Fatalf("second: %+v", second)
	}
	overlap := w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 10, 15)...)
	if overlap.Applied || overlap.Before.Int64() != 3+32768 {
		t.Fatalf("overlap: %+v", overlap)
	}
	if n := w.Number(`select slots from reservations where template_id = $1 and user_id = 7`, tpl.ID); n != 3+32768 {
		t.Fatalf("stored %d", n)
	}
}

func TestReserveIsJudgedByTheSlot(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(12 * time.Minute) // slots 1 and 2 lie ahead, 3…12 have passed
	v := w.Reserve(tpl, 7, append(pgtest.Reminders(delivery.App, 5), pgtest.Reminders(delivery.App, 15)...)...)
	if v.Applied || v.Opened || v.Open.Has(pgtest.Reminders(delivery.App, 15)[0]) || !v.Open.Has(pgtest.Reminders(delivery.App, 5)[0]) {
		t.Fatalf("%+v", v)
	}
	if v := w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5, 10)...); !v.Applied {
		t.Fatalf("%+v", v)
	}
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 second' where id = $1`, tpl.ID)
	w.Exec(`update slots set due_at = due_at - interval '20 minutes' where template_id = $1`, tpl.ID)
	if v := w.Reserve(tpl, 8, pgtest.Reminders(delivery.App, 5)...); v.Applied || !v.Opened {
		t.Fatalf("%+v", v)
	}
}

func TestCancel(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	if v := w.Cancel(tpl, 7); v.Applied || !v.Before.IsEmpty() {
		t.Fatalf("nothing reserved: %+v", v)
	}
	w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5, 10, 60)...)
	if v := w.Cancel(tpl, 7, pgtest.Reminders(delivery.App, 5, 15)...); v.Applied {
		t.Fatalf("one of two is missing: %+v", v)
	}
	if v := w.Cancel(tpl, 7, pgtest.Reminders(delivery.App, 10)...); !v.Applied || v.After.Int64() != 1+2048 {
		t.Fatalf("%+v", v)
	}
	w.DueNow(tpl, 12)
	if v := w.Cancel(tpl, 7, pgtest.Reminders(delivery.App, 60)...); v.Applied || v.Open.Has(pgtest.Reminders(delivery.App, 60)[0]) {
		t.Fatalf("due: %+v", v)
	}
	if v := w.Cancel(tpl, 7); !v.Applied || v.After.Int64() != 2048 {
		t.Fatalf("all that is not due: %+v", v)
	}
	if v := w.Cancel(tpl, 7); v.Applied || v.Before.Int64() != 2048 {
		t.Fatalf("only a due one is left: %+v", v)
	}
	w.Reserve(tpl, 8, pgtest.Reminders(delivery.App, 5)...)
	if v := w.Cancel(tpl, 8, pgtest.Reminders(delivery.App, 5)...); !v.Applied || !v.After.IsEmpty() {
		t.Fatalf("last bit: %+v", v)
	}
	if n := w.Number(`select count(*) from reservations where user_id = 8`); n != 0 {
		t.Fatal("the row of the last reminder is still there")
	}
}

func TestCancelWorksOnAClosedTemplate(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5)...)
	_, err := w.Service.Do(t.Context(), pgtest.Actor, tpl.ID, 0, template.Closing, "")
	w.Must(err)
	if v := w.Reserve(tpl, 8, pgtest.Reminders(delivery.App, 5)...); v.Applied {
		t.Fatal("reserved on a closed template")
	}
	if v := w.Cancel(tpl, 7); !v.Applied || !v.After.IsEmpty() {
		t.Fatalf("%+v", v)
	}
}

func TestCountersFollowEvents(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5, 10)...)
	w.Reserve(tpl, 8, pgtest.Reminders(delivery.App, 5)...)
	w.Cancel(tpl, 7, pgtest.Reminders(delivery.App, 10)...)
	w.RelayCounts()
	w.RelayCounts() // a second delivery counts nothing
	board, err := w.Boards.Board(t.Context(), tpl.ID)
	w.Must(err)
	for _, r := range board.Rows {
		want := int64(0)
		if r.Slot.Slot == 1 {
			want = 2
		}
		if got := r.Cells[delivery.App].Booked; got != want {
			t.Errorf("slot %d: booked %d, want %d", r.Slot.Slot, got, want)
		}
	}
	growth, err := w.Boards.Growth(t.Context(), tpl.ID, 10)
	w.Must(err)
	if len(growth) == 0 || growth[len(growth)-1].Booked != 2 {
		t.Errorf("growth %v", growth)
	}
}

// TestRandomSequencesMatchAModel runs random reservations and cancellations of a
// few users, many at once. It compares every answer, and the rows at the end,
// with a model of plain sets. Each user acts in sequence, so the model is exact;
// requests of different users interleave freely.
func TestRandomSequencesMatchAModel(t *testing.T) {
	w := newFixture(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	templates := []template.Template{w.Published(2 * time.Hour), w.Published(12 * time.Minute), w.Published(3 * time.Hour)}
	const users, steps = 48, 60
	var all sync.WaitGroup
	models := make([]map[int64]uint64, users)
	failures := make(chan string, users)
	for u := range users {
		models[u] = map[int64]uint64{}
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(u)))
			for range steps {
				if msg := step(w, rng, user.ID(u+1), models[u], templates); msg != "" {
					failures <- msg
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	for f := range failures {
		t.Error(f)
	}
	for u, model := range models {
		for _, tpl := range templates {
			got := w.Number(`select coalesce((select slots from reservations where template_id = $1 and user_id = $2), 0)`, tpl.ID, u+1)
			if uint64(got) != model[tpl.ID] {
				t.Errorf("user %d template %d: stored %d, model %d", u+1, tpl.ID, got, model[tpl.ID])
			}
		}
	}
	if n := w.Number(`select count(*) from reservations where slots = 0`); n != 0 {
		t.Errorf("%d empty rows", n)
	}
}

func step(w *fixture, rng *rand.Rand, id user.ID, model map[int64]uint64, templates []template.Template) string {
	tpl := templates[rng.IntN(len(templates))]
	open := uint64(1<<60 - 1)
	if tpl.ID == templates[1].ID { // only 5 and 10 minutes lie ahead
		open = 3 * uint64(reminder.EveryChannel)
	}
	var bits uint64
	for range 1 + rng.IntN(3) {
		bits |= 1 << rng.IntN(60)
	}
	asked := reminder.StoredBitmap(int64(bits))
	before := model[tpl.ID]
	if rng.IntN(2) == 0 {
		v, err := w.Reservations.Reserve(context.Background(), reminder.Change{TemplateID: tpl.ID, UserID: id, Bits: asked})
		want := bits&before == 0 && bits&^open == 0
		if err != nil || v.Applied != want {
			return fmt.Sprintf("reserve %d by %d on %d: applied %v (%v), want %v", bits, id, before, v.Applied, err, want)
		}
		if want {
			model[tpl.ID] = before | bits
		}
		return ""
	}
	if rng.IntN(4) == 0 {
		asked, bits = reminder.Bitmap{}, before&open
	}
	v, err := w.Reservations.Cancel(context.Background(), reminder.Change{TemplateID: tpl.ID, UserID: id, Bits: asked})
	want := bits != 0 && bits&before == bits && bits&^open == 0
	if err != nil || v.Applied != want {
		return fmt.Sprintf("cancel %d by %d on %d: applied %v (%v), want %v", bits, id, before, v.Applied, err, want)
	}
	if want {
		model[tpl.ID] = before &^ bits
	}
	return ""
}

// TestSameRowFromManyCallers changes the bits of one row concurrently.
func TestSameRowFromManyCallers(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	var all sync.WaitGroup
	var mu sync.Mutex
	won := map[int]int{}
	for c := range 8 * 60 {
		all.Go(func() {
			bit := c % 60
			v, err := w.Reservations.Reserve(context.Background(), reminder.Change{TemplateID: tpl.ID, UserID: 1, Bits: reminder.StoredBitmap(1 << bit)})
			if err != nil {
				t.Error(err)
			}
			if v.Applied {
				mu.Lock()
				won[bit]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for bit := range 60 {
		if won[bit] != 1 {
			t.Errorf("bit %d was accepted %d times", bit, won[bit])
		}
	}
	if n := w.Number(`select slots from reservations`); n != 1<<60-1 {
		t.Errorf("stored %d", n)
	}
}

// TestPoisonedRowFailsAlone puts a row that the table refuses among good ones.
func TestPoisonedRowFailsAlone(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	var all sync.WaitGroup
	for id := range 300 {
		all.Go(func() {
			who := user.ID(id + 1)
			if id == 150 {
				who = -1 // violates a check
			}
			v, err := w.Reservations.Reserve(context.Background(), reminder.Change{TemplateID: tpl.ID, UserID: who, Bits: reminder.StoredBitmap(1)})
			if (err != nil) != (who < 0) || v.Applied != (who > 0) {
				t.Errorf("user %d: %+v %v", who, v, err)
			}
		})
	}
	all.Wait()
	if n := w.Number(`select count(*) from reservations`); n != 299 {
		t.Errorf("%d rows", n)
	}
}
