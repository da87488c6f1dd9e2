package consoletest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/template"
)

// Provider answers for a channel.
type Provider struct {
	channel delivery.Channel
	answer  func(delivery.Message) delivery.Result
}

// NewProvider returns a provider of the channel that answers like this.
func NewProvider(channel delivery.Channel, answer func(delivery.Message) delivery.Result) Provider {
	return Provider{channel: channel, answer: answer}
}

func (p Provider) Channel() delivery.Channel { return p.channel }
func (p Provider) ChunkSize() int            { return 100 }
func (p Provider) Send(_ context.Context, ms []delivery.Message) []delivery.Result {
	out := make([]delivery.Result, len(ms))
	for i, m := range ms {
		out[i] = p.answer(m)
	}
	return out
}

// Takes accepts every message.
func Takes(delivery.Message) delivery.Result { return delivery.Result{Status: delivery.Delivered} }

// idle stands in for the task queue and for the rate limits of workers.
type idle struct{}

func (idle) Enqueue(context.Context, ...task.Task) error { return nil }
func (idle) Remove(context.Context, ...task.Task) error  { return nil }
func (idle) Admit(context.Context, delivery.Load) (time.Duration, string) {
	return 0, ""
}
func (idle) Unused(context.Context, delivery.Load)                   {}
func (idle) Report(context.Context, delivery.Channel, delivery.Call) {}

// Fire makes slot k due, fires it and has it delivered. A recipient that the provider refuses once
// becomes a dead letter.
func (g *Fixture) Fire(t template.Template, k template.Slot, answer func(delivery.Message) delivery.Result) reminder.Slot {
	g.Helper()
	board, err := g.Board.Board(g.Context(), t.ID)
	g.Must(err)
	i := slices.IndexFunc(board.Rows, func(r reminder.Row) bool { return r.Slot.Slot == k })
	if i < 0 {
		g.Fatalf("template %d has no slot %d", t.ID, k)
	}
	s := board.Rows[i].Slot
	g.Exec(`update slots set due_at = clock_timestamp() - interval '1 second' where id = $1`, s.ID)
	timers := &reminder.Timers{Store: g.Stores.Slots, Queue: idle{}, Now: g.Now, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
	g.Must(timers.Fire(g.Context(), s.ID))
	g.Deliver(answer)
	return s
}

// Deliver works off everything that is ready.
func (g *Fixture) Deliver(answer func(delivery.Message) delivery.Result) {
	g.Helper()
	d := &delivery.Service{Store: g.Stores.Batches, Queue: idle{}, Admission: idle{}, Senders: map[delivery.Channel]delivery.Sender{},
		Policy: delivery.Policy{MaxAttempts: 1, Base: time.Second, Max: time.Second}, LeaseFor: 10 * time.Second, Random: rand.Float64, Now: g.Now}
	for _, c := range delivery.AllChannels() {
		d.Senders[c] = Provider{c, answer}
	}
	g.Exec(`update exceptions set next_retry_at = now() - interval '1 second' where outcome = 'failed'`)
	g.Exec(`update batches set next_run_at = now() where state = 'ready'`)
	for _, c := range delivery.AllChannels() {
		g.Must(d.Drain(g.Context(), c))
	}
	_, err := g.Stores.Slots.FinishSlots(g.Context())
	g.Must(err)
	_, err = g.Stores.Announcements.FinishAnnouncements(g.Context())
	g.Must(err)
}

// Reopen moves the template's opening, as staff would.
func (g *Fixture) Reopen(id int64, by time.Duration) template.Template {
	g.Helper()
	t, err := g.Templates.Template(g.Context(), staff.System(), id)
	g.Must(err)
	spec := t.Spec
	spec.OpensAt, spec.ClosesAt = spec.OpensAt.Add(by), spec.ClosesAt.Add(by)
	ada := staff.Actor{Label: "staff:9", Name: "Ada Okafor", Role: staff.Admin}
	t, err = g.Templates.Edit(g.Context(), ada, id, template.Edition{Version: t.Version, Spec: spec})
	g.Must(err)
	return t
}

// Htmx makes the browser request parts of pages.
func (b *Browser) Htmx() *Browser {
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	return b
}
