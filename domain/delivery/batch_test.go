package delivery_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestCuttingMissesNobodyAndRepeatsNobody also cuts when some batches exist already, as after a
// crash.
func TestCuttingMissesNobodyAndRepeatsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := slices.Sorted(maps.Keys(rapid.MapOf(rapid.Map(rapid.Int64Range(1, 400), func(n int64) user.ID { return user.ID(n) }),
			rapid.Just(true)).Draw(t, "ids")))
		covered := disjoint(rapid.SliceOf(rapid.Int64Range(1, 400)).Draw(t, "ends"))
		size := rapid.IntRange(1, 50).Draw(t, "size")
		var want []user.ID
		for _, id := range ids {
			if !slices.ContainsFunc(covered, func(r delivery.Range) bool { return r.From <= id && id <= r.To }) {
				want = append(want, id)
			}
		}
		cut := delivery.CutIntoBatches(ids, covered, size)
		if got := slices.Concat(cut...); !slices.Equal(got, want) {
			t.Fatalf("cut %v, want %v", got, want)
		}
		for _, batch := range cut {
			if len(batch) == 0 || len(batch) > size {
				t.Fatalf("a batch of %d, at most %d", len(batch), size)
			}
			from, to := batch[0], batch[len(batch)-1]
			for _, r := range covered {
				if from <= r.To && r.From <= to {
					t.Fatalf("the range %d…%d reaches across %v, which exists", from, to, r)
				}
			}
		}
	})
}

// disjoint makes ascending ranges, some of a single user, of any numbers.
func disjoint(ends []int64) []delivery.Range {
	slices.Sort(ends)
	ends = slices.Compact(ends)
	var list []delivery.Range
	for len(ends) >= 2 {
		r := delivery.Range{From: user.ID(ends[0]), To: user.ID(ends[1])}
		if ends[0]%5 == 0 {
			r.To = r.From
		}
		list, ends = append(list, r), ends[2:]
	}
	return list
}

// TestCuttingIsNotWasteful: without a crash before, batches are full.
func TestCuttingIsNotWasteful(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, 10_000: 10} {
		ids := make([]user.ID, n)
		for i := range ids {
			ids[i] = user.ID(i*7 + 1)
		}
		if got := len(delivery.CutIntoBatches(ids, nil, delivery.BatchSize)); got != want {
			t.Errorf("%d users: %d batches, want %d", n, got, want)
		}
	}
}

func TestPlan(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	failed := func(at time.Duration) delivery.Exception {
		return delivery.Exception{Outcome: delivery.Failed, NextRetryAt: now.Add(at)}
	}
	b := delivery.Batch{Left: []user.ID{1, 2, 3, 4, 5, 6, 7}, Exceptions: map[user.ID]delivery.Exception{
		2: failed(3 * time.Second), 3: failed(0), 4: failed(time.Second), 5: {Outcome: delivery.Skipped},
		6: {Outcome: delivery.Dead}, 7: failed(-time.Hour)}}
	for _, c := range []struct {
		after time.Duration
		ready []user.ID
		next  time.Time
	}{
		{0, []user.ID{1, 3, 7}, now.Add(time.Second)},
		{time.Second - 1, []user.ID{1, 3, 7}, now.Add(time.Second)},
		{time.Second, []user.ID{1, 3, 4, 7}, now.Add(3 * time.Second)},
		{3 * time.Second, []user.ID{1, 2, 3, 4, 7}, time.Time{}},
	} {
		ready, next := b.Plan(now.Add(c.after))
		if !slices.Equal(ready, c.ready) || !next.Equal(c.next) {
			t.Errorf("after %v: %v and %v, want %v and %v", c.after, ready, next, c.ready, c.next)
		}
	}
}

func TestSettled(t *testing.T) {
	for _, o := range []delivery.Outcome{delivery.Skipped, delivery.Expired, delivery.Dead, delivery.Discarded, delivery.Failed, delivery.InFlight} {
		b := delivery.Batch{Left: []user.ID{1, 2}, Exceptions: map[user.ID]delivery.Exception{1: {Outcome: delivery.Dead}, 2: {Outcome: o}}}
		if want := o != delivery.Failed && o != delivery.InFlight; b.Settled() != want {
			t.Errorf("%s: settled %v", o, b.Settled())
		}
	}
	if b := (delivery.Batch{Left: []user.ID{1}}); b.Settled() {
		t.Error("somebody without an outcome is settled")
	}
	if b := (delivery.Batch{}); !b.Settled() {
		t.Error("nobody is left and it is not settled")
	}
}

