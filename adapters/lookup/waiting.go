package lookup

import (
	"context"
	"sync"
	"time"

	"dropbell/domain/campaign"
)

const (
	// waitingLife is the shortest time for which a count is reused. A count is also reused for
	// at least waitingPause times the duration of the counting.
	waitingLife  = time.Second
	waitingPause = 20
	// maxWaitingCounts bounds the number of campaigns whose count is stored.
	maxWaitingCounts = 100
)

// WaitingCounts caches, by campaign, how many recipients wait for the end of their quiet hours.
// A large audience is therefore counted rarely, for any number of pages that show the count.
type WaitingCounts struct {
	// Count is [campaign.ResultStore.Waiting].
	Count func(ctx context.Context, id int64) (campaign.Waiting, error)

	mu   sync.Mutex
	kept map[int64]*waitingCount
}

// waitingCount is one campaign's count, valid until a time.
type waitingCount struct {
	mu      sync.Mutex
	until   time.Time
	waiting campaign.Waiting
}

// Of returns the campaign's cached count. If the count is too old, Of counts again, and
// concurrent calls for the same campaign wait for the result.
func (s *WaitingCounts) Of(ctx context.Context, id int64) (campaign.Waiting, error) {
	n := s.entry(id)
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
	n.waiting, n.until = w, began.Add(took+max(waitingLife, waitingPause*took))
	return w, nil
}

// entry returns the campaign's entry. Before a new entry would exceed maxWaitingCounts, entry
// removes all entries.
func (s *WaitingCounts) entry(id int64) *waitingCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.kept[id]; n != nil {
		return n
	}
	if s.kept == nil || len(s.kept) >= maxWaitingCounts {
		s.kept = map[int64]*waitingCount{}
	}
	n := &waitingCount{}
	s.kept[id] = n
	return n
}
