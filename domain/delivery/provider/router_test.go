package provider_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// fakeCircuits opens after five failures in a row, and holds what asks to wait.
type fakeCircuits struct {
	mu       sync.Mutex
	now      time.Time
	failures map[int64]int
	until    map[int64]time.Time
	admitted map[int64]int // and not reported
}

func newCircuits() *fakeCircuits {
	return &fakeCircuits{now: time.Now(), failures: map[int64]int{}, until: map[int64]time.Time{}, admitted: map[int64]int{}}
}

func (c *fakeCircuits) Admit(_ context.Context, _ delivery.Channel, id int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.until[id].Sub(c.now); wait > 0 {
		return wait
	}
	c.admitted[id]++
	return 0
}

func (c *fakeCircuits) Unused(_ context.Context, _ delivery.Channel, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted[id]--
}

func (c *fakeCircuits) Report(_ context.Context, _ delivery.Channel, id int64, call delivery.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted[id]--
	switch {
	case call.Throttled:
		c.until[id] = c.now.Add(call.After)
	case call.OK:
		c.failures[id] = 0
	default:
		if c.failures[id]++; c.failures[id] >= 5 {
			c.until[id] = c.now.Add(5 * time.Second)
		}
	}
}

// fakeSender answers every message alike and remembers whose it was handed.
type fakeSender struct {
	mu     sync.Mutex
	answer delivery.Result
	took   []user.ID
	calls  int
	each   []delivery.Result // instead of answer, by place
}

func (*fakeSender) Channel() delivery.Channel { return delivery.SMS }
func (*fakeSender) ChunkSize() int            { return 10 }
func (s *fakeSender) Send(_ context.Context, messages []delivery.Message) []delivery.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for _, m := range messages {
		if s.answer.Status == delivery.Delivered {
			s.took = append(s.took, m.To.ID)
		}
	}
	if s.each != nil {
		return slices.Clone(s.each[:len(messages)])
	}
	return delivery.Repeat(s.answer, len(messages))
}

func messagesTo(n int) []delivery.Message {
	subject := &delivery.Subject{Kind: delivery.KindReminder, TemplateID: 7, ShopNumber: "3", Slot: 2}
	list := make([]delivery.Message, n)
	for i := range list {
		list[i] = delivery.Message{To: &user.User{ID: user.ID(i + 1)}, Channel: delivery.SMS, Subject: subject, Content: &delivery.Content{}}
	}
	return list
}

// newRouter has providers 1 and 2, in this order, without one of the environment.
func newRouter(circuits provider.Circuits, senders ...delivery.Sender) *provider.Router {
	r := provider.NewRouter(delivery.SMS, nil, circuits, func(*user.User) string { return "" }, time.Now)
	var entries []provider.Entry
	for i, s := range senders {
		entries = append(entries, provider.Entry{Provider: provider.Provider{ID: int64(i + 1), Spec: provider.Spec{Enabled: true, Order: i, Weight: 1}}, Sender: s})
	}
	r.Set(entries)
	return r
}

func delivered(t *testing.T, results []delivery.Result, via int64) {
	t.Helper()
	for i, r := range results {
		if r.Status != delivery.Delivered || r.Via != via || !r.Judged {
			t.Fatalf("message %d: %+v, want it delivered by provider %d", i, r, via)
		}
	}
}

// TestAnUnsentMessageGoesToTheNext at once, and one whose outcome is unclear does not.
func TestAnUnsentMessageGoesToTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		answer delivery.Result
		moves  bool
	}{
		"asked to wait":           {delivery.Result{Status: delivery.Throttled, After: time.Minute, Unsent: true}, true},
		"not reached":             {delivery.Result{Unsent: true}, true},
		"gone":                    {delivery.Result{Status: delivery.Permanent, Provider: true, Unsent: true}, true},
		"no text registered":      {delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonNoTemplate}, true},
		"no answer":               {delivery.Result{Detail: "timed out"}, false},
		"a bad number":            {delivery.Result{Status: delivery.Permanent, Detail: "rejected", Unsent: true}, false},
		"the recipient's service": {delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true}, false},
	} {
		circuits, a, b := newCircuits(), &fakeSender{answer: c.answer}, &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
		results := newRouter(circuits, a, b).Send(t.Context(), messagesTo(10))
		if c.moves {
			delivered(t, results, 2)
			continue
		}
		if b.calls != 0 || results[0].Status != c.answer.Status || results[0].Via != 1 {
			t.Errorf("%s: %d calls of the other provider, %+v", name, b.calls, results[0])
		}
		for id, n := range circuits.admitted {
			if n != 0 {
				t.Errorf("%s: %d admissions of provider %d were neither reported nor given back", name, n, id)
			}
		}
	}
}

