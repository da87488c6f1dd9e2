package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/task"
	"dropbell/domain/user"
)

// provider is a sender that takes its time and answers as told.
type provider struct {
	channel Channel
	chunk   int
	takes   time.Duration
	answer  func(id user.ID, time int) Result // nil = delivered

	mu       sync.Mutex
	calls    []time.Time
	titles   map[string]int
	got      map[user.ID]int // how often the provider took responsibility
	tried    map[user.ID]int
	inFlight int
	most     int
}

func newProvider(c Channel, chunk int, takes time.Duration) *provider {
	return &provider{channel: c, chunk: chunk, takes: takes, titles: map[string]int{}, got: map[user.ID]int{}, tried: map[user.ID]int{}}
}

func (p *provider) Channel() Channel { return p.channel }
func (p *provider) ChunkSize() int   { return p.chunk }

func (p *provider) Send(ctx context.Context, ms []Message) []Result {
	p.enter()
	defer p.leave()
	if p.takes > 0 {
		t := time.NewTimer(p.takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return Repeat(Result{Status: Transient, Detail: "cut off"}, len(ms))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Result, len(ms))
	for i, m := range ms {
		p.tried[m.To.ID]++
		if m.Content != nil {
			p.titles[m.Content.Title]++
		}
		out[i] = Result{Status: Delivered}
		if p.answer != nil {
			out[i] = p.answer(m.To.ID, p.tried[m.To.ID])
		}
		if out[i].Status == Delivered {
			p.got[m.To.ID]++
		}
	}
	return out
}

func (p *provider) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, time.Now())
	p.inFlight++
	p.most = max(p.most, p.inFlight)
}

func (p *provider) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
}

// gate is an admission that answers as told.
type gate struct {
	mu     sync.Mutex
	admit  func(call int) time.Duration // nil = at once
	asked  int
	people int
	unused int
	dead   bool // something was given back in a context that has ended
	good   int
	bad    []string
	// throttled are the pauses that providers requested. Until heldUntil no message is admitted.
	throttled []time.Duration
	heldUntil time.Time
}

func (g *gate) Admit(_ context.Context, l Load) (time.Duration, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if left := time.Until(g.heldUntil); left > 0 {
		return left, ReasonThrottled
	}
	if g.admit != nil {
		if wait := g.admit(g.asked); wait > 0 {
			return wait, "told to"
		}
	}
	g.people += l.Messages
	return 0, ""
}

func (g *gate) Unused(ctx context.Context, l Load) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.people -= l.Messages
	g.unused++
	g.dead = g.dead || ctx.Err() != nil
}

func (g *gate) Report(_ context.Context, _ Channel, c Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.OK {
		g.good++
	} else {
		g.bad = append(g.bad, c.Detail)
	}
	if c.Throttled {
		g.throttled = append(g.throttled, c.After)
		g.heldUntil = time.Now().Add(c.After)
	}
}

// fakeQueue is a queue that remembers; like a real one it refuses a dead context.
type fakeQueue struct {
	mu    sync.Mutex
	tasks []task.Task
}

func (b *fakeQueue) Enqueue(ctx context.Context, ts ...task.Task) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = append(b.tasks, ts...)
	return ctx.Err()
}

// fixture is a service on a fakeStore with one provider.
type fixture struct {
	*Service
	t        *testing.T
	depot    *fakeStore
	provider *provider
	gate     *gate
	bell     *fakeQueue
}

func newFixture(t *testing.T, d *fakeStore, p *provider) *fixture {
	r := &fixture{t: t, depot: d, provider: p, gate: &gate{}, bell: &fakeQueue{}}
	r.Service = &Service{Store: d, Queue: r.bell, Admission: r.gate, Senders: map[Channel]Sender{p.channel: p},
		Parallel: map[Channel]int{}, Policy: DefaultPolicy(), LeaseFor: 9 * time.Second,
		Random: func() float64 { return 0.5 }, Now: time.Now}
	return r
}

func (r *fixture) run() error { return r.RunNext(r.t.Context(), r.depot.channel) }

// must runs the batch once and fails unless that goes well.
func (r *fixture) must() {
	r.t.Helper()
	if err := r.run(); err != nil {
		r.t.Fatal(err)
	}
}

// finish runs the batch whenever it is ready until it is done.
func (r *fixture) finish() {
	r.t.Helper()
	for range 10_000 {
		switch err := r.run(); {
		case r.depot.done:
			return
		case errors.Is(err, ErrNoWork):
			<-time.After(max(time.Until(r.depot.readyAt), time.Millisecond)) // the bubble's clock
		case err != nil:
			r.t.Fatal(err)
		}
	}
	r.t.Fatalf("the batch is never done: %v", r.depot.outcomes())
}

// want fails unless exactly these outcomes were recorded.
func (r *fixture) want(counts map[Outcome]int) {
	r.t.Helper()
	if got := r.depot.outcomes(); !maps.Equal(got, counts) {
		r.t.Errorf("outcomes %v, want %v", got, counts)
	}
}

// once fails unless the messages that the provider took are exactly the recorded ones, each once.
func (r *fixture) once() {
	r.t.Helper()
	for _, id := range r.depot.due {
		if got, recorded := r.provider.got[id], r.depot.sent[id]; got != recorded || got > 1 {
			r.t.Errorf("user %d was sent %d times and recorded %d times", id, got, recorded)
		}
	}
	if extra := slices.Collect(maps.Keys(r.provider.got)); len(extra) > len(r.depot.due) {
		r.t.Errorf("sent to %d of %d users", len(extra), len(r.depot.due))
	}
}
