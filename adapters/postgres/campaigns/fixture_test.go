package campaigns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// campaignFixture is a database with campaigns and the services that deliver them.
type campaignFixture struct {
	*fixture
	campaigns campaignsdb.Campaigns
	service   *campaign.Service
	approvals *approval.Service
	launcher  *campaign.Launcher
	queue     *pgtest.MemoryQueue
}

// downLock is a Redis that is away.
type downLock struct{}

func (downLock) Take(context.Context, [32]byte, int64, time.Duration) (bool, error) {
	return false, errors.New("away")
}
func (downLock) Release(context.Context, [32]byte, int64) error { return errors.New("away") }

func newCampaignFixture(t *testing.T) *campaignFixture {
	t.Helper()
	w := newFixture(t)
	s := &campaignFixture{fixture: w, campaigns: campaignsdb.NewCampaigns(w.DB, w.Segments), queue: &pgtest.MemoryQueue{}}
	channels := delivery.ChannelSetOf(delivery.AllChannels()...)
	s.approvals = &approval.Service{Store: s.campaigns, Publisher: campaign.Publisher{Store: s.campaigns, Lock: downLock{}, Templates: w.Templates, Channels: channels, Now: pgtest.Clock}}
	s.service = &campaign.Service{Store: s.campaigns, Approvals: s.approvals, Templates: w.Templates, Now: pgtest.Clock,
		Channels:  channels,
		Audiences: campaign.AudienceKinds()}
	s.launcher = &campaign.Launcher{Store: s.campaigns, Queue: s.queue, Now: pgtest.Clock, LeaseFor: 10 * time.Second}
	return s
}

func text(title, body string) delivery.Copy {
	return delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: title, Body: body}}}}}
}

func campaignSpec() campaign.Spec {
	return campaign.Spec{Name: "Spring", Content: text("Hello", "Come and see"), Channel: delivery.Webhook,
		Audience: campaign.Audience{Kind: campaign.Everybody}, StartsAt: pgtest.Clock().Add(-time.Second), EndsAt: pgtest.Clock().Add(time.Hour)}
}

// users makes rows for n users, whose ids are apart by step.
func (s *campaignFixture) users(n, step int) {
	s.Helper()
	s.Exec(`insert into users (id, name) select i * $2, 'User ' || i from generate_series(1, $1::bigint) as i on conflict do nothing`, n, step)
}

// published returns a campaign that may start.
func (s *campaignFixture) published(change func(*campaign.Spec)) campaign.Campaign {
	s.Helper()
	spec := campaignSpec()
	if change != nil {
		change(&spec)
	}
	c, err := s.service.Create(s.Context(), staff.System(), spec, "")
	s.Must(err)
	c, err = s.service.Do(s.Context(), staff.System(), c.ID, 0, campaign.Publishing, "test")
	s.Must(err)
	return c
}

// running returns a campaign that has started and been cut.
func (s *campaignFixture) running(change func(*campaign.Spec)) campaign.Campaign {
	s.Helper()
	c := s.published(change)
	s.Must(s.launcher.Start(s.Context(), c.ID))
	s.Must(s.launcher.Cut(s.Context(), c.ID))
	return s.now(c)
}

// now reads the campaign again.
func (s *campaignFixture) now(c campaign.Campaign) campaign.Campaign {
	s.Helper()
	c, err := s.campaigns.Campaign(s.Context(), c.ID)
	s.Must(err)
	return c
}

func (s *campaignFixture) deliverer(senders ...delivery.Sender) *delivery.Service {
	d := s.fixture.Deliverer(s.queue, senders...)
	d.Guards = map[delivery.Kind]delivery.Guard{delivery.KindCampaign: &campaign.Guard{Store: s.campaigns}}
	return d
}

// settled fails the test unless the campaign is settled and its counts add up; it returns the
// counts.
func (s *campaignFixture) settled(c campaign.Campaign) delivery.Counts {
	s.Helper()
	_, err := s.campaigns.Settle(s.Context())
	s.Must(err)
	if s.now(c).SettledAt == nil {
		s.Fatalf("campaign %d is not settled: %+v", c.ID, s.books(c))
	}
	return s.books(c).Counted
}

// books fails unless the campaign's account balances.
func (s *campaignFixture) books(c campaign.Campaign) campaign.Balance {
	s.Helper()
	b, err := s.campaigns.Balance(s.Context(), c.ID)
	s.Must(err)
	if b.Difference() != 0 {
		s.Errorf("campaign %d is off by %d: %+v", c.ID, b.Difference(), b)
	}
	return b
}

// reached fails unless the sink got exactly n users, each once.
func (s *campaignFixture) reached(k *pgtest.Sink, n int) {
	s.Helper()
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if len(k.Got) != n {
		s.Errorf("%d users reached, want %d", len(k.Got), n)
	}
	for key, times := range k.Got {
		if times != 1 {
			s.Fatalf("%s was sent %d times", key, times)
		}
	}
}

func ids(list ...int64) []user.ID {
	out := make([]user.ID, len(list))
	for i, n := range list {
		out[i] = user.ID(n)
	}
	return out
}
