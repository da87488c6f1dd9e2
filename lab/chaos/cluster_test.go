package chaos_test

import (
	"context"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
)

// onACluster starts a PostgreSQL and a Redis Cluster of three masters.
func onACluster(w *system) (*stack.Stack, error) {
	_, addresses := localstack.RedisCluster(w.t, 3)
	return withCluster(w, addresses)
}

// withCluster starts a PostgreSQL for the programs, which use the Redis Cluster at addresses.
func withCluster(w *system, addresses string) (*stack.Stack, error) {
	database, err := localstack.StartPostgres(w.ctx, localstack.Options{Durable: true})
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { _ = database.Stop(context.Background()) })
	return stack.On(w.ctx, database.URL(), addresses)
}

// TestEverythingOnARedisCluster reserves, fires, delivers and claims with a
// Redis Cluster of three masters, and accounts for each user. No fault is
// injected.
func TestEverythingOnARedisCluster(t *testing.T) {
	t.Parallel()
	const patience = 20 * time.Second
	t.Run("reminders", func(t *testing.T) {
		quick := [2]time.Duration{time.Millisecond, 5 * time.Millisecond}
		w := &system{size: &size{users: 150, hook: quick, mail: quick, patience: patience, servers: onACluster},
			t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
		w.build()
		d := w.reserveAll("On a cluster", w.people())
		w.crowd.move(w.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
		w.settled(d, time.Minute)
		w.account(d, everybodySent)
	})
	t.Run("claims", func(t *testing.T) {
		rushAndDestroy(t, rush{users: 200, visits: 600, stock: []int64{40, 60}, limit: 2, codes: 10, storm: 8 * time.Second,
			pause: [2]time.Duration{time.Millisecond, time.Second}, patience: patience, servers: onACluster})
	})
}
