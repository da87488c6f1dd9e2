package campaign

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func copyOf(title, body string) delivery.Copy {
	return delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: title, Body: body}}}}}
}

func spec() Spec {
	return Spec{Name: "Spring", Content: copyOf("Hello", "Come"), Channel: delivery.App, Audience: Audience{Kind: Everybody},
		StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour)}
}

func TestRefusalsNameTheStates(t *testing.T) {
	for want, states := range map[string][]State{"": nil, "draft": {Draft}, "draft or paused": {Draft, Paused}, "draft, running or paused": {Draft, Running, Paused}} {
		if got := oneOf(states); got != want {
			t.Errorf("%v reads %q", states, got)
		}
	}
}

func TestStepsFollowTheDiagram(t *testing.T) {
	legal := map[Transition]map[State]State{
		Publishing: {Draft: Scheduled}, Pausing: {Running: Paused}, Resuming: {Paused: Running},
		Cancelling: {Draft: Cancelled, Scheduled: Cancelled, Running: Cancelled, Paused: Cancelled},
	}
	for _, step := range Transitions() {
		for _, from := range States() {
			got, err := Campaign{State: from}.step(step, now)
			want, ok := legal[step][from]
			if ok != (err == nil) || ok && got.State != want || !ok && (got.State != from || !errors.Is(err, ErrTransition)) {
				t.Errorf("%s from %s: %s, %v", step, from, got.State, err)
			}
			if got.State.Over() != (got.EndedAt != nil) && !from.Over() {
				t.Errorf("%s from %s: ended at %v", step, from, got.EndedAt)
			}
		}
	}
}

func TestCheckNamesEveryField(t *testing.T) {
	for field, change := range map[string]func(*Spec){
		"name":                          func(s *Spec) { s.Name = "  " },
		"name ":                         func(s *Spec) { s.Name = strings.Repeat("长", MaxName+1) },
		"name  ":                        func(s *Spec) { s.Name = "a\nb" },
		"title":                         func(s *Spec) { s.Content = copyOf("", "b") },
		"title ":                        func(s *Spec) { s.Content = copyOf(strings.Repeat("x", delivery.MaxTitle+1), "b") },
		"body":                          func(s *Spec) { s.Content = copyOf("t", "hello {{nmae}}") },
		"body ":                         func(s *Spec) { s.Content = copyOf("t", "hello {{name") },
		"body  ":                        func(s *Spec) { s.Content = copyOf("t", "a\x00b") },
		"variants":                      func(s *Spec) { s.Content.Variants = nil },
		"variants ":                     func(s *Spec) { s.Content.Variants[0].Percent = 50 },
		"hold_out":                      func(s *Spec) { s.Content.HoldOut = 91 },
		"channel":                       func(s *Spec) { s.Channel = 9 },
		"audience":                      func(s *Spec) { s.Audience.Kind = "" },
		"audience.user_ids":             func(s *Spec) { s.Audience.Kind = Named },
		"audience.reserved_template_id": func(s *Spec) { s.Audience = Audience{Kind: Reserved} },
		"audience.segment_id":           func(s *Spec) { s.Audience = Audience{Kind: Segment, ID: -1} },
		"ends_at":                       func(s *Spec) { s.EndsAt = s.StartsAt },
		"starts_at":                     func(s *Spec) { s.StartsAt = time.Time{} },
		"rate_per_second":               func(s *Spec) { s.RatePerSecond = -1 },
		"rate_per_second ":              func(s *Spec) { s.RatePerSecond = MaxRate + 1 },
		"grant_template_id":             func(s *Spec) { s.GrantTemplate = -1 },
		"shop_number":                   func(s *Spec) { s.Shop = -1 },
	} {
		s := spec()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		fields, ok := errors.AsType[*fault.Fields](s.Check())
		if !ok || !slices.ContainsFunc(fields.List, func(f fault.Field) bool { return f.Name == strings.TrimSpace(field) }) {
			t.Errorf("%s: %v", field, s.Check())
		}
	}
}

