package campaign_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// fakeStore holds one campaign for all users. If rival is set, another member's change is stored
// before the next change.
type fakeStore struct {
	campaign.Store
	held     campaign.Campaign
	above    int64 // how many users one member may send to without approval
	users    int64
	requests []campaign.Request
	rival    func(*campaign.Campaign)
	saved    int
}

func (s *fakeStore) Campaign(context.Context, int64) (campaign.Campaign, error) { return s.held, nil }
func (s *fakeStore) Awaiting(context.Context, []int64, string, int) ([]campaign.Request, error) {
	return nil, nil
}
func (s *fakeStore) Status(context.Context, int64) (campaign.Status, error) {
	return campaign.Status{Campaign: s.held}, nil
}
func (s *fakeStore) Limits(context.Context, int64) (campaign.Limits, error) {
	return campaign.Limits{ApprovalAbove: s.above}, nil
}
func (s *fakeStore) Estimate(context.Context, campaign.Audience) (int64, bool, error) {
	return s.users, true, nil
}
func (s *fakeStore) SegmentRule(context.Context, campaign.Audience) (*campaign.FrozenRule, error) {
	return nil, nil
}
func (s *fakeStore) Requests(context.Context, int64, int) ([]campaign.Request, error) {
	return s.requests, nil
}

func (s *fakeStore) Save(_ context.Context, c campaign.Change) (campaign.Campaign, error) {
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
	typed := campaign.TypedReach{Shown: alone(100), Typed: alone(100)}
	publish := campaign.Wish{Step: campaign.Publishing, Version: 3, AloneUpTo: alone(0), Reach: typed}
	for name, c := range map[string]struct {
		from    campaign.State
		wish    campaign.Wish
		above   int64 // 0 = any number
		asked   bool  // approval was requested before
		rival   func(*campaign.Campaign)
		outcome campaign.StepOutcome
		want    error
		saved   int
	}{
		"publish":                    {from: campaign.Draft, wish: publish, outcome: campaign.Taken, saved: 1},
		"publish what nobody saw":    {from: campaign.Draft, wish: campaign.Wish{Step: campaign.Publishing, AloneUpTo: alone(0)}, outcome: campaign.Changed},
		"publish without a limit":    {from: campaign.Draft, wish: campaign.Wish{Step: campaign.Publishing, Version: 3}, outcome: campaign.Changed},
		"publish an older version":   {from: campaign.Draft, wish: campaign.Wish{Step: campaign.Publishing, Version: 2, AloneUpTo: alone(0)}, outcome: campaign.Changed},
		"publish twice":              {from: campaign.Scheduled, wish: publish, outcome: campaign.AlreadyTaken},
		"publish what runs":          {from: campaign.Running, wish: publish, outcome: campaign.AlreadyTaken},
		"publish with a colleague":   {from: campaign.Draft, wish: publish, rival: func(c *campaign.Campaign) { c.State = campaign.Scheduled }, outcome: campaign.AlreadyTaken},
		"publish what is edited":     {from: campaign.Draft, wish: publish, rival: func(c *campaign.Campaign) { c.Name = "other" }, outcome: campaign.Changed},
		"publish to too many":        {from: campaign.Draft, above: 10, wish: campaign.Wish{Step: campaign.Publishing, Version: 3, AloneUpTo: alone(10), Reach: typed}, outcome: campaign.Asked, saved: 1},
		"publish what waits":         {from: campaign.Draft, above: 10, asked: true, wish: campaign.Wish{Step: campaign.Publishing, Version: 3, AloneUpTo: alone(10), Reach: typed}, outcome: campaign.NeedsApproval},
		"ask with a colleague":       {from: campaign.Draft, above: 10, wish: campaign.Wish{Step: campaign.Publishing, Version: 3, AloneUpTo: alone(10), Reach: typed}, rival: func(c *campaign.Campaign) { c.ApprovalAskedAt = &now }, outcome: campaign.NeedsApproval},
		"pause":                      {from: campaign.Running, wish: campaign.Wish{Step: campaign.Pausing}, outcome: campaign.Taken, saved: 1},
		"pause twice":                {from: campaign.Paused, wish: campaign.Wish{Step: campaign.Pausing}, outcome: campaign.AlreadyTaken},
		"resume what was not paused": {from: campaign.Running, wish: campaign.Wish{Step: campaign.Resuming}, want: campaign.ErrTransition},
		"cancel twice":               {from: campaign.Cancelled, wish: campaign.Wish{Step: campaign.Cancelling}, outcome: campaign.AlreadyTaken},
		"pause what is over":         {from: campaign.Finished, wish: campaign.Wish{Step: campaign.Pausing}, want: campaign.ErrTransition},
	} {
		held := campaign.Campaign{ID: 9, Version: 3, State: c.from, Creator: by.Label, Spec: campaign.Spec{Shop: 10, Name: "Spring", Channel: delivery.App,
			Audience: campaign.Audience{Kind: campaign.Everybody, Users: []user.ID{}}, StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour),
			Content: delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: "a", Body: "b"}}}}}}}
		if c.asked {
			held.ApprovalAskedAt = &now
		}
		store := &fakeStore{held: held, above: c.above, users: 100, rival: c.rival}
		publisher := campaign.Publisher{Store: store, Lock: fakeLock{}, Channels: delivery.ChannelSetOf(delivery.App), Now: func() time.Time { return now }}
		service := &campaign.Service{Store: store, Approvals: &approval.Service{Store: store, Publisher: publisher}, Now: publisher.Now}
		got, outcome, err := service.Take(t.Context(), by, 9, c.wish)
		if outcome != c.outcome || !errors.Is(err, c.want) || got.ID != 9 || store.saved != c.saved {
			t.Errorf("%s: outcome %d, %v, campaign %d, %d changes", name, outcome, err, got.ID, store.saved)
		}
	}
}

