// Package sendertest tests the sender of every channel against one contract, [delivery.Sender].
// Only tests import it.
package sendertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// prompt is how long a sender may take to notice the end of its context on a machine that is
// busy with other tests.
const prompt = 3 * time.Second

// A Harness says how to build the sender under test.
type Harness struct {
	// Accepting returns a sender whose provider accepts everything.
	Accepting func(t *testing.T) delivery.Sender
	// Stalled returns a sender whose provider takes calls and never answers;
	// nil for a channel without a provider.
	Stalled func(t *testing.T) delivery.Sender
	// Unreachable changes a user so that this channel cannot reach the user; nil = the channel
	// reaches every user.
	Unreachable func(u *user.User)
	// Prepare completes a user for this channel; may be nil.
	Prepare func(u *user.User)
	// AtOnce is how many messages of one Send are under way at once, for a sender that hands
	// over its messages one by one; 0 = the sender hands over each call as a whole.
	AtOnce int
}

// Run checks the sender of h.
func Run(t *testing.T, h Harness) {
	t.Run("describes itself", h.describes)
	t.Run("no messages, no results", h.none)
	t.Run("one result per message", h.onePerMessage)
	t.Run("results are in order", h.inOrder)
	t.Run("context ended before", h.endedBefore)
	t.Run("context ends inside", h.endsInside)
	t.Run("concurrent use", h.concurrent)
	t.Run("a message that makes it panic", h.panics)
	t.Run("what is taken is recorded", h.records)
	t.Run("what cannot be recorded", h.cannotRecord)
}

// Messages returns n messages on the channel about one drop, which opens in ten minutes. The
// recipients are users 1 to n, with every kind of contact.
func Messages(channel delivery.Channel, n int) []delivery.Message {
	now := time.Now().Truncate(time.Second)
	subject := &delivery.Subject{
		Kind:         delivery.KindReminder,
		TemplateID:   7,
		TemplateName: "Spring & friends",
		ShopNumber:   "S1",
		Slot:         2,
		DueAt:        now,
		OpensAt:      now.Add(10 * time.Minute),
		ClaimURL:     "https://shop.example/claim/7",
	}
	content := delivery.Render(nil, *subject, delivery.Email, user.User{Locale: "en"})
	messages := make([]delivery.Message, n)
	for i := range messages {
		messages[i] = delivery.Message{To: person(i + 1), Channel: channel, Subject: subject, Content: &content}
	}
	return messages
}

func person(n int) *user.User {
	return &user.User{
		ID:     user.ID(n),
		Name:   fmt.Sprintf("Reader %d", n),
		Email:  fmt.Sprintf("reader%d@example.com", n),
		Phone:  fmt.Sprintf("+86138%08d", n),
		Locale: "en",
	}
}

func (h Harness) messages(s delivery.Sender, n int) []delivery.Message {
	messages := Messages(s.Channel(), n)
	for i := range messages {
		if h.Prepare != nil {
			h.Prepare(messages[i].To)
		}
	}
	return messages
}

func (h Harness) describes(t *testing.T) {
	s := h.Accepting(t)
	if !s.Channel().Valid() {
		t.Errorf("channel %d does not exist", s.Channel())
	}
	if s.ChunkSize() < 1 {
		t.Errorf("chunk size is %d", s.ChunkSize())
	}
}

func (h Harness) none(t *testing.T) {
	if got := h.Accepting(t).Send(t.Context(), nil); len(got) != 0 {
		t.Errorf("got %d results for no messages", len(got))
	}
}

func (h Harness) onePerMessage(t *testing.T) {
	s := h.Accepting(t)
	for _, n := range []int{1, 2, s.ChunkSize()} {
		expect(t, s.Send(t.Context(), h.messages(s, n)), n, delivery.Delivered)
	}
}

func (h Harness) inOrder(t *testing.T) {
	if h.Unreachable == nil {
		return
	}
	s := h.Accepting(t)
	n := min(s.ChunkSize(), 7)
	messages := h.messages(s, n)
	for i := 0; i < n; i += 3 {
		h.Unreachable(messages[i].To)
	}
	results := s.Send(t.Context(), messages)
	if len(results) != n {
		t.Fatalf("got %d results for %d messages", len(results), n)
	}
	for i, r := range results {
		want := delivery.Delivered
		if i%3 == 0 {
			want = delivery.Permanent
		}
		if r.Status != want {
			t.Errorf("message %d: got %+v, want status %d", i, r, want)
		}
		if want == delivery.Permanent && r.Detail == "" {
			t.Errorf("message %d: no detail says why", i)
		}
	}
}

