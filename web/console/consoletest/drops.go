package consoletest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Spread cuts and delivers the announcement.
func (g *Fixture) Spread(id int64) {
	g.Helper()
	worker := &reminder.Announcer{Store: g.Stores.Announcements, Queue: idle{}, Now: g.Now, LeaseFor: 10 * time.Second}
	g.Must(worker.Cut(g.Context(), id))
	g.Deliver(Takes)
}

// WorkOff runs a worker until the job is done.
func (g *Fixture) WorkOff(id int64) job.Job {
	g.Helper()
	w := &job.Worker{Store: g.Stores.Jobs, Runners: map[string]job.Runner{template.BulkKind: &template.Bulks{Templates: g.Templates}},
		LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 }}
	g.Must(w.Run(g.Context(), id))
	j, err := g.Jobs.Job(g.Context(), staff.System(), id)
	g.Must(err)
	return j
}

// StatesOf returns the stored states of templates, one after another.
func (g *Fixture) StatesOf(ids ...int64) string {
	g.Helper()
	var list []string
	for _, id := range ids {
		t, err := g.Templates.Template(g.Context(), staff.System(), id)
		g.Must(err)
		list = append(list, string(t.State(g.Now())))
	}
	return strings.Join(list, " ")
}

// Job is the job whose page the answer leads to.
func (a Answer) Job() (id int64) {
	a.Helper()
	if _, err := fmt.Sscanf(a.Header.Get("Location"), "/jobs/%d", &id); err != nil {
		a.Fatalf("%s leads to %q", a.What, a.Header.Get("Location"))
	}
	return id
}

// Cells reads the next event that brings values.
func (g *Fixture) Cells(from <-chan Message) (id string, cells map[string]string) {
	g.Helper()
	m := g.Next(from)
	if m.Event != "dropbell:cells" {
		g.Fatalf("%+v", m)
	}
	g.Must(json.Unmarshal([]byte(m.Data), &cells))
	return m.ID, cells
}

// Sending stores the state of a slot being sent: n due on the channel, of which sent are out.
func (g *Fixture) Sending(t template.Template, slot, channel, n, sent int) {
	g.Helper()
	g.Exec(`update slots set state = 'sending', fired_at = due_at + interval '42 ms' where template_id = $1 and slot = $2`, t.ID, slot)
	g.Exec(`insert into slot_results (slot_id, channel, reserved, expected) select id, $3, $4, 10 from slots where template_id = $1 and slot = $2
		on conflict do nothing`, t.ID, slot, channel, n)
	g.Exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count, sent_count, started_at, late)
		select 'reminder', id, template_id, $3, 1, 1000, due_at, opens_at, '', $4, $5, now(), array_fill($5::int, array[1], array[5]) from slots where template_id = $1 and slot = $2
		on conflict (kind, owner_id, channel, from_user) do update set sent_count = excluded.sent_count, late = excluded.late`, t.ID, slot, channel, n, sent)
}

// Berlin is the zone of the shops that [Fixture.Shop] makes.
func Berlin(t *testing.T) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// AtNoon sets the console's clock forward to noon in the zone, so that no day of the zone ends
// during the test.
func (g *Fixture) AtNoon(zone *time.Location) {
	now := g.Now().In(zone)
	noon := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, zone)
	if noon.Before(now) {
		noon = noon.AddDate(0, 0, 1)
	}
	g.Wait(noon.Sub(now))
}

// TypedForm is a form that can be saved.
func (g *Fixture) TypedForm(opensIn time.Duration) url.Values {
	opens := g.Now().Add(opensIn).Truncate(time.Minute)
	f := url.Values{}
	for k, v := range map[string]string{"name": "Moon cake night", "shop_number": "10", "description": "Line one\r\nLine two", "kind": "threshold_off",
		"amount_off": "20.50", "threshold": "1,000", "max_off": "left over", "percent_off": "nonsense", "currency": "cny", "target": "shop", "product": "left over",
		"validity": "hours", "valid_hours": "72", "stock": "50,000", "per_user_limit": "1", "obtain": "claim", "claim_mode": "durable",
		"claim_url": "https://shop.example/claim"} {
		f.Set(k, v)
	}
	f.Set("opens_at", opens.In(Berlin(g.T)).Format("2006-01-02T15:04"))
	f.Set("closes_at", opens.Add(4*time.Hour).In(Berlin(g.T)).Format("2006-01-02T15:04"))
	return f
}

// Between returns the part of s between two texts.
func Between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}
