package campaign_test

import (
	"context"
	"testing"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// TestSleepersAreCountedWhereThereCanBeSome: counting costs something.
func TestSleepersAreCountedWhereThereCanBeSome(t *testing.T) {
	some := campaign.Waiting{Users: 3}
	s := &campaign.Service{QuietCounts: func(context.Context, int64) (campaign.Waiting, error) { return some, nil }}
	flight := campaign.Progress{Counts: delivery.Counts{InFlight: 5}}
	for _, c := range []struct {
		state campaign.State
		p     campaign.Progress
		want  campaign.Waiting
	}{
		{campaign.Running, flight, some}, {campaign.Paused, flight, some},
		{campaign.Running, campaign.Progress{}, campaign.Waiting{}}, {campaign.Finished, flight, campaign.Waiting{}}, {campaign.Draft, flight, campaign.Waiting{}},
	} {
		got, err := s.Waiting(t.Context(), campaign.Status{Campaign: campaign.Campaign{State: c.state}, Progress: c.p})
		if err != nil || got != c.want {
			t.Errorf("%s with %d in flight: %+v %v", c.state, c.p.InFlight, got, err)
		}
	}
}
