package lookup

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/domain/campaign"
)

// TestCountsAreReused: a campaign's waiting recipients are counted rarely, for any number of
// callers. Errors are not cached, and the number of cached campaigns is bounded.
func TestCountsAreReused(t *testing.T) {
	counted, broken := 0, errors.New("away")
	var fails error
	s := &WaitingCounts{Count: func(_ context.Context, id int64) (campaign.Waiting, error) {
		counted++
		return campaign.Waiting{Users: id * 10}, fails
	}}
	look := func(id int64, want int, wrong error) {
		t.Helper()
		if w, err := s.Of(t.Context(), id); !errors.Is(err, wrong) || err == nil && w.Users != id*10 || counted != want {
			t.Errorf("campaign %d: %+v %v, counted %d times, want %d", id, w, err, counted, want)
		}
	}
	fails = broken
	look(1, 1, broken)
	fails = nil
	look(1, 2, nil)
	if !s.entry(1).until.After(time.Now().Add(-time.Minute)) {
		t.Error("a count is not kept")
	}
	s.entry(1).until = time.Now().Add(time.Hour)
	look(1, 2, nil)
	look(2, 3, nil)
	s.entry(1).until = time.Now()
	look(1, 4, nil)
	for id := range int64(3 * maxWaitingCounts) {
		s.entry(id)
	}
	if len(s.kept) > maxWaitingCounts {
		t.Errorf("%d campaigns are kept", len(s.kept))
	}
}
