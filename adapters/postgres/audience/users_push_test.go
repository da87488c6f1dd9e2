package audience_test

import (
	"slices"
	"sync"
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/user"
)

// TestASubscriptionThatIsGone is removed by endpoint and keys, so that a browser that has
// subscribed again meanwhile keeps its new subscription. The user's other devices stay as they
// are.
func TestASubscriptionThatIsGone(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	sub := func(endpoint, key string) user.PushSubscription {
		return user.PushSubscription{Endpoint: "https://p.example.com/" + endpoint, P256dh: key, Auth: "a" + key}
	}
	stored := []user.PushSubscription{sub("1", "k1"), sub("2", "k2"), sub("3", "k3")}
	w.Upsert(user.Change{ID: 1, Push: &stored}, user.Change{ID: 2, Push: &stored}, user.Change{ID: 3})
	has := func(id user.ID, want ...user.PushSubscription) {
		t.Helper()
		u, err := users.User(t.Context(), id)
		if w.Must(err); !slices.Equal(u.Push, want) {
			t.Fatalf("user %d has %v, want %v", id, u.Push, want)
		}
	}
	remove := func(id user.ID, gone user.PushSubscription, want bool) {
		t.Helper()
		if removed, err := users.RemovePush(t.Context(), id, gone); err != nil || removed != want {
			t.Fatalf("removed %v, want %v; %v", removed, want, err)
		}
	}
	remove(1, sub("2", "old key"), false)
	remove(1, sub("2", "k2"), true)
	remove(1, sub("2", "k2"), false) // told twice
	has(1, stored[0], stored[2])
	has(2, stored...)
	remove(3, sub("1", "k1"), false)
	remove(4, sub("1", "k1"), false)
	if n := w.Number(`select count(*) from outbox where topic = 'users.changed.v1' and payload->>'from_user' = '1'`); n != 2 {
		t.Errorf("%d announcements, want 2", n)
	}
	var both sync.WaitGroup // two workers find out at once
	for _, gone := range []user.PushSubscription{stored[0], stored[2]} {
		both.Go(func() { remove(1, gone, true) })
	}
	both.Wait()
	has(1)
}
