//go:build failover

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
)

// failoverSize is a drop large enough that a server can die in the middle of it. Its providers
// are slow and make no mistakes.
func failoverSize() size {
	return size{drops: 2, users: 400, late: 40, booking: 6 * time.Second, apart: 3 * time.Second, storm: 25 * time.Second,
		hook: [2]time.Duration{400 * time.Millisecond, 1500 * time.Millisecond}, mail: [2]time.Duration{10 * time.Millisecond, 50 * time.Millisecond},
		patience: 90 * time.Second}
}

// failoverRush is enough of a rush to be in the middle of when a server dies.
func failoverRush() rush {
	return rush{users: 500, visits: 2000, stock: []int64{60, 90, 120}, limit: 2, codes: 30, storm: 20 * time.Second,
		pauses: 1, moves: 1, pause: [2]time.Duration{500 * time.Millisecond, time.Second}, patience: 90 * time.Second}
}

// endure reserves and sends two drops while a server fails over, and accounts for each user.
func endure(t *testing.T, s size) {
	w := &system{size: &s, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.build()
	users := w.people()
	drops := w.book(users)
	w.weather(drops, users)
	for _, d := range drops {
		w.settled(d, 4*time.Minute)
		w.account(d, everybodySent)
	}
	w.sample(drops, users)
	w.print()
}

// A redisCluster is the Redis that the programs use: three masters, each with a replica.
type redisCluster struct{ masters, replicas []*localstack.Redis }

func (c *redisCluster) servers(w *system) (*stack.Stack, error) {
	var addresses string
	c.masters, c.replicas, addresses = localstack.ReplicatedCluster(w.t, 3)
	return withCluster(w, addresses)
}

// lose kills the master at position i and returns when its replica has been elected. Writes that
// had not reached the replica are lost.
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
		if err := elected(w.ctx, c.replicas[i]); err != nil {
			return err
		}
		w.say("the replica took over after %.1f s", time.Since(from).Seconds())
		return nil
	}}
}

// elected waits until the replica is a master.
func elected(ctx context.Context, replica *localstack.Redis) error {
	client := redis.NewClient(&redis.Options{Addr: fmt.Sprint("127.0.0.1:", replica.Port())})
	defer client.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); wait(50*time.Millisecond, ctx.Done()) {
		if role, err := client.Do(ctx, "role").Slice(); err == nil && len(role) > 0 && role[0] == "master" {
			return nil
		}
	}
	return errors.New("the replica was not elected within a minute")
}

// TestFailoverOfARedisPrimary kills one of three primaries of a Redis Cluster while users
// reserve and another primary while a slot fires. In a second cluster it kills one primary
// during a rush of claims.
func TestFailoverOfARedisPrimary(t *testing.T) {
	t.Run("firing", func(t *testing.T) {
		var cluster redisCluster
		s := failoverSize()
		s.servers, s.whileBooking, s.whileSending = cluster.servers, []trouble{cluster.lose(0)}, []trouble{cluster.lose(1)}
		endure(t, s)
	})
	t.Run("rush", func(t *testing.T) {
		var cluster redisCluster
		r := failoverRush()
		r.servers, r.troubles = cluster.servers, []trouble{cluster.lose(0)}
		rushAndDestroy(t, r)
	})
}