// TestAnOpenCircuitIsPassedOver: after five failed calls, whose messages are tried again,
// the sixth call goes to the other provider. While both circuits are open, messages wait
// for the first circuit to close.
func TestAnOpenCircuitIsPassedOver(t *testing.T) {
	failing := delivery.Result{Detail: "the provider answered HTTP 503"}
	circuits, a, b := newCircuits(), &fakeSender{answer: failing}, &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
	r := newRouter(circuits, a, b)
	messages := messagesTo(10)
	for range 5 {
		if got := r.Send(t.Context(), messages)[0]; got.Status != delivery.Transient || got.Via != 1 {
			t.Fatalf("%+v", got)
		}
	}
	delivered(t, r.Send(t.Context(), messages), 2)
	if a.calls != 5 || len(b.took) != 10 || r.Admit(3) != 0 {
		t.Errorf("%d calls of the failing provider, %d messages through the other, wait %v", a.calls, len(b.took), r.Admit(3))
	}
	b.answer = delivery.Result{Status: delivery.Throttled, After: 3 * time.Second, Unsent: true}
	if got := r.Send(t.Context(), messages)[0]; got.Status != delivery.Throttled || got.After > 3*time.Second {
		t.Errorf("%+v", got)
	}
	got := r.Send(t.Context(), messages)[0]
	if got.Status != delivery.Throttled || !got.Apart || got.After <= 0 || got.After > 3*time.Second || !got.Unsent {
		t.Errorf("while none is ready: %+v", got)
	}
	if wait := r.Admit(3); wait <= 0 || wait > 3*time.Second {
		t.Errorf("the channel waits %v, want until the first is ready", wait)
	}
}

// TestDivideForesees the calls of Send: users of one group have one provider.
func TestDivideForesees(t *testing.T) {
	circuits := newCircuits()
	a, b := &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}, &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
	r := newRouter(circuits, a, b)
	entries := []provider.Entry{{Provider: provider.Provider{ID: 1, Spec: provider.Spec{Enabled: true, Weight: 1}}, Sender: a}, {Provider: provider.Provider{ID: 2, Spec: provider.Spec{Enabled: true, Weight: 1}}, Sender: b}}
	r.Set(entries)
	messages := messagesTo(100)
	var all []user.ID
	for _, m := range messages {
		all = append(all, m.To.ID)
	}
	groups := r.Divide(messages[0].Subject, all, nil)
	if len(groups) != 2 || len(groups[0])+len(groups[1]) != 100 {
		t.Fatalf("%d groups", len(groups))
	}
	for _, g := range groups {
		if !slices.IsSorted(g) {
			t.Error("a group is not in order")
		}
		var part []delivery.Message
		for _, id := range g {
			part = append(part, messages[id-1])
		}
		via := r.Send(t.Context(), part[:1])[0].Via
		delivered(t, r.Send(t.Context(), part), via)
	}
}

// TestWithoutProvidersTheEnvironmentsSends: without providers the environment's
// provider sends as if there were no router. Messages of a shop whose provider has no
// sender wait.
func TestWithoutProvidersTheEnvironmentsSends(t *testing.T) {
	circuits, own := newCircuits(), &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
	r := provider.NewRouter(delivery.SMS, own, circuits, func(*user.User) string { return "" }, time.Now)
	if got := r.Send(t.Context(), messagesTo(10)); got[0] != own.answer || r.Routed() || !r.Serves(3) || r.ChunkSize() != 10 {
		t.Errorf("%+v", got[0])
	}
	r.Set([]provider.Entry{{Provider: provider.Provider{ID: 9, Shop: 3, Spec: provider.Spec{Enabled: true, Weight: 1}}}})
	if got := r.Send(t.Context(), messagesTo(1))[0]; got.Status != delivery.Throttled || !got.Unsent || r.Admit(3) <= 0 || r.Admit(4) != 0 {
		t.Errorf("%+v, wait %v", got, r.Admit(3))
	}
	none := provider.NewRouter(delivery.SMS, nil, circuits, func(*user.User) string { return "" }, time.Now)
	if none.Serves(3) {
		t.Error("a channel without any provider is served")
	}
	if got := none.Send(t.Context(), messagesTo(2)); len(got) != 2 || !got[1].Skip || got[1].Reason != delivery.ReasonNoSender || got[1].Detail != "no provider of the channel is enabled" {
		t.Errorf("a channel without any provider: %+v", got)
	}
	none.Set([]provider.Entry{{Provider: provider.Provider{ID: 9, Spec: provider.Spec{Enabled: true, Weight: 1, Countries: []string{"CN"}}}, Sender: own}})
	if got := none.Send(t.Context(), messagesTo(1))[0]; !got.Skip || got.Reason != delivery.ReasonNoSender {
		t.Errorf("no provider for the country: %+v", got)
	}
}

// TestAReplacedProviderFinishesItsCalls before its connections are closed.
func TestAReplacedProviderFinishesItsCalls(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := blocking{entered, leave}
	r := newRouter(newCircuits(), slow)
	answered := make(chan []delivery.Result)
	go func() { answered <- r.Send(context.WithoutCancel(t.Context()), messagesTo(1)) }()
	<-entered
	unused := make(chan struct{})
	wait := r.Set(nil)
	go func() { wait(); close(unused) }()
	select {
	case <-unused:
		t.Fatal("the sender counts as unused during its call")
	default:
	}
	close(leave)
	delivered(t, <-answered, 1)
	<-unused
}

