package lookup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/adapters/lookup"
	"dropbell/domain/user"
)

// TestErasedUsersAreKnown: a look reads new erasures, with an overlap. From time to time a look
// reads all erasures, which finds lifted erasures. A failed look changes nothing.
func TestErasedUsersAreKnown(t *testing.T) {
	now := time.Date(2055, 1, 1, 0, 0, 0, 0, time.UTC)
	stored, asked, failure := map[user.ID]time.Time{5: now}, time.Time{}, error(nil)
	e := &lookup.Erased{Load: func(_ context.Context, since time.Time) (ids []user.ID, _ time.Time, _ error) {
		asked = since
		for id, at := range stored {
			if !at.Before(since) {
				ids = append(ids, id)
			}
		}
		return ids, now, failure
	}}
	look := func() {
		if err := e.Look(t.Context()); !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	if e.Has(5) || e.Known() {
		t.Error("known before the first look")
	}
	look()
	if !e.Known() || !asked.IsZero() || !e.Has(5) || e.Has(6) {
		t.Errorf("the first look asked since %v and knows 5: %v, 6: %v", asked, e.Has(5), e.Has(6))
	}
	now = now.Add(time.Second)
	stored[6] = now.Add(-30 * time.Second) // dated before the last look, committed after it
	delete(stored, 5)
	look()
	if asked.IsZero() || !e.Has(6) || !e.Has(5) {
		t.Errorf("the second asked since %v and knows 5: %v, 6: %v", asked, e.Has(5), e.Has(6))
	}
	now, failure = now.Add(10*time.Minute), errors.New("away")
	look()
	if !e.Has(5) || !e.Has(6) {
		t.Error("a failed look forgot")
	}
	failure = nil
	look()
	look()
	if e.Has(5) || !e.Has(6) {
		t.Errorf("all were read: knows 5, which was lifted: %v, 6: %v", e.Has(5), e.Has(6))
	}
}
