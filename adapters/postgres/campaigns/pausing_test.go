package campaigns_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// TestPausingMeetsCheckpointsInOrder: a campaign is paused and resumed while many of its batches
// are checkpointed together. The batches were stored from the last range to the first, so that
// the order of their ids differs from the order of any index that finds them.
func TestPausingMeetsCheckpointsInOrder(t *testing.T) {
	s := newCampaignFixture(t)
	s.users(400, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	s.Fill("batches", "generate_series(400, 1, -1) i", pgtest.Row{"kind": "campaign", "owner_id": c.ID, "channel": delivery.Webhook,
		"from_user": pgtest.SQL("i"), "to_user": pgtest.SQL("i"), "priority": 10})
	s.Exec(`analyze batches`)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range 64 {
		l, err := s.Batches.LeaseNext(t.Context(), delivery.Webhook, time.Minute)
		s.Must(err)
		working.Go(func() {
			for ctx.Err() == nil {
				if _, err := l.Checkpoint(t.Context(), delivery.Progress{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var took []time.Duration
	for i := range 100 {
		step := []campaign.Transition{campaign.Pausing, campaign.Resuming}[i%2]
		began := time.Now()
		if _, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, step, ""); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		took = append(took, time.Since(began))
	}
	_, err := s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Cancelling, "")
	s.Must(err)
	stop()
	working.Wait()
	t.Logf("the longest step took %v", slices.Max(took))
	if n := s.Number(`select count(*) from batches where held or stop_reason is null`); n != 0 {
		t.Errorf("%d batches were left out", n)
	}
}
