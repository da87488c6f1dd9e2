package postgres_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// memoryQueue collects tasks; the tests run them when they like.
type memoryQueue struct {
	mu      sync.Mutex
	tasks   []task.Task
	removed []task.Task
}

func (q *memoryQueue) Enqueue(_ context.Context, ts ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, ts...)
	return nil
}

func (q *memoryQueue) Remove(_ context.Context, ts ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removed = append(q.removed, ts...)
	return nil
}

type openGate struct{}

func (openGate) Admit(context.Context, delivery.Load) (time.Duration, string) { return 0, "" }
func (openGate) Unused(context.Context, delivery.Load)                        {}
func (openGate) Report(context.Context, delivery.Channel, delivery.Call)      {}

// sink is a provider that counts what it got and answers as told.
type sink struct {
	channel delivery.Channel
	chunk   int
	mu      sync.Mutex
	got     map[string]int
	answer  func(m delivery.Message, times int) delivery.Result
}

func newSink(c delivery.Channel, chunk int) *sink {
	return &sink{channel: c, chunk: chunk, got: map[string]int{}}
}

func (s *sink) Channel() delivery.Channel { return s.channel }
func (s *sink) ChunkSize() int            { return s.chunk }
func (s *sink) Send(_ context.Context, ms []delivery.Message) []delivery.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]delivery.Result, len(ms))
	for i, m := range ms {
		s.got[m.IdempotencyKey()]++
		out[i] = delivery.Result{Status: delivery.Delivered}
		if s.answer != nil {
			out[i] = s.answer(m, s.got[m.IdempotencyKey()])
		}
	}
	return out
}

func (w *world) timers(q *memoryQueue) *reminder.Timers {
	return &reminder.Timers{Store: w.Slots, Queue: q, Now: pgtest.Clock, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
}

func (w *world) deliverer(q *memoryQueue, senders ...delivery.Sender) *delivery.Service {
	s := &delivery.Service{Store: w.Batches, Queue: q, Admission: openGate{}, Senders: map[delivery.Channel]delivery.Sender{},
		Parallel: map[delivery.Channel]int{delivery.Webhook: 4}, Policy: delivery.DefaultPolicy(), LeaseFor: 8 * time.Second,
		Random: rand.Float64, Now: pgtest.Clock}
	for _, snd := range senders {
		s.Senders[snd.Channel()] = snd
	}
	return s
}

// seed reserves slots 1 and 2 on some channels for many users, in a shuffled order.
func (w *world) seed(t template.Template, users int, rs ...reminder.Reminder) {
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

// balanced fails unless the template's books are in order; it returns the
// counted sums per channel.
func (w *world) balanced(t template.Template) map[delivery.Channel]delivery.Counts {
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