func (h Harness) endedBefore(t *testing.T) {
	s := h.Accepting(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	expect(t, s.Send(ctx, h.messages(s, 3)), 3, delivery.Transient)
	if took := time.Since(began); took > prompt {
		t.Errorf("took %v to see that there is nothing to do", took)
	}
}

func (h Harness) endsInside(t *testing.T) {
	if h.Stalled == nil {
		return
	}
	s := h.Stalled(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	expect(t, s.Send(ctx, h.messages(s, 3)), 3, delivery.Transient)
	if took := time.Since(began); took > prompt {
		t.Errorf("returned %v after its context ended", took-100*time.Millisecond)
	}
}

func (h Harness) concurrent(t *testing.T) {
	s := h.Accepting(t)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 5 {
				n := min(s.ChunkSize(), 5)
				expect(t, s.Send(t.Context(), h.messages(s, n)), n, delivery.Delivered)
			}
		})
	}
	callers.Wait()
}

// A journal that records only while a test waits for it, or never.
type journal struct {
	err error

	mu         sync.Mutex
	accepted   map[user.ID]int
	unrecorded int
	most       int
}

// Accepted implements [delivery.Journal].
func (j *journal) Accepted(id user.ID) func(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accepted[id]++
	j.unrecorded++
	j.most = max(j.most, j.unrecorded)
	return func(context.Context) error {
		if j.err != nil {
			return j.err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.unrecorded--
		return nil
	}
}

// records checks that each accepted message is recorded once, that no more than AtOnce messages
// are unrecorded at any time, and that no message is unrecorded when Send returns.
func (h Harness) records(t *testing.T) {
	s := h.Accepting(t)
	j := &journal{accepted: map[user.ID]int{}}
	messages := h.messages(s, s.ChunkSize())
	for i := range messages {
		messages[i].Journal = j
	}
	expect(t, s.Send(t.Context(), messages), len(messages), delivery.Delivered)
	if j.most > h.AtOnce || j.unrecorded != 0 {
		t.Errorf("%d messages were unrecorded at once, want at most %d; %d are at the end", j.most, h.AtOnce, j.unrecorded)
	}
	for _, m := range messages {
		if n := j.accepted[m.To.ID]; n != min(1, h.AtOnce) {
			t.Errorf("message to %d was recorded %d times", m.To.ID, n)
		}
	}
}

// cannotRecord checks that after a failure of the journal no further message is handed over and
// no message loses an attempt. The sender continues once the journal works again.
func (h Harness) cannotRecord(t *testing.T) {
	if h.AtOnce == 0 {
		return
	}
	s := h.Accepting(t)
	j := &journal{accepted: map[user.ID]int{}, err: errors.New("the database is away")}
	messages := h.messages(s, s.ChunkSize())
	for i := range messages {
		messages[i].Journal = j
	}
	delivered := 0
	for i, r := range s.Send(t.Context(), messages) {
		switch {
		case r.Status == delivery.Delivered:
			delivered++
		case r != delivery.Unrecorded():
			t.Errorf("message %d: got %+v", i, r)
		}
	}
	if delivered < 1 || delivered > h.AtOnce {
		t.Errorf("%d messages were handed over, want 1 to %d", delivered, h.AtOnce)
	}
	expect(t, s.Send(t.Context(), h.messages(s, 3)), 3, delivery.Delivered)
}

// panics checks that a message that makes the sender panic can end only the caller's goroutine,
// which can recover, and does not prevent later sends. A sender that returns must have answered
// the other messages.
func (h Harness) panics(t *testing.T) {
	s := h.Accepting(t)
	n := min(s.ChunkSize(), 5)
	for range 20 { // more often than there are connections
		messages := h.messages(s, n)
		messages[n/2].Content = nil
		results := recovering(t.Context(), s, messages)
		for i, r := range results {
			if i == n/2 && r.Crash != nil && r.Status == delivery.Permanent && len(r.Crash.Stack) > 0 {
				continue
			}
			if r.Status != delivery.Delivered {
				t.Errorf("message %d beside one that panics: got %+v", i, r)
			}
		}
	}
	expect(t, s.Send(t.Context(), h.messages(s, n)), n, delivery.Delivered)
}

// recovering returns no results if s panics.
func recovering(ctx context.Context, s delivery.Sender, messages []delivery.Message) (results []delivery.Result) {
	defer func() { _ = recover() }()
	return s.Send(ctx, messages)
}

func expect(t *testing.T, results []delivery.Result, n int, want delivery.Status) {
	t.Helper()
	if len(results) != n {
		t.Errorf("got %d results for %d messages", len(results), n)
	}
	for i, r := range results {
		if r.Status != want {
			t.Errorf("message %d: got %+v, want status %d", i, r, want)
			return
		}
	}
}
