package campaign_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
)

// TestUndoingAPause: a pause is undone once, and not after another change.
func TestUndoingAPause(t *testing.T) {
	store := &fakeStore{held: campaign.Campaign{ID: 7, State: campaign.Paused, Version: 4}}
	s := &campaign.Service{Store: store, Now: time.Now}
	for _, stale := range []int64{0, 3, 5} {
		if _, _, err := s.UndoPause(t.Context(), staff.System(), 7, stale); !errors.Is(err, staff.ErrTooLate) {
			t.Errorf("version %d: %v", stale, err)
		}
	}
	if c, undone, err := s.UndoPause(t.Context(), staff.System(), 7, 4); err != nil || undone != staff.Undid || c.State != campaign.Running || store.saved != 1 {
		t.Fatalf("%v %v %s", undone, err, c.State)
	}
	store.held.Version = 5
	if _, undone, err := s.UndoPause(t.Context(), staff.System(), 7, 4); err != nil || undone != staff.UndidBefore || store.saved != 1 {
		t.Errorf("again: %v %v", undone, err)
	}
	held := time.Now()
	store.held = campaign.Campaign{ID: 7, State: campaign.Paused, Version: 4, HeldAt: &held} // by the program, for approval
	if _, _, err := s.UndoPause(t.Context(), staff.System(), 7, 4); !errors.Is(err, staff.ErrTooLate) {
		t.Errorf("a campaign that waits for approval: %v", err)
	}
	for _, state := range campaign.States() {
		if err := (campaign.Campaign{State: state}).Deletable(); (err == nil) != (state == campaign.Draft) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
