package campaign_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// receivedStore returns the same rows for every user, and records the shops passed to it.
type receivedStore struct {
	holds campaign.ReceivedRows
	shops []int64
	err   error
}

func (b *receivedStore) ReceivedRows(_ context.Context, _ user.ID, shops []int64) (campaign.ReceivedRows, error) {
	b.shops = shops
	return b.holds, b.err
}

func TestSharesCountWhatReached(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	letter := func(shop int64, o delivery.Outcome, ago time.Duration) campaign.Letter {
		return campaign.Letter{Shop: shop, ShopName: "S", Outcome: o, CountsAt: now.Add(-ago)}
	}
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	b := &receivedStore{holds: campaign.ReceivedRows{Now: now, Limits: map[int64]campaign.Limits{0: {PerWeek: 1}, 10: {PerDay: 2, PerWeek: 5}, 11: {ApprovalAbove: 9}, 12: {PerDay: 1}},
		Letters: []campaign.Letter{letter(12, delivery.Skipped, time.Minute), letter(10, delivery.Sent, time.Hour), letter(10, delivery.Recovered, day-1), letter(10, delivery.Sent, day),
			letter(10, delivery.Dead, time.Hour), letter(10, delivery.InFlight, time.Hour), letter(10, delivery.Sent, week-1), letter(10, delivery.Sent, week), letter(0, delivery.Sent, 2*day),
			letter(11, delivery.Sent, time.Hour), letter(13, delivery.Sent, time.Hour)}}}
	got, err := (&campaign.Letters{Store: b}).To(t.Context(), staff.Actor{Role: staff.Viewer, Shops: []int64{10}}, 7)
	if err != nil || len(b.shops) != 1 || b.shops[0] != 10 {
		t.Fatalf("%v, asked for shops %v", err, b.shops)
	}
	want := []struct {
		shop      int64
		day, week int
		full      bool
	}{{0, 0, 1, true}, {10, 2, 4, true}, {12, 0, 0, false}}
	if len(got.Shares) != len(want) || len(got.Letters) != 11 || got.AtLeast {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		s := got.Shares[i]
		if s.Full() != w.full {
			t.Errorf("%+v, want %+v", s, w)
		}
		want := s
		want.Shop, want.Day, want.Week = w.shop, w.day, w.week
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}
	for ago, atLeast := range map[time.Duration]bool{week - 1: true, week: false, 2 * week: false} {
		b.holds.Passed = now.Add(-ago)
		if got, _ := (&campaign.Letters{Store: b}).To(t.Context(), staff.System(), 7); got.AtLeast != atLeast {
			t.Errorf("older campaigns from %v ago: at least %v", ago, got.AtLeast)
		}
	}
}

func TestLettersAreForStaff(t *testing.T) {
	b := &receivedStore{}
	if _, err := (&campaign.Letters{Store: b}).To(t.Context(), staff.Actor{}, 7); fault.KindOf(err) != fault.Denied {
		t.Errorf("nobody in particular: %v", err)
	}
	b.err = errors.New("away")
	if _, err := (&campaign.Letters{Store: b}).To(t.Context(), staff.System(), 7); !errors.Is(err, b.err) {
		t.Errorf("%v", err)
	}
}
