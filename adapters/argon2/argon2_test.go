package argon2

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func small(concurrent int) *Hasher { return newHasher(concurrent, 1024) }

func TestHashMatchesOnlyItsPassword(t *testing.T) {
	h := small(1)
	hash, err := h.Hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=1024,t=2,p=2$") {
		t.Fatalf("Hash = %q, %v", hash, err)
	}
	again, _ := h.Hash(t.Context(), "correct horse")
	if again == hash {
		t.Error("the same password gives the same hash: there is no salt")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		if got, err := h.Matches(t.Context(), password, hash); got != want || err != nil {
			t.Errorf("Matches(%q) = %v, %v; want %v", password, got, err, want)
		}
	}
}

func TestNobodyMatchesNothing(t *testing.T) {
	h := small(1)
	for _, password := range []string{"", "anything", strings.Repeat("\x00", 32)} {
		if got, err := h.Matches(t.Context(), password, ""); got || err != nil {
			t.Errorf("Matches(%q, nobody) = %v, %v", password, got, err)
		}
	}
}

func TestUnknownAccountCostsTheSame(t *testing.T) {
	h := newHasher(1, 16*1024)
	hash, err := h.Hash(t.Context(), "right")
	if err != nil {
		t.Fatal(err)
	}
	took := func(hash string) time.Duration {
		best := time.Hour
		for range 5 {
			start := time.Now()
			if _, err := h.Matches(t.Context(), "wrong", hash); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	known, unknown := took(hash), took("")
	if unknown < known/4 || unknown > known*4 {
		t.Errorf("known account %v, unknown account %v", known, unknown)
	}
}

func TestWaitsForATurnAndGivesUp(t *testing.T) {
	h := small(1)
	h.turns <- struct{}{} // the only turn is taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Hash = %v, want context.Canceled", err)
	}
	if _, err := h.Matches(ctx, "x", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Matches = %v, want context.Canceled", err)
	}
	<-h.turns
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := h.Hash(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(h.turns) != 0 {
		t.Errorf("%d turns were not given back", len(h.turns))
	}
}
