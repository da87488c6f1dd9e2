package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/domain/pause"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/worker/program"
)

// worker runs a whole worker on the rig's stores until the test ends.
func (r *gateFixture) worker(redisURL string) {
	r.Helper()
	env := map[string]string{"DATABASE_URL": r.sql.Config().ConnString(), "REDIS_URL": redisURL, "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	ended := make(chan error, 1)
	go func() { ended <- program.Run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	r.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
}

// commands returns how often each command of Redis was called.
func (r *gateFixture) commands() map[string]int64 {
	r.Helper()
	text, err := r.client.Info(r.Context(), "commandstats").Result()
	r.must(err)
	calls := map[string]int64{}
	for _, m := range regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		calls[m[1]], err = strconv.ParseInt(m[2], 10, 64)
		r.must(err)
	}
	return calls
}

// TestIdleGatesCostNothing: with a hundred open and idle gates, two workers read no stream, and
// one of them checks each gate every five seconds. Redis counts the checks: XLEN is called once
// for each.
func TestIdleGatesCostNothing(t *testing.T) {
	const gates, looks = 100, 300
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 1)
	var last template.Template
	for range gates {
		last = r.published(10, 1)
	}
	r.worker(server.URL())
	r.worker(server.URL())
	r.eventually("all gates stand and both workers keep some", func() error {
		active, err := r.store.Active(t.Context())
		keepers := r.client.ZCard(t.Context(), "gate:keepers").Val()
		if err == nil && (len(active) < gates || keepers != 2) {
			err = fmt.Errorf("%d gates, %d keepers", len(active), keepers)
		}
		return err
	})
	r.accepted(last.ID, 1)
	r.settled(last.ID)

	r.eventually("the gates are quiet", func() error {
		before := r.commands()["xlen"]
		if pause.For(t.Context(), time.Second); r.commands()["xlen"]-before > gates/2 {
			return errors.New("not yet")
		}
		return nil
	})
	r.must(r.client.ConfigResetStat(t.Context()).Err())
	began := time.Now()
	r.eventually("the gates are looked at", func() error {
		if n := r.commands()["xlen"]; n < looks {
			return fmt.Errorf("%d looks", n)
		}
		return nil
	})
	calls, took := r.commands(), time.Since(began)
	var all int64
	for _, n := range calls {
		all += n
	}
	t.Logf("%d gates, 2 workers: %.0f commands a second, of these %.0f of gates (%v)", gates, float64(all)/took.Seconds(),
		float64(calls["xlen"]+calls["hmget"]+calls["hgetall"]+calls["eval"]+calls["xreadgroup"]+calls["xautoclaim"])/took.Seconds(), calls)
	if most := int64(gates * (took.Seconds()/5 + 2)); calls["xlen"] > most {
		t.Errorf("%d looks in %v, want at most %d", calls["xlen"], took, most)
	}
	if n := calls["xautoclaim"]; n > calls["xlen"]/10 {
		t.Errorf("%d reads of streams on which nothing waits", n)
	}
}

// deafening drops the messages that a client publishes, like lost calls.
type deafening struct{}

func (deafening) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (deafening) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}
func (deafening) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() == "publish" {
			return nil
		}
		return next(ctx, cmd)
	}
}

// TestLostCallsDelayOnly: claims whose call to the workers was lost, and claims accepted while
// the workers' subscriptions were cut, are written all the same.
func TestLostCallsDelayOnly(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 2)
	drop := r.Open(50, 1, nil)
	r.worker(server.URL())
	for by := user.ID(1); by <= 5; by++ {
		r.must(r.client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
		_, err := r.Claim(t.Context(), claimtest.Tap(drop, by, "k"))
		r.must(err)
		r.settled(drop.ID)
	}
	silent, err := redis.Open(server.URL())
	r.must(err)
	defer silent.Close()
	silent.AddHook(deafening{})
	mute := redisgate.New(silent, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{})
	for by := user.ID(6); by <= 7; by++ {
		_, err := mute.Claim(t.Context(), claimtest.Tap(drop, by, "k"))
		r.must(err)
		r.settled(drop.ID)
	}
	claimtest.Holds(t, r, drop.ID, 7, 1)
}