type blocking struct{ entered, leave chan struct{} }

func (blocking) Channel() delivery.Channel { return delivery.SMS }
func (blocking) ChunkSize() int            { return 10 }
func (b blocking) Send(_ context.Context, m []delivery.Message) []delivery.Result {
	close(b.entered)
	<-b.leave
	return delivery.Repeat(delivery.Result{Status: delivery.Delivered}, len(m))
}

// TestARefusedCallIsTheCallersToDivide: a refused call shows neither that the provider works
// nor that it fails, also if the call has one message only, or some messages that the sender
// refused individually. A call that the router has divided itself is tried again without
// these messages.
func TestARefusedCallIsTheCallersToDivide(t *testing.T) {
	whole := delivery.Result{Status: delivery.Permanent, Whole: true, Unsent: true, Detail: "the provider answered HTTP 400"}
	own := delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonCountry, Unsent: true}
	unknown := delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonNoTemplate, Unsent: true}
	ok := delivery.Result{Status: delivery.Delivered}
	again := delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, After: time.Second, Detail: whole.Detail, Via: 1, Judged: true}
	via := func(r delivery.Result, id int64, judged bool) delivery.Result {
		r.Via, r.Judged = id, judged
		return r
	}
	for name, c := range map[string]struct{ answers, want []delivery.Result }{
		"the whole call":                  {[]delivery.Result{whole, whole}, []delivery.Result{via(whole, 1, false), via(whole, 1, false)}},
		"a single message":                {[]delivery.Result{whole}, []delivery.Result{via(whole, 1, false)}},
		"one refused for itself":          {[]delivery.Result{own, whole, whole}, []delivery.Result{via(own, 1, false), via(whole, 1, false), via(whole, 1, false)}},
		"one that another provider takes": {[]delivery.Result{unknown, whole, whole}, []delivery.Result{via(ok, 2, true), again, again}},
	} {
		circuits := newCircuits()
		circuits.failures[1] = 3
		a, b := &fakeSender{each: c.answers}, &fakeSender{answer: ok}
		if got := newRouter(circuits, a, b).Send(t.Context(), messagesTo(len(c.answers))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		if circuits.failures[1] != 3 || circuits.admitted[1] != 0 || circuits.admitted[2] != 0 {
			t.Errorf("%s: the circuit has %d failures, %v admissions are left", name, circuits.failures[1], circuits.admitted)
		}
	}
}

// TestAnEndWaitsForTheOthers: a message that one provider refuses for a reason of its own is
// not given up while another provider, which may take the message, is not ready.
func TestAnEndWaitsForTheOthers(t *testing.T) {
	circuits, b := newCircuits(), &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
	a := &fakeSender{answer: delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonNoTemplate, Unsent: true}}
	r := newRouter(circuits, a, b)
	circuits.until[2] = circuits.now.Add(time.Second)
	got := r.Send(t.Context(), messagesTo(1))[0]
	if got.After <= 0 || got.After > time.Second {
		t.Errorf("while the other asks to wait: %+v", got)
	}
	want := got
	want.Status, want.Apart, want.Unsent, want.Judged = delivery.Throttled, true, true, true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	delete(circuits.until, 2)
	b.answer = a.answer
	r = newRouter(circuits, a, b)
	if got := r.Send(t.Context(), messagesTo(1))[0]; got.Status != delivery.Permanent || got.Reason != delivery.ReasonNoTemplate {
		t.Errorf("once both have refused it: %+v", got)
	}
}

// TestAdmissionsAreGivenBack: of two providers that share messages only the provider of
// the message is asked for an admission. A sender's panic leaves no admission unused.
func TestAdmissionsAreGivenBack(t *testing.T) {
	circuits := newCircuits()
	a, b := &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}, &fakeSender{answer: delivery.Result{Status: delivery.Delivered}}
	r := newRouter(circuits, a, b)
	shared := func(a, b delivery.Sender) []provider.Entry {
		return []provider.Entry{{Provider: provider.Provider{ID: 1, Spec: provider.Spec{Enabled: true, Weight: 1}}, Sender: a}, {Provider: provider.Provider{ID: 2, Spec: provider.Spec{Enabled: true, Weight: 1}}, Sender: b}}
	}
	r.Set(shared(a, b))
	r.Send(t.Context(), messagesTo(1))
	if len(circuits.admitted) != 1 {
		t.Errorf("%d providers were asked to admit one message", len(circuits.admitted))
	}
	r.Set(shared(panicking{}, panicking{}))
	for range 2 {
		if !panics(func() { r.Send(t.Context(), messagesTo(1)) }) {
			t.Error("the caller does not learn of a panic")
		}
	}
	for id, n := range circuits.admitted {
		if n != 0 {
			t.Errorf("%d admissions of provider %d are left", n, id)
		}
	}
}

func panics(do func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	do()
	return false
}

type panicking struct{ *fakeSender }

func (panicking) ChunkSize() int                                             { return 10 }
func (panicking) Send(context.Context, []delivery.Message) []delivery.Result { panic("no") }
