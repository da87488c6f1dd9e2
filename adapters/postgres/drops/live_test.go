package drops_test

import (
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/live"
)

// TestLiveRows: a published drop gets one row. Of two workers only one gets the drop. A drop
// that is woken while a worker holds it stays due. A worker without the lease records nothing.
func TestLiveRows(t *testing.T) {
	w := newFixture(t)
	drop := w.Published(time.Hour)
	w.Draft(nil)
	s := dropsdb.NewLive(w.DB)
	for range 2 {
		w.Must(s.Cover(t.Context(), 10))
	}
	lease := func(want int) (string, []live.Case) {
		t.Helper()
		token, due, err := s.Lease(t.Context(), 10, time.Minute)
		w.Must(err)
		if len(due) != want {
			t.Fatalf("%d due, want %d", len(due), want)
		}
		return token, due
	}
	token, due := lease(1)
	if due[0].Template.ID != drop.ID || due[0].Channel != "" || due[0].Told != nil || due[0].Now.IsZero() {
		t.Errorf("%+v", due[0])
	}
	if n := w.Number(`select count(*) from live_channels where next_at = lease_until`); n != 1 {
		t.Error("the next look is not the end of the lease")
	}
	lease(0)
	told := live.ContentAt(due[0].Template, due[0].Now)
	result := live.Result{TemplateID: drop.ID, Channel: "c1", Told: &told, Broadcast: true, Again: time.Hour}
	w.Must(s.Record(t.Context(), "00000000-0000-0000-0000-000000000000", []live.Result{result}))
	if name, err := s.Channel(t.Context(), drop.ID); name != "" || err != nil {
		t.Errorf("%q %v", name, err)
	}
	w.Must(s.Record(t.Context(), token, []live.Result{result}))
	if name, err := s.Channel(t.Context(), drop.ID); name != "c1" || err != nil {
		t.Errorf("%q %v", name, err)
	}
	lease(0)
	w.Must(s.Wake(t.Context(), drop.ID))
	if is, err := s.Due(t.Context()); !is || err != nil {
		t.Errorf("due %v %v", is, err)
	}
	token, due = lease(1)
	if due[0].Told == nil || *due[0].Told != told || due[0].Channel != "c1" || due[0].ToldAt.IsZero() {
		t.Errorf("%+v", due[0])
	}
	w.Must(s.Wake(t.Context(), drop.ID)) // while it is held
	w.Must(s.Record(t.Context(), token, []live.Result{result}))
	token, _ = lease(1)
	// The worker dies: its lease ends.
	w.Exec(`update live_channels set lease_until = now(), next_at = now()`)
	second, _ := lease(1)
	result.Remove = true
	w.Must(s.Record(t.Context(), token, []live.Result{result}))
	if n := w.Number(`select count(*) from live_channels`); n != 1 {
		t.Error("a lost lease removed the row")
	}
	w.Must(s.Record(t.Context(), second, []live.Result{result}))
	if n := w.Number(`select count(*) from live_channels`); n != 0 {
		t.Error("the row is left")
	}
}
