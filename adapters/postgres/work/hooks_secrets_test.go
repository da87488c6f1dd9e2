package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/domain/seal"
)

// countedPosts counts requests, and accepts them.
type countedPosts int

func (p *countedPosts) Post(context.Context, string, string, time.Time, []byte, [][]byte) hook.Answer {
	*p++
	return hook.Answer{Status: 200}
}

// TestASecretOfAnotherEndpoint: a secret that was copied from another endpoint's row signs
// nothing. The endpoint gets no deliveries, as if its key were missing, and continues once its
// secret was rotated.
func TestASecretOfAnotherEndpoint(t *testing.T) {
	h := newHooked(t)
	box, err := seal.New(hook.SealPurpose, "a key with at least thirty-two bytes")
	h.Must(err)
	service := &hook.Service{Store: h.store, Box: box, Now: time.Now, Wake: func(context.Context, int64) {}}
	one, _, err := service.Create(t.Context(), operator, h.shop, hook.Input{URL: "https://one.example", Enabled: true}, "")
	h.Must(err)
	two, _, err := service.Create(t.Context(), operator, h.shop, hook.Input{URL: "https://two.example", Enabled: true}, "")
	h.Must(err)
	h.Exec(`update hook_endpoints set secret = (select secret from hook_endpoints where id = $1) where id = $2`, one.ID, two.ID)
	other, err := seal.New(hook.SealPurpose, "another key with at least thirty-two bytes")
	h.Must(err)

	h.happen(h.opened(h.shop))
	var posts countedPosts
	deliverer := &hook.Deliverer{Store: h.store, Poster: &posts, Box: box, Now: time.Now}
	if _, err := deliverer.Drain(t.Context(), two.ID); !errors.Is(err, seal.ErrSealed) || posts != 0 {
		t.Errorf("the copied secret: %v, %d requests", err, posts)
	}
	h.soon()
	missing := &hook.Deliverer{Store: h.store, Poster: &posts, Box: other, Now: time.Now}
	if _, err := missing.Drain(t.Context(), one.ID); !errors.Is(err, seal.ErrSealed) || posts != 0 {
		t.Errorf("the missing key: %v, %d requests", err, posts)
	}
	h.soon()
	_, _, err = service.Rotate(t.Context(), operator, two.ID, 0)
	h.Must(err)
	for _, id := range []int64{one.ID, two.ID} {
		if _, err := deliverer.Drain(t.Context(), id); err != nil {
			t.Errorf("endpoint %d: %v", id, err)
		}
	}
	if posts != 2 {
		t.Errorf("%d requests, want 2", posts)
	}
}
