package lookup

import (
	"context"
	"sync"
	"time"

	"dropbell/domain/campaign"
)

const (
	// sleepersLife is how long a count of who waits for the end of quiet hours
	// is shown at least, sleepersPause how many times as long as counting took.
	sleepersLife  = time.Second
	sleepersPause = 20
	// maxSleepers bounds for how many campaigns a count is kept.
	maxSleepers = 100
)

// Sleepers keeps, by campaign, who waits for the end of quiet hours, so that a
// large audience is counted seldom, however many look.
type Sleepers struct {
	// Count is [campaign.ResultStore.Waiting].
	Count func(ctx context.Context, id int64) (campaign.Waiting, error)

	mu   sync.Mutex
	kept map[int64]*nap
}

// nap is one campaign's count, which is looked at again after a while.
type nap struct {
	mu      sync.Mutex
	until   time.Time
	waiting campaign.Waiting
}

// Of returns what is known of the campaign, or counts. Those who ask meanwhile
// wait for it.
func (s *Sleepers) Of(ctx context.Context, id int64) (campaign.Waiting, error) {
	n := s.nap(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	began := time.Now()
	if began.Before(n.until) {
		return n.waiting, nil
	}
	w, err := s.Count(ctx, id)
	if err != nil {
		return w, err
	}
	took := time.Since(began)
	n.waiting, n.until = w, began.Add(took+max(sleepersLife, sleepersPause*took))
	return w, nil
}

// nap returns the campaign's entry. Too many are forgotten all at once.
func (s *Sleepers) nap(id int64) *nap {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.kept[id]; n != nil {
		return n
	}
	if s.kept == nil || len(s.kept) >= maxSleepers {
		s.kept = map[int64]*nap{}
	}
	n := &nap{}
	s.kept[id] = n
	return n
}
