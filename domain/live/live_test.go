package live_test

import (
	"testing"
	"time"

	"dropbell/domain/live"
	"dropbell/domain/template"
)

var opening = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

func drop(stored template.State) template.Template {
	t := template.Template{ID: 1, Stored: stored}
	t.OpensAt, t.ClosesAt, t.Stock, t.Issued = opening, opening.Add(2*time.Hour), 200, 0
	return t
}

// TestContent: the content of activities at each instant.
func TestContent(t *testing.T) {
	for ahead, want := range map[time.Duration]int{2 * time.Hour: 0, time.Hour + time.Second: 0, time.Hour: 60, 55*time.Minute + time.Second: 60, 55 * time.Minute: 55,
		10 * time.Minute: 10, time.Second: 5, 0: 0, -time.Minute: 0} {
		if c := live.ContentAt(drop(template.Published), opening.Add(-ahead)); c.Minutes != want || c.OpensAt != opening.Unix() {
			t.Errorf("%s ahead: %+v", ahead, c)
		}
	}
	for issued, want := range map[int64]int{0: 100, 1: 100, 10: 95, 11: 95, 100: 50, 199: 5, 200: 0} {
		d := drop(template.Published)
		d.Issued = issued
		if c := live.ContentAt(d, opening.Add(time.Minute)); c.Left != want {
			t.Errorf("%d issued: %+v", issued, c)
		}
	}
}

// TestADropFromPublicationToItsEnd follows the decisions about one drop: a channel, one broadcast
// for each slot and each change of state, shares at most every 15 seconds, the end, and the
// removal of the channel.
func TestADropFromPublicationToItsEnd(t *testing.T) {
	c := live.Case{Template: drop(template.Published), Now: opening.Add(-3 * time.Hour)}
	tell := func(at time.Time) live.Move {
		t.Helper()
		c.Now = at
		m := live.Decide(c)
		if m.Step == live.Tell {
			c.Told, c.ToldAt, c.Ended = &m.Content, at, m.End
		}
		return m
	}
	if m := live.Decide(c); m.Step != live.Create || !m.Next.Equal(c.Now) {
		t.Fatalf("%+v", m)
	}
	c.Channel = "channel"
	if m := tell(c.Now); m.Step != live.Tell || !m.Urgent || m.End || !m.Until.Equal(opening) || !m.Next.Equal(c.Now.Add(time.Minute)) {
		t.Fatalf("first: %+v", m)
	}
	if m := tell(c.Now.Add(time.Minute)); m.Step != live.Wait {
		t.Errorf("nothing has changed: %+v", m)
	}
	for at, told := opening.Add(-time.Hour), 0; at.Before(opening); at = at.Add(time.Minute) {
		m := tell(at)
		if m.Step == live.Tell {
			told++
		}
		if on := at.Minute()%5 == 0; on != (m.Step == live.Tell) {
			t.Errorf("%s: %+v", at, m)
		}
		if at.Equal(opening.Add(-time.Minute)) && told != 12 {
			t.Errorf("%d broadcasts for 12 slots", told)
		}
	}
	if m := tell(opening.Add(-5 * time.Second)); m.Step != live.Wait || !m.Next.Equal(opening) {
		t.Errorf("just before the opening: %+v", m)
	}
	c.Template.OpensAt = opening.Add(time.Minute) // moved, which an event that Redis lost would have told
	if m := tell(opening.Add(-30 * time.Second)); m.Step != live.Tell || m.Content.OpensAt != opening.Unix()+60 || !m.Until.Equal(opening.Add(time.Minute)) {
		t.Errorf("moved: %+v", m)
	}
	c.Template.OpensAt = opening
	open := opening.Add(time.Minute)
	if m := tell(open); m.Step != live.Tell || m.Content.State != "open" || !m.Urgent || !m.Next.Equal(open.Add(15*time.Second)) {
		t.Errorf("open: %+v", m)
	}
	c.Template.Issued = 100
	if m := tell(open.Add(5 * time.Second)); m.Step != live.Wait || !m.Next.Equal(open.Add(15*time.Second)) {
		t.Errorf("a share after five seconds: %+v", m)
	}
	if m := tell(open.Add(15 * time.Second)); m.Step != live.Tell || m.Urgent || m.Content.Left != 50 {
		t.Errorf("a share: %+v", m)
	}
	c.Template.Issued = 200
	if m := tell(open.Add(16 * time.Second)); m.Step != live.Tell || !m.Urgent || m.Content.State != "sold_out" {
		t.Errorf("sold out: %+v", m)
	}
	c.Template.Stored = template.Paused
	if m := tell(open.Add(17 * time.Second)); m.Step != live.Tell || m.Content.State != "paused" {
		t.Errorf("paused: %+v", m)
	}
	end := c.Template.ClosesAt
	if m := tell(end); m.Step != live.Tell || !m.End || m.Content.State != "closed" || !m.Until.After(end) || !m.Next.Equal(end.Add(time.Minute)) {
		t.Errorf("end: %+v", m)
	}
	if m := tell(end.Add(time.Minute)); m.Step != live.Wait {
		t.Errorf("after the end: %+v", m)
	}
	c.Template.Stored = template.Published
	c.Template.ClosesAt = end.Add(time.Hour) // the end was undone, which an event that Redis lost would have told
	if m := tell(end.Add(2 * time.Minute)); m.Step != live.Tell || m.End || m.Content.State != "sold_out" {
		t.Errorf("after the end was undone: %+v", m)
	}
	c.Template.ClosesAt = end
	if m := tell(end.Add(3 * time.Minute)); m.Step != live.Tell || !m.End {
		t.Errorf("ended again: %+v", m)
	}
	if m := tell(end.Add(live.KeepFor - time.Second)); m.Step != live.Wait || !m.Next.Equal(end.Add(live.KeepFor)) {
		t.Errorf("shortly before the removal: %+v", m)
	}
	if m := tell(end.Add(live.KeepFor)); m.Step != live.Delete {
		t.Errorf("removal: %+v", m)
	}
	if m := live.Decide(live.Case{Template: drop(template.Closed), Now: end}); m.Step != live.Forget {
		t.Errorf("a drop that ended without a channel: %+v", m)
	}
}

// TestALateWorkerTellsThePresent: past states are not broadcast.
func TestALateWorkerTellsThePresent(t *testing.T) {
	c := live.Case{Template: drop(template.Published), Channel: "channel", Now: opening.Add(-3 * time.Minute)}
	if m := live.Decide(c); m.Step != live.Tell || m.Content.Minutes != 5 || !m.Until.Equal(opening) {
		t.Errorf("%+v", m)
	}
	c.Template.Stored = template.Cancelled
	if m := live.Decide(c); m.Step != live.Tell || !m.End || m.Content.State != "cancelled" || m.Content.Minutes != 0 {
		t.Errorf("cancelled: %+v", m)
	}
}