func TestOnlyTheRateChangesOncePublished(t *testing.T) {
	c := Campaign{Spec: spec(), State: Running}
	s := spec()
	s.RatePerSecond = 7
	if got, err := c.Edit(s); err != nil || got.RatePerSecond != 7 {
		t.Fatalf("%+v %v", got, err)
	}
	s.Name, s.Audience, s.EndsAt = "other", Audience{Kind: Named, Users: []user.ID{1}}, s.EndsAt.Add(time.Hour)
	fields, ok := errors.AsType[*fault.Fields](func() error { _, err := c.Edit(s); return err }())
	if !ok || len(fields.List) != 3 {
		t.Errorf("changed a promise: %v", fields)
	}
	c.State = Finished
	if _, err := c.Edit(spec()); !errors.Is(err, ErrTransition) {
		t.Errorf("changed what is over: %v", err)
	}
	c.State = Draft
	if got, err := c.Edit(s); err != nil || got.Name != "other" {
		t.Errorf("a draft: %v", err)
	}
}

// TestFingerprint: fingerprints are equal if and only if name, creator, start and end are equal.
func TestFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		make := func() Campaign {
			c := Campaign{Spec: spec()}
			c.Name, c.Creator = rapid.SampledFrom([]string{"a", "ab", "a1:b", ""}).Draw(t, "name"), rapid.SampledFrom([]string{"", "b", "1:b", "ab"}).Draw(t, "by")
			c.StartsAt = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "start")) * time.Microsecond)
			c.EndsAt = now.Add(time.Duration(rapid.IntRange(5, 6).Draw(t, "end")) * time.Second)
			c.ID, c.RatePerSecond = rapid.Int64().Draw(t, "id"), rapid.Int().Draw(t, "rate")
			return c
		}
		a, b := make(), make()
		same := a.Name == b.Name && a.Creator == b.Creator && a.StartsAt.Equal(b.StartsAt) && a.EndsAt.Equal(b.EndsAt)
		if (a.Fingerprint() == b.Fingerprint()) != same {
			t.Fatalf("%q %q %v %v and %q %q %v %v", a.Name, a.Creator, a.StartsAt, a.EndsAt, b.Name, b.Creator, b.StartsAt, b.EndsAt)
		}
	})
}

// Users in quiet hours are not sent to at the rate of the others.
func TestTimeLeftOfThoseAwake(t *testing.T) {
	p := Progress{Counts: delivery.Counts{InFlight: 100}, Left: 50 * time.Second}
	for waiting, want := range map[int64]time.Duration{0: 50 * time.Second, 60: 20 * time.Second, 100: -1, 101: -1} {
		if got := p.Awake(waiting); got.Left != want || got.InFlight != 100 {
			t.Errorf("%d waiting: %v, want %v", waiting, got.Left, want)
		}
	}
	if p.Left = -1; p.Awake(60).Left != -1 {
		t.Error("an unknown time became known")
	}
}

func TestProgressTellsRateAndTimeLeft(t *testing.T) {
	c := delivery.Counts{Reserved: 1000, Sent: 300, Skipped: 100, InFlight: 600}
	p := ProgressOf(c, true, 200, now.Add(-10*time.Second), now)
	if p.PerSecond != 10 || p.Left != 60*time.Second {
		t.Errorf("%v a second, %v left", p.PerSecond, p.Left)
	}
	if p := ProgressOf(c, true, 300, now.Add(-10*time.Second), now); p.PerSecond != 0 || p.Left >= 0 {
		t.Errorf("standing still: %+v", p)
	}
	if p := ProgressOf(delivery.Counts{Reserved: 5, Sent: 5}, true, 0, time.Time{}, now); p.Left != 0 {
		t.Errorf("done: %+v", p)
	}
}