func TestCounts(t *testing.T) {
	c := delivery.Counts{Reserved: 21, Sent: 1, Skipped: 2, Expired: 3, Dead: 5, InFlight: 10}
	if c.Difference() != 0 || c.Plus(c).Difference() != 0 || c.Plus(c).Reserved != 42 || c.Plus(c).InFlight != 20 {
		t.Errorf("%+v", c.Plus(c))
	}
	for name, off := range map[string]delivery.Counts{"sent": {Sent: 1}, "skipped": {Skipped: 1}, "expired": {Expired: 1}, "dead": {Dead: 1}, "in flight": {InFlight: 1}} {
		if d := c.Plus(off).Difference(); d != -1 {
			t.Errorf("one too many %s: off by %d", name, d)
		}
	}
	if d := c.Plus(delivery.Counts{Reserved: 1}).Difference(); d != 1 {
		t.Errorf("one lost: off by %d", d)
	}
}

func TestChannels(t *testing.T) {
	names := []string{"app", "email", "sms", "webpush", "webhook"}
	for i, c := range delivery.AllChannels() {
		parsed, err := delivery.ParseChannel(names[i])
		if int(c) != i || c.String() != names[i] || parsed != c || err != nil || !c.Valid() || c.Bit() != 1<<i {
			t.Errorf("channel %d is %s, parsed %d (%v)", i, c, parsed, err)
		}
	}
	for _, name := range []string{"", "App", "email ", "invalid", "0"} {
		if c, err := delivery.ParseChannel(name); err == nil {
			t.Errorf("%q is %s", name, c)
		}
	}
	set := delivery.ChannelSetOf(delivery.App, delivery.Webhook)
	for c := range delivery.Channel(10) {
		if want := c == delivery.App || c == delivery.Webhook; set.Has(c) != want {
			t.Errorf("the set has %d: %v", c, !want)
		}
	}
	if s := delivery.Channel(5).String(); s != "invalid" || delivery.Channel(200).Valid() {
		t.Errorf("channel 5 is %s", s)
	}
}

func TestIdempotencyKey(t *testing.T) {
	due := time.Date(2026, 11, 20, 11, 55, 0, 0, time.UTC)
	base := delivery.Message{To: &user.User{ID: 1001}, Channel: delivery.SMS,
		Subject: &delivery.Subject{Kind: delivery.KindReminder, TemplateID: 7, Slot: 1, DueAt: due}}
	if got := base.IdempotencyKey(); got != "reminder-7-1-1795175700-sms-1001" {
		t.Errorf("%q; a provider must recognise the keys of the version before", got)
	}
	keys := map[string]bool{base.IdempotencyKey(): true}
	for name, change := range map[string]func(*delivery.Message, *delivery.Subject){
		"kind":     func(_ *delivery.Message, s *delivery.Subject) { s.Kind = delivery.KindCorrection },
		"template": func(_ *delivery.Message, s *delivery.Subject) { s.TemplateID = 71 },
		"slot":     func(_ *delivery.Message, s *delivery.Subject) { s.Slot = 2 },
		"opening":  func(_ *delivery.Message, s *delivery.Subject) { s.DueAt = due.Add(time.Second) },
		"channel":  func(m *delivery.Message, _ *delivery.Subject) { m.Channel = delivery.Webhook },
		"user":     func(m *delivery.Message, _ *delivery.Subject) { m.To.ID = 1002 },
	} {
		m, s, to := base, *base.Subject, *base.To
		m.To = &to
		m.Subject = &s
		change(&m, &s)
		if keys[m.IdempotencyKey()] {
			t.Errorf("another %s has the same key %s", name, m.IdempotencyKey())
		}
		keys[m.IdempotencyKey()] = true
	}
}

func TestReaches(t *testing.T) {
	nobody := &user.User{ID: 1}
	everything := &user.User{ID: 1, Email: "a@example.com", Phone: "+8613800138000", Push: []user.PushSubscription{{}}}
	for _, c := range delivery.AllChannels() {
		if want := c == delivery.App || c == delivery.Webhook; c.Reaches(nobody) != want {
			t.Errorf("%s reaches somebody without contacts: %v", c, !want)
		}
		if !c.Reaches(everything) {
			t.Errorf("%s does not reach somebody with every contact", c)
		}
	}
}
