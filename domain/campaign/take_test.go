package campaign

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// fakeStore holds one campaign for all users. If rival is set, another member's change is stored
// before the next change.
type fakeStore struct {
	Store
	held     Campaign
	above    int64 // how many users one member may send to without approval
	users    int64
	requests []Request
	rival    func(*Campaign)
	saved    int
}

func (s *fakeStore) Campaign(context.Context, int64) (Campaign, error) { return s.held, nil }
func (s *fakeStore) Progress(context.Context, int64) (Progress, error) { return Progress{}, nil }
func (s *fakeStore) Limits(context.Context, int64) (Limits, error) {
	return Limits{ApprovalAbove: s.above}, nil
}
func (s *fakeStore) Estimate(context.Context, Audience) (int64, bool, error) {
	return s.users, true, nil
}
func (s *fakeStore) SegmentRule(context.Context, Audience) (*FrozenRule, error) { return nil, nil }
func (s *fakeStore) Requests(context.Context, int64, int) ([]Request, error)    { return s.requests, nil }

func (s *fakeStore) Save(_ context.Context, c Change) (Campaign, error) {
	if s.rival != nil {
		s.rival(&s.held)
		s.held.Version, s.rival = s.held.Version+1, nil
		return c.Campaign, fault.ErrStale
	}
	s.held = c.Campaign
	s.saved++
	return c.Campaign, nil
}

// fakeLock lets every publication through.
type fakeLock struct{}

func (fakeLock) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) {
	return true, nil
}
func (fakeLock) Release(context.Context, [32]byte, int64) error { return nil }

// TestTakingAStep: a wish is carried out, was carried out already, requests approval, waits for
// approval, or finds a campaign that differs from the form. A refusal comes with the campaign.
func TestTakingAStep(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	by := staff.Actor{Label: "staff:1", Role: staff.Marketer}
	alone := func(n int64) *int64 { return &n }
	publish := Wish{Step: Publishing, Version: 3, AloneUpTo: alone(0)}
	for name, c := range map[string]struct {
		from    State
		wish    Wish
		above   int64 // 0 = any number
		asked   bool  // approval was requested before
		rival   func(*Campaign)
		outcome StepOutcome
		want    error
		saved   int
	}{
		"publish":                    {from: Draft, wish: publish, outcome: Taken, saved: 1},
		"publish what nobody saw":    {from: Draft, wish: Wish{Step: Publishing, AloneUpTo: alone(0)}, outcome: Changed},
		"publish without a limit":    {from: Draft, wish: Wish{Step: Publishing, Version: 3}, outcome: Changed},
		"publish an older version":   {from: Draft, wish: Wish{Step: Publishing, Version: 2, AloneUpTo: alone(0)}, outcome: Changed},
		"publish twice":              {from: Scheduled, wish: publish, outcome: AlreadyTaken},
		"publish what runs":          {from: Running, wish: publish, outcome: AlreadyTaken},
		"publish with a colleague":   {from: Draft, wish: publish, rival: func(c *Campaign) { c.State = Scheduled }, outcome: AlreadyTaken},
		"publish what is edited":     {from: Draft, wish: publish, rival: func(c *Campaign) { c.Name = "other" }, outcome: Changed},
		"publish to too many":        {from: Draft, above: 10, wish: Wish{Step: Publishing, Version: 3, AloneUpTo: alone(10)}, outcome: Asked, saved: 1},
		"publish what waits":         {from: Draft, above: 10, asked: true, wish: Wish{Step: Publishing, Version: 3, AloneUpTo: alone(10)}, outcome: NeedsApproval},
		"ask with a colleague":       {from: Draft, above: 10, wish: Wish{Step: Publishing, Version: 3, AloneUpTo: alone(10)}, rival: func(c *Campaign) { c.ApprovalAskedAt = &now }, outcome: NeedsApproval},
		"pause":                      {from: Running, wish: Wish{Step: Pausing}, outcome: Taken, saved: 1},
		"pause twice":                {from: Paused, wish: Wish{Step: Pausing}, outcome: AlreadyTaken},
		"resume what was not paused": {from: Running, wish: Wish{Step: Resuming}, want: ErrTransition},
		"cancel twice":               {from: Cancelled, wish: Wish{Step: Cancelling}, outcome: AlreadyTaken},
		"pause what is over":         {from: Finished, wish: Wish{Step: Pausing}, want: ErrTransition},
	} {
		held := Campaign{ID: 9, Version: 3, State: c.from, Creator: by.Label, Spec: Spec{Shop: 10, Name: "Spring", Channel: delivery.App,
			Audience: Audience{Kind: Everybody, Users: []user.ID{}}, StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour),
			Content: delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: "a", Body: "b"}}}}}}}
		if c.asked {
			held.ApprovalAskedAt = &now
		}
		store := &fakeStore{held: held, above: c.above, users: 100, rival: c.rival}
		service := &Service{Store: store, Lock: fakeLock{}, Channels: delivery.ChannelSetOf(delivery.App), Now: func() time.Time { return now }}
		got, outcome, err := service.Take(t.Context(), by, 9, c.wish)
		if outcome != c.outcome || !errors.Is(err, c.want) || got.ID != 9 || store.saved != c.saved {
			t.Errorf("%s: outcome %d, %v, campaign %d, %d changes", name, outcome, err, got.ID, store.saved)
		}
	}
}
