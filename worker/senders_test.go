package main

import (
	"context"
	"log/slog"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestAPushSubscriptionThatIsGoneIsRemoved, also when the push's own time is over,
// and a database that is away costs a warning.
func TestAPushSubscriptionThatIsGoneIsRemoved(t *testing.T) {
	db, err := postgres.Open(t.Context(), localstack.Database(t), postgres.Options{AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	users := postgres.NewUsers(db)
	push := []user.PushSubscription{{Endpoint: "https://p.example.com/1", P256dh: "k", Auth: "a"}, {Endpoint: "https://p.example.com/2", P256dh: "k", Auth: "a"}}
	if err := users.Upsert(t.Context(), []user.Change{{ID: 7, Push: &push}}, staff.Entry{}); err != nil {
		t.Fatal(err)
	}
	p := &program{db: db, log: slog.New(slog.DiscardHandler)}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	p.subscriptionGone(over, 7, push[0])
	if u, err := users.User(t.Context(), 7); err != nil || len(u.Push) != 1 || u.Push[0] != push[1] {
		t.Errorf("left are %v, %v", u.Push, err)
	}
	db.Close()
	p.subscriptionGone(t.Context(), 7, push[1])
}
