package alert

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

// Every kind describes its condition in both languages, with its numbers.
func TestTextsOfAlerts(t *testing.T) {
	for _, k := range append(Kinds(), Test) {
		a := Alert{Condition: Condition{Kind: k, Name: "email", Count: 1234567, Detail: "failed"}, Repeated: 77}
		en, zh := a.Text("en"), a.Text("zh-CN")
		if en == "" || strings.ContainsFunc(en, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || !strings.ContainsFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s: %q, %q", k, en, zh)
		}
		if !strings.Contains(en, "repeated 77 times") || !strings.Contains(zh, "77 次") {
			t.Errorf("%s does not say how often: %q, %q", k, en, zh)
		}
		if slices.Contains([]Kind{DeadLetters, Late, Balance, SoldOut, Job}, k) && (!strings.Contains(en, "1,234,567") || !strings.Contains(zh, "1,234,567")) {
			t.Errorf("%s does not say how many: %q, %q", k, en, zh)
		}
	}
	single := Alert{Condition: Condition{Kind: SoldOut, Name: "Moon cakes", Count: 1}, Repeated: 1}
	if en, want := single.Text("en"), "“Moon cakes” is sold out: 1 coupon. (repeated 1 time since the last message)"; en != want {
		t.Errorf("a single one: %q, want %q", en, want)
	}
	push := Alert{Condition: Condition{Kind: Channel, Name: "Moon app", Detail: DetailProvider}}
	if en, zh := push.Text("en"), push.Text("zh-CN"); !strings.Contains(en, "provider “Moon app”") || !strings.Contains(zh, "服务商「Moon app」") {
		t.Errorf("a provider of push: %q, %q", en, zh)
	}
	drop := Alert{Condition: Condition{Kind: Channel, Name: "Moon cakes", Detail: DetailDropBudget}}
	if en, zh := drop.Text("en"), drop.Text("zh-CN"); !strings.Contains(en, "“Moon cakes”") || !strings.Contains(zh, "「Moon cakes」") {
		t.Errorf("a drop's budget: %q, %q", en, zh)
	}
}

