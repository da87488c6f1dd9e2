package console

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/template"
)

// provider answers for a channel.
type provider struct {
	channel delivery.Channel
	answer  func(delivery.Message) delivery.Result
}

func (p provider) Channel() delivery.Channel { return p.channel }
func (p provider) ChunkSize() int            { return 100 }
func (p provider) Send(_ context.Context, ms []delivery.Message) []delivery.Result {
	out := make([]delivery.Result, len(ms))
	for i, m := range ms {
		out[i] = p.answer(m)
	}
	return out
}

func takes(delivery.Message) delivery.Result { return delivery.Result{Status: delivery.Delivered} }

// idle stands in for what workers are woken and held back by.
type idle struct{}

func (idle) Enqueue(context.Context, ...task.Task) error { return nil }
func (idle) Remove(context.Context, ...task.Task) error  { return nil }
func (idle) Admit(context.Context, delivery.Load) (time.Duration, string) {
	return 0, ""
}
func (idle) Unused(context.Context, delivery.Load)                   {}
func (idle) Report(context.Context, delivery.Channel, delivery.Call) {}

// fire pretends that slot k is due, fires it and has it delivered. Whoever the
// provider fails once is dead.
func (g *rig) fire(t template.Template, k template.Slot, answer func(delivery.Message) delivery.Result) reminder.Slot {
	g.Helper()
	board, err := g.Board.Board(g.Context(), t.ID)
	g.must(err)
	i := slices.IndexFunc(board.Rows, func(r reminder.Row) bool { return r.Slot.Slot == k })
	if i < 0 {
		g.Fatalf("template %d has no slot %d", t.ID, k)
	}
	s := board.Rows[i].Slot
	g.exec(`update slots set due_at = clock_timestamp() - interval '1 second' where id = $1`, s.ID)
	timers := &reminder.Timers{Store: postgres.NewSlots(g.db), Queue: idle{}, Now: g.now, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
	g.must(timers.Fire(g.Context(), s.ID))
	g.deliver(answer)
	return s
}

// deliver works off everything that is ready.
func (g *rig) deliver(answer func(delivery.Message) delivery.Result) {
	g.Helper()
	d := &delivery.Service{Store: postgres.NewBatches(g.db), Queue: idle{}, Admission: idle{}, Senders: map[delivery.Channel]delivery.Sender{},
		Policy: delivery.Policy{MaxAttempts: 1, Base: time.Second, Max: time.Second}, LeaseFor: 10 * time.Second, Random: rand.Float64, Now: g.now}
	for _, c := range delivery.AllChannels() {
		d.Senders[c] = provider{c, answer}
	}
	g.exec(`update exceptions set next_retry_at = now() - interval '1 second' where outcome = 'failed'`)
	g.exec(`update batches set next_run_at = now() where state = 'ready'`)
	for _, c := range delivery.AllChannels() {
		g.must(d.Drain(g.Context(), c))
	}
	_, err := postgres.NewSlots(g.db).FinishSlots(g.Context())
	g.must(err)
	_, err = postgres.NewAnnouncements(g.db).FinishAnnouncements(g.Context())
	g.must(err)
}

// reopen moves the template's opening, as a person would.
func (g *rig) reopen(id int64, by time.Duration) template.Template {
	g.Helper()
	t, err := g.Templates.Template(g.Context(), staff.System(), id)
	g.must(err)
	spec := t.Spec
	spec.OpensAt, spec.ClosesAt = spec.OpensAt.Add(by), spec.ClosesAt.Add(by)
	ada := staff.Actor{Label: "staff:9", Name: "Ada Okafor", Role: staff.Admin}
	t, err = g.Templates.Edit(g.Context(), ada, id, template.Edition{Version: t.Version, Spec: spec})
	g.must(err)
	return t
}

// htmx makes the browser ask for parts of pages.
func (b *browser) htmx() *browser {
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	return b
}
