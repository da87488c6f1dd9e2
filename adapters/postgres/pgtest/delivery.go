package pgtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// MemoryQueue collects tasks; the tests run them when they like.
type MemoryQueue struct {
	mu      sync.Mutex
	Tasks   []task.Task
	Removed []task.Task
}

// Enqueue collects the tasks.
func (q *MemoryQueue) Enqueue(_ context.Context, ts ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Tasks = append(q.Tasks, ts...)
	return nil
}

// Remove notes tasks that are not wanted any more.
func (q *MemoryQueue) Remove(_ context.Context, ts ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Removed = append(q.Removed, ts...)
	return nil
}

type openGate struct{}

func (openGate) Admit(context.Context, delivery.Load) (time.Duration, string) { return 0, "" }
func (openGate) Unused(context.Context, delivery.Load)                        {}
func (openGate) Report(context.Context, delivery.Channel, delivery.Call)      {}

// Sink is a provider that counts the messages it got and gives the answers that the test sets.
type Sink struct {
	Over   delivery.Channel
	chunk  int
	Mu     sync.Mutex
	Got    map[string]int
	Answer func(m delivery.Message, times int) delivery.Result
}

// NewSink returns a provider that takes chunk messages at a time.
func NewSink(c delivery.Channel, chunk int) *Sink {
	return &Sink{Over: c, chunk: chunk, Got: map[string]int{}}
}

// Channel is part of [delivery.Sender].
func (s *Sink) Channel() delivery.Channel { return s.Over }
func (s *Sink) ChunkSize() int            { return s.chunk }
func (s *Sink) Send(_ context.Context, ms []delivery.Message) []delivery.Result {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := make([]delivery.Result, len(ms))
	for i, m := range ms {
		s.Got[m.IdempotencyKey()]++
		out[i] = delivery.Result{Status: delivery.Delivered}
		if s.Answer != nil {
			out[i] = s.Answer(m, s.Got[m.IdempotencyKey()])
		}
	}
	return out
}

// Timers fires slots whose batches go to q.
func (w *Fixture) Timers(q *MemoryQueue) *reminder.Timers {
	return &reminder.Timers{Store: w.Slots, Queue: q, Now: Clock, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
}

// Deliverer sends over the senders; nothing holds it back.
func (w *Fixture) Deliverer(q *MemoryQueue, senders ...delivery.Sender) *delivery.Service {
	s := &delivery.Service{Store: w.Batches, Queue: q, Admission: openGate{}, Senders: map[delivery.Channel]delivery.Sender{},
		Parallel: map[delivery.Channel]int{delivery.Webhook: 4}, Policy: delivery.DefaultPolicy(), LeaseFor: 8 * time.Second,
		Random: rand.Float64, Now: Clock}
	for _, snd := range senders {
		s.Senders[snd.Channel()] = snd
	}
	return s
}

// Seed reserves slots 1 and 2 on some channels for many users, in a shuffled order.
func (w *Fixture) Seed(t template.Template, users int, rs ...reminder.Reminder) {
	w.Helper()
	var all sync.WaitGroup
	for _, i := range rand.Perm(users) {
		all.Go(func() {
			id := user.ID(int64(i)*7919 + 1)
			if v, err := w.Reservations.Reserve(context.Background(), reminder.Change{TemplateID: t.ID, UserID: id, Bits: reminder.BitmapOf(rs...)}); err != nil || !v.Applied {
				w.Errorf("seed %d: %+v %v", id, v, err)
			}
		})
	}
	all.Wait()
}

// Balanced fails the test unless the template's counts add up; it returns the counted sums per
// channel.
func (w *Fixture) Balanced(t template.Template) map[delivery.Channel]delivery.Counts {
	w.Helper()
	lines, err := w.Boards.Balance(w.Context(), t.ID)
	w.Must(err)
	sums := map[delivery.Channel]delivery.Counts{}
	for _, l := range lines {
		if l.Difference() != 0 {
			w.Errorf("slot %d %s is off by %d: %+v", l.Slot.Slot, l.Channel, l.Difference(), l)
		}
		sums[l.Channel] = sums[l.Channel].Plus(l.Counted)
	}
	return sums
}
