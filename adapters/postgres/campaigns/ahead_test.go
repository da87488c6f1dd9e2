package campaigns_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/staff"
)

// TestCampaignsAhead: campaigns that start in the interval, also such as have started, with the
// users who have a contact. Drafts and campaigns at other times are left out.
func TestCampaignsAhead(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(100, 1)
	s.Exec(`update users set email = 'u@shop.example' where id <= 40`)
	now := pgtest.Clock()
	at := func(after time.Duration, c delivery.Channel, rate int) func(*campaign.Spec) {
		return func(spec *campaign.Spec) {
			spec.Name, spec.StartsAt, spec.EndsAt, spec.Channel, spec.RatePerSecond = "C "+after.String(), now.Add(after), now.Add(2*time.Hour), c, rate
		}
	}
	soon := s.published(at(10*time.Minute, delivery.Email, 7))
	s.published(at(time.Hour, delivery.Email, 0))
	started := s.running(at(-time.Minute, delivery.App, 0))
	draft := campaignSpec()
	at(5*time.Minute, delivery.App, 0)(&draft)
	_, err := s.service.Create(t.Context(), staff.System(), draft, "")
	s.Must(err)
	got, err := s.campaigns.Ahead(t.Context(), now.Add(-5*time.Minute), now.Add(15*time.Minute))
	s.Must(err)
	want := []forecast.CampaignAhead{{ID: started.ID, Name: started.Name, Channel: delivery.App, StartsAt: started.StartsAt, Messages: 100},
		{ID: soon.ID, Name: soon.Name, Channel: delivery.Email, StartsAt: soon.StartsAt, PerSecond: 7, Messages: 40}}
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if !got[i].StartsAt.Equal(want[i].StartsAt) {
			t.Errorf("%s starts at %s", got[i].Name, got[i].StartsAt)
		}
		if want[i].StartsAt = got[i].StartsAt; got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