// An address contains the key of its group: little of it is shown.
func TestHint(t *testing.T) {
	for url, want := range map[string]string{
		"https://open.feishu.cn/open-apis/bot/v2/hook/0123456789abcdef": "open.feishu.cn/…cdef",
		"https://hooks.slack.com/services/T0/B0/s3cret":                 "hooks.slack.com/…cret",
		"https://x.example/k": "x.example", "https://x.example": "x.example", "": "",
	} {
		if got := (Destination{URL: url}).Hint(); got != want {
			t.Errorf("%q is shown as %q, want %q", url, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		attempts int
		asked    time.Duration
		want     time.Duration
	}{{1, 0, 5 * time.Second}, {2, 0, 10 * time.Second}, {5, 0, 80 * time.Second}, {40, 0, 5 * time.Minute}, {1, time.Minute, time.Minute}} {
		if got := Backoff(c.attempts, c.asked); got != c.want {
			t.Errorf("after %d attempts %v, want %v", c.attempts, got, c.want)
		}
	}
}

// fakeStore records its calls.
type fakeStore struct {
	Store
	mu       sync.Mutex
	found    []Condition
	looked   []Kind
	due      []Delivery
	outcomes map[int64]Outcome
	waits    map[int64]time.Duration
}

func (s *fakeStore) Conditions(context.Context) ([]Condition, error) {
	return []Condition{{Kind: Late, Object: "1"}}, nil
}

func (s *fakeStore) Reconcile(_ context.Context, looked []Kind, list []Condition, _, _ time.Duration) error {
	s.looked, s.found = looked, list
	return nil
}

func (s *fakeStore) Take(_ context.Context, limit int, _ time.Duration) ([]Delivery, error) {
	n := min(limit, len(s.due))
	list := s.due[:n]
	s.due = s.due[n:]
	return list, nil
}

func (s *fakeStore) Record(_ context.Context, d Delivery, o Outcome, wait time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[d.ID], s.waits[d.ID] = o, wait
	return nil
}

type senderFunc func(Delivery, string) Outcome

func (f senderFunc) Send(_ context.Context, d Delivery, text string) Outcome { return f(d, text) }

// While a watch fails, its conditions neither begin nor end; all other watches go on.
func TestWatcherLooks(t *testing.T) {
	s := &fakeStore{}
	w := Watcher{Store: s, Watches: []Watch{
		{Channel, func(context.Context) ([]Condition, error) { return nil, errors.New("Redis is away") }},
		{Balance, func(context.Context) ([]Condition, error) { return []Condition{{Kind: Balance, Object: "7"}}, nil }},
	}}
	if err := w.Look(t.Context()); err == nil || slices.Contains(s.looked, Channel) || !slices.Contains(s.looked, Balance) || len(s.found) != 2 {
		t.Errorf("%v, looked at %v, found %v", err, s.looked, s.found)
	}
	var m Memo
	now := time.Now()
	if _, err := m.Get(now, time.Minute); !errors.Is(err, ErrElsewhere) {
		t.Errorf("conditions that were never set: %v", err)
	}
	s.looked = nil
	w.Watches = []Watch{{Balance, func(context.Context) ([]Condition, error) { return m.Get(now, time.Minute) }}}
	if err := w.Look(t.Context()); err != nil || slices.Contains(s.looked, Balance) || !slices.Contains(s.looked, Late) {
		t.Errorf("another process counts: %v, looked at %v", err, s.looked)
	}
	m.Set([]Condition{{Object: "1"}}, now)
	if list, err := m.Get(now.Add(time.Minute), time.Minute); len(list) != 1 || err != nil {
		t.Errorf("%v %v", list, err)
	}
	if _, err := m.Get(now.Add(time.Hour), time.Minute); !errors.Is(err, ErrElsewhere) {
		t.Errorf("old conditions count: %v", err)
	}
}

// Every delivery that is due is sent once, in its group's language with a link, and its
// result is recorded.
func TestWatcherDelivers(t *testing.T) {
	s := &fakeStore{outcomes: map[int64]Outcome{}, waits: map[int64]time.Duration{}}
	for id := range int64(45) {
		d := Delivery{ID: id, Attempts: 2, Destination: Destination{Language: "zh-CN"}, Alert: Alert{Condition: Condition{Kind: SoldOut, Name: "Moon", Count: 5, Path: "/templates/1"}}}
		s.due = append(s.due, d)
	}
	var mu sync.Mutex
	sent := map[int64]string{}
	w := Watcher{Store: s, PublicURL: "https://drop.example", Sender: senderFunc(func(d Delivery, text string) Outcome {
		mu.Lock()
		defer mu.Unlock()
		sent[d.ID] = text
		if d.ID == 3 {
			return Outcome{State: Waiting, Detail: "HTTP 503", After: time.Hour}
		}
		return Outcome{State: Sent}
	})}
	if err := w.Deliver(t.Context()); err != nil || len(sent) != 45 || len(s.outcomes) != 45 {
		t.Fatalf("%v: %d sent, %d recorded", err, len(sent), len(s.outcomes))
	}
	if sent[7] != "「Moon」已抢光，共 5 张券。\nhttps://drop.example/templates/1" {
		t.Errorf("said %q", sent[7])
	}
	if s.waits[3] != time.Hour || s.waits[4] != 20*time.Second || s.outcomes[3].State != Waiting {
		t.Errorf("waits %v and %v", s.waits[3], s.waits[4])
	}
}

// A panic of a sender fails that notification alone, and the failure is recorded. All
// other notifications are sent. The panic is reported without the value it held.
func TestASenderOfAlertsThatPanics(t *testing.T) {
	s := &fakeStore{outcomes: map[int64]Outcome{}, waits: map[int64]time.Duration{}}
	for id := range int64(5) {
		s.due = append(s.due, Delivery{ID: id})
	}
	var mu sync.Mutex
	var crashes []string
	w := Watcher{Store: s, Crashed: func(what string, stack []byte) {
		mu.Lock()
		defer mu.Unlock()
		crashes = append(crashes, what)
		if len(stack) == 0 {
			t.Error("no stack")
		}
	}, Sender: senderFunc(func(d Delivery, _ string) Outcome {
		switch d.ID {
		case 1:
			panic("ann@example.com")
		case 2:
			var none []int
			return Outcome{Detail: string(rune(none[d.ID]))}
		}
		return Outcome{State: Sent}
	})}
	if err := w.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]State{0: Sent, 1: Failed, 2: Failed, 3: Sent, 4: Sent} {
		if o := s.outcomes[id]; o.State != want || strings.Contains(o.Detail, "ann@") {
			t.Errorf("notification %d: %+v, want %s", id, o, want)
		}
	}
	slices.Sort(crashes)
	if len(crashes) != 2 || crashes[0] != "a panic of type string" || !strings.Contains(crashes[1], "index out of range") {
		t.Errorf("told %q", crashes)
	}
	n := Notifier{Store: pushStore{outcomes: s.outcomes}, Pusher: panicking{}}
	if err := n.Deliver(t.Context()); err != nil || s.outcomes[9].State != Failed {
		t.Errorf("a browser: %v, %+v", err, s.outcomes[9])
	}
}

// pushStore has one push that is due once.
type pushStore struct {
	BrowserStore
	outcomes map[int64]Outcome
}

func (s pushStore) TakePushes(context.Context, int, time.Duration) ([]Push, error) {
	if _, done := s.outcomes[9]; done {
		return nil, nil
	}
	return []Push{{ID: 9}}, nil
}

func (s pushStore) RecordPush(_ context.Context, p Push, o Outcome, _ time.Duration) error {
	s.outcomes[p.ID] = o
	return nil
}

type panicking struct{}

func (panicking) Push(context.Context, Push, string, string) (Outcome, bool) {
	panic("ann@example.com")
}
