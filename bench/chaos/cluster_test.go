package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/bench/stack"
)

// A redisCluster is what the programs use as Redis.
type redisCluster struct{ masters, replicas []*localstack.Redis }

// servers starts a PostgreSQL and a Redis Cluster of three masters.
func (c *redisCluster) servers(replicated bool) func(*system) (*stack.Stack, error) {
	return func(w *system) (*stack.Stack, error) {
		var addresses string
		if replicated {
			c.masters, c.replicas, addresses = localstack.ReplicatedCluster(w.t, 3)
		} else {
			c.masters, addresses = localstack.RedisCluster(w.t, 3)
		}
		database, err := localstack.StartPostgres(w.ctx, localstack.Options{Durable: true})
		if err != nil {
			return nil, err
		}
		w.t.Cleanup(func() { _ = database.Stop(context.Background()) })
		s, err := stack.On(w.ctx, database.URL(), addresses)
		if s != nil {
			s.Postgres = database
		}
		return s, err
	}
}

// lose kills the master at the position and returns when its replica has been
// elected. What had not reached the replica is lost.
func (c *redisCluster) lose(i int) trouble {
	return trouble{fmt.Sprintf("primary %d of the Redis Cluster dies and its replica takes over", i), func(w *system) error {
		from := time.Now()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.emptied = append(w.emptied, span{from, time.Now()})
			w.redisAway = append(w.redisAway, span{from, time.Now()})
		}()
		if err := c.masters[i].Kill(); err != nil {
			return err
		}
		replica := redis.NewClient(&redis.Options{Addr: fmt.Sprint("127.0.0.1:", c.replicas[i].Port())})
		defer replica.Close()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); wait(50*time.Millisecond, w.ctx.Done()) {
			if role, err := replica.Do(w.ctx, "role").Slice(); err == nil && len(role) > 0 && role[0] == "master" {
				w.say("the replica took over after %.1f s", time.Since(from).Seconds())
				return nil
			}
		}
		return errors.New("the replica was not elected within a minute")
	}}
}

// TestEverythingOnARedisCluster reserves, fires, delivers and claims with a Redis
// Cluster of three masters, and accounts for everybody. Nothing is destroyed.
func TestEverythingOnARedisCluster(t *testing.T) {
	const patience = 20 * time.Second
	t.Run("reminders", func(t *testing.T) {
		quick := [2]time.Duration{time.Millisecond, 5 * time.Millisecond}
		w := &system{size: &size{users: 150, hook: quick, mail: quick, patience: patience, servers: new(redisCluster).servers(false)},
			t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
		w.build()
		d := w.reserveAll("On a cluster", w.people())
		w.crowd.move(w.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
		w.settled(d, time.Minute)
		w.account(d, everybodySent)
	})
	t.Run("claims", func(t *testing.T) {
		rushAndDestroy(t, rush{users: 200, visits: 600, stock: []int64{40, 60}, limit: 2, codes: 10, storm: 8 * time.Second,
			pause: [2]time.Duration{time.Millisecond, time.Second}, patience: patience, servers: new(redisCluster).servers(false)})
	})
}
