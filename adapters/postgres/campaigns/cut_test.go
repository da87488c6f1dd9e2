package campaigns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// slowCampaigns reads its audience slowly.
type slowCampaigns struct {
	campaignsdb.Campaigns
	slow *pgtest.SlowReading
}

func (s slowCampaigns) Audience(c campaign.Cut) campaign.AudienceReader {
	return slowAudience{s.Campaigns.Audience(c), s.slow}
}

type slowAudience struct {
	campaign.AudienceReader
	slow *pgtest.SlowReading
}

func (a slowAudience) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	a.slow.Read()
	return a.AudienceReader.Next(ctx, limit)
}

// TestACutIsKeptWhileAPageIsRead: no other worker takes a campaign over from a cutter that is
// reading, and each user gets the message.
func TestACutIsKeptWhileAPageIsRead(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(3000, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	slow := &pgtest.SlowReading{Take: func() error { _, err := s.campaigns.BeginCut(t.Context(), c.ID, pgtest.ShortLease); return err }}
	s.launcher.Store, s.launcher.LeaseFor = slowCampaigns{s.campaigns, slow}, pgtest.ShortLease
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if n := s.Number(`select coalesce(sum(users), 0) from campaign_messages`); slow.Taken || n != 3000 || s.now(c).CutAt == nil {
		t.Errorf("taken over: %v; %d users cut, ended %v", slow.Taken, n, s.now(c).CutAt)
	}
}

// TestACancelledCutStopsReading, without having stored anything.
func TestACancelledCutStopsReading(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(10, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	cut, err := s.campaigns.BeginCut(t.Context(), c.ID, time.Minute)
	s.Must(err)
	s.Must(s.campaigns.KeepCut(t.Context(), cut, time.Minute))
	_, err = s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Cancelling, "wrong")
	s.Must(err)
	if err := s.campaigns.KeepCut(t.Context(), cut, time.Minute); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("kept after it was cancelled: %v", err)
	}
}
