package reminder_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// The standing of a finished slot depends on its recipients' outcomes. Only a slot whose
// recipients were reminded is in order.
func TestStanding(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	fired := now.Add(-time.Minute)
	for _, c := range []struct {
		state   reminder.SlotState
		dueIn   time.Duration
		planned time.Duration // after it was due
		counts  delivery.Counts
		want    reminder.Standing
	}{
		{reminder.Waiting, time.Minute, 0, delivery.Counts{}, "waiting"},
		{reminder.Waiting, -time.Minute, 0, delivery.Counts{}, reminder.Overdue},
		{reminder.Sending, -time.Minute, 0, delivery.Counts{Reserved: 2, InFlight: 2}, "sending"},
		{reminder.Passed, -time.Minute, 0, delivery.Counts{}, "passed"},
		{reminder.Finished, -time.Minute, 0, delivery.Counts{}, reminder.Unbooked},
		{reminder.Finished, -time.Minute, 30 * time.Second, delivery.Counts{}, reminder.FellAway},
		{reminder.Finished, -time.Minute, 30 * time.Second, delivery.Counts{Reserved: 1, Sent: 1}, reminder.Reminded},
		{reminder.Finished, -time.Minute, 0, delivery.Counts{Reserved: 3, Sent: 2, Skipped: 1}, reminder.Reminded},
		{reminder.Finished, -time.Minute, 0, delivery.Counts{Reserved: 3, Sent: 2, Dead: 1}, reminder.Incomplete},
		{reminder.Finished, -time.Minute, 0, delivery.Counts{Reserved: 3, Sent: 1, Expired: 2}, reminder.Incomplete},
		{reminder.Finished, -time.Minute, 0, delivery.Counts{Reserved: 3, Skipped: 3}, reminder.Unreached},
	} {
		s := reminder.Slot{State: c.state, DueAt: now.Add(c.dueIn)}
		if c.planned > 0 {
			s.PlannedAt = s.DueAt.Add(c.planned)
		}
		if c.counts.Reserved > 0 {
			s.FiredAt = &fired
		}
		if got := s.Standing(c.counts, now); got != c.want {
			t.Errorf("%s, %+v: %s, want %s", c.state, c.counts, got, c.want)
		}
	}
}

// boardOf returns the board of an opening. Slots that are due by now have fired, for the booked
// number of reminders; the other slots wait.
func boardOf(opensAt, now time.Time, booked int64) (b reminder.Board) {
	for _, s := range template.AllSlots() {
		row := reminder.Row{Slot: reminder.Slot{Slot: s, OpensAt: opensAt, DueAt: s.DueAt(opensAt), State: reminder.Waiting}}
		row.Cells[1] = reminder.Cell{Channel: 1, Booked: booked}
		if due := row.DueAt; !due.After(now) {
			row.State, row.FiredAt = reminder.Finished, &due
			row.Cells[1].Counts = delivery.Counts{Reserved: booked - 1, Sent: booked - 2, Dead: 1}
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// Booked sums waiting and fired reminders. A slot that has fired counts its recipients, not the
// booked reminders.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	b := boardOf(now.Add(32*time.Minute), now, 10) // 35 to 60 minutes before have fired
	b.Rows[0].State = reminder.SlotEnded           // 5 minutes before will not
	p := b.Progress()
	want := delivery.Counts{Reserved: 6 * 9, Sent: 6 * 8, Dead: 6}
	if p.Expected() != 6*9+5*10 {
		t.Errorf("%+v, expected %d", p, p.Expected())
	}
	wanted := p
	wanted.Counts, wanted.Waiting, wanted.Booked = want, 5*10, 6*9+6*10
	if diff := cmp.Diff(wanted, p); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
	if sum := b.Totals()[1]; sum.Booked != p.Booked || sum.Counts != p.Counts {
		t.Errorf("the channel has %+v of %+v", sum, p)
	}
	var c reminder.Cockpit
	for _, r := range b.Rows {
		row := reminder.CockpitRow{Slot: r.Slot}
		for i, cell := range r.Cells {
			row.Lanes[i].Cell = cell
		}
		c.Rows = append(c.Rows, row)
	}
	if got := c.Progress(); got != p {
		t.Errorf("the cockpit says %+v, the board %+v", got, p)
	}
}

// A reminder time is lost if it could be booked and lies in the past with the new opening.
func TestMoveTo(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	b := boardOf(now.Add(2*time.Hour), now, 10)
	for _, c := range []struct {
		in   time.Duration
		want reminder.MoveEffect
	}{
		{3 * time.Hour, reminder.MoveEffect{Booked: 120}},
		{46 * time.Minute, reminder.MoveEffect{Booked: 120, Lost: 3, Late: 30}},
		{45 * time.Minute, reminder.MoveEffect{Booked: 120, Lost: 4, Late: 40}},
	} {
		if got := b.MoveTo(now.Add(c.in), now); got != c.want {
			t.Errorf("in %s: %+v, want %+v", c.in, got, c.want)
		}
	}
	fired := boardOf(now.Add(52*time.Minute), now, 10) // two slots have fired
	if got, want := fired.MoveTo(now.Add(40*time.Minute), now), (reminder.MoveEffect{Booked: 120, Reminded: 16, Lost: 3, Late: 50}); got != want {
		t.Errorf("after two slots: %+v, want %+v", got, want)
	}
	b.Rows[11].PlannedAt, b.Rows[10].PlannedAt = b.Rows[11].DueAt.Add(time.Second), b.Rows[10].DueAt.Add(time.Second)
	b.Rows[10].State = reminder.Passed // at the publication
	if n := b.PastAtMove(); n != 1 {
		t.Errorf("%d slots lay in the past", n)
	}
}