// TestSendingToEverybodyAsksForTheNumber: the number is typed in every case, also where the form
// showed no number, and where the audience has outgrown the number shown.
func TestSendingToEverybodyAsksForTheNumber(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		typed campaign.TypedReach
		users int64
		taken bool
	}{
		"typed as shown":             {campaign.TypedReach{Shown: number(100), Typed: number(100)}, 100, true},
		"about as many now":          {campaign.TypedReach{Shown: number(100), Typed: number(100)}, 120, true},
		"fewer now":                  {campaign.TypedReach{Shown: number(100), Typed: number(100)}, 7, true},
		"nobody":                     {campaign.TypedReach{Shown: number(0), Typed: number(0)}, 0, true},
		"no number in the form":      {campaign.TypedReach{}, 100, false},
		"typed without a number":     {campaign.TypedReach{Typed: number(100)}, 100, false},
		"not typed":                  {campaign.TypedReach{Shown: number(100)}, 100, false},
		"another number":             {campaign.TypedReach{Shown: number(100), Typed: number(10)}, 100, false},
		"outgrown":                   {campaign.TypedReach{Shown: number(100), Typed: number(100)}, 121, false},
		"a small number is invented": {campaign.TypedReach{Shown: number(1), Typed: number(1)}, 100, false},
	} {
		var broken *fault.Fields
		if err := c.typed.Check(c.users); (err == nil) != c.taken || err != nil && (!errors.As(err, &broken) || broken.List[0].Key != "rule.reach_typed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	by, now := staff.Actor{Label: "staff:1", Role: staff.Marketer}, time.Unix(1_000_000, 0)
	held := campaign.Campaign{ID: 9, Version: 3, State: campaign.Draft, Spec: campaign.Spec{Audience: campaign.Audience{Kind: campaign.Everybody}, EndsAt: now.Add(time.Hour)}}
	store := &fakeStore{held: held, users: 100}
	service := &campaign.Service{Store: store, Approvals: &approval.Service{Store: store}, Now: func() time.Time { return now }}
	_, outcome, err := service.Take(t.Context(), by, 9, campaign.Wish{Step: campaign.Publishing, Version: 3, AloneUpTo: number(0)})
	if fault.KindOf(err) != fault.Invalid || outcome != 0 || store.saved != 0 {
		t.Errorf("published without the number: outcome %d, %v", outcome, err)
	}
}
