package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// spread cuts and delivers the announcement.
func (g *rig) spread(id int64) {
	g.Helper()
	worker := &reminder.Announcer{Store: postgres.NewAnnouncements(g.db), Queue: idle{}, Now: g.now, LeaseFor: 10 * time.Second}
	g.must(worker.Cut(g.Context(), id))
	g.deliver(takes)
}

// workOff lets a worker do what waits.
func (g *rig) workOff(id int64) job.Job {
	g.Helper()
	w := &job.Worker{Store: postgres.NewJobs(g.db), Runners: map[string]job.Runner{template.BulkKind: &template.Bulks{Templates: g.Templates}},
		LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 }}
	g.must(w.Run(g.Context(), id))
	j, err := g.Jobs.Job(g.Context(), staff.System(), id)
	g.must(err)
	return j
}

func (g *rig) states(ids ...int64) string {
	g.Helper()
	var list []string
	for _, id := range ids {
		t, err := g.Templates.Template(g.Context(), staff.System(), id)
		g.must(err)
		list = append(list, string(t.State(g.now())))
	}
	return strings.Join(list, " ")
}

// job is the job whose page the answer leads to.
func (a answer) job() (id int64) {
	a.Helper()
	if _, err := fmt.Sscanf(a.header.Get("Location"), "/jobs/%d", &id); err != nil {
		a.Fatalf("%s leads to %q", a.what, a.header.Get("Location"))
	}
	return id
}

// cells reads the next event that brings values.
func (g *rig) cells(from <-chan message) (id string, cells map[string]string) {
	g.Helper()
	m := g.next(from)
	if m.event != "dropbell:cells" {
		g.Fatalf("%+v", m)
	}
	g.must(json.Unmarshal([]byte(m.data), &cells))
	return m.id, cells
}

// sending pretends that the slot is going out: n due on the channel, of which
// sent are out.
func (g *rig) sending(t template.Template, slot, channel, n, sent int) {
	g.Helper()
	g.exec(`update slots set state = 'sending', fired_at = due_at + interval '42 ms' where template_id = $1 and slot = $2`, t.ID, slot)
	g.exec(`insert into slot_results (slot_id, channel, reserved, expected) select id, $3, $4, 10 from slots where template_id = $1 and slot = $2
		on conflict do nothing`, t.ID, slot, channel, n)
	g.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count, sent_count, started_at, late)
		select 'reminder', id, template_id, $3, 1, 1000, due_at, opens_at, '', $4, $5, now(), array_fill($5::int, array[1], array[5]) from slots where template_id = $1 and slot = $2
		on conflict (kind, owner_id, channel, from_user) do update set sent_count = excluded.sent_count, late = excluded.late`, t.ID, slot, channel, n, sent)
}

func berlin(t *testing.T) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// typedForm is a form that can be saved.
func (g *rig) typedForm(opensIn time.Duration) url.Values {
	opens := g.now().Add(opensIn).Truncate(time.Minute)
	f := url.Values{}
	for k, v := range map[string]string{"name": "Moon cake night", "shop_number": "10", "description": "Line one\r\nLine two", "kind": "threshold_off",
		"amount_off": "20.50", "threshold": "1,000", "max_off": "left over", "percent_off": "nonsense", "currency": "cny", "target": "shop", "product": "left over",
		"validity": "hours", "valid_hours": "72", "stock": "50,000", "per_user_limit": "1", "obtain": "claim", "claim_mode": "durable",
		"claim_url": "https://shop.example/claim"} {
		f.Set(k, v)
	}
	f.Set("opens_at", opens.In(berlin(g.T)).Format("2006-01-02T15:04"))
	f.Set("closes_at", opens.Add(4*time.Hour).In(berlin(g.T)).Format("2006-01-02T15:04"))
	return f
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}
