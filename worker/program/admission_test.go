package program

import (
	"testing"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/musttest"
	"dropbell/worker/campaigns"
	workerdelivery "dropbell/worker/delivery"
	"dropbell/worker/senders"
)

// TestAProbeIsNotLostToTheRate: a worker takes the probe of a failing provider and then has to
// wait for the rate, or has nothing to send. It gives the probe back to the other workers.
func TestAProbeIsNotLostToTheRate(t *testing.T) {
	p, conn := assembled(t)
	if _, err := conn.Exec(t.Context(), `update channel_settings set rate_per_second = 1 where channel = $1`, delivery.SMS); err != nil {
		t.Fatal(err)
	}
	a, breaker := limitsOn(p, p.Redis, p.pacer, p.alone), redis.NewBreaker(p.Redis, redis.BreakerConfig{})
	load := delivery.Load{Channel: delivery.SMS, Messages: 100, Kind: delivery.KindReminder}
	if wait, _ := a.Admit(t.Context(), load); wait != 0 {
		t.Fatalf("the first waits %v", wait)
	}
	musttest.OK(t, p.Redis.HSet(t.Context(), "breaker:sms", "state", redis.StateOpen, "until", 1, "backoff", 5000).Err())
	probe := func(what string) {
		t.Helper()
		if wait, state, err := breaker.Admit(t.Context(), delivery.SMS); wait != 0 || state != redis.StateHalfOpen || err != nil {
			t.Errorf("%s: the probe waits %v, %s, %v", what, wait, state, err)
		}
	}
	fresh := limitsOn(p, p.Redis, p.pacer, p.alone) // has not seen the circuit closed
	if wait, why := fresh.Admit(t.Context(), load); wait == 0 || why != delivery.ReasonThrottled {
		t.Fatalf("beyond the rate: wait %v, %s", wait, why)
	}
	probe("after the rate refused")
	fresh.Unused(t.Context(), load)
	probe("after it was given back")
}

// TestRatesHoldWithoutRedis: two workers deliver while Redis does not answer. The webhook
// channel is limited to 40 messages a second, a campaign to 20. An earlier version sent messages
// as fast as the provider took them.
func TestRatesHoldWithoutRedis(t *testing.T) {
	p, conn := assembled(t)
	if _, err := conn.Exec(t.Context(), `update channel_settings set rate_per_second = 40 where channel = $1`, delivery.Webhook); err != nil {
		t.Fatal(err)
	}
	var running int64
	musttest.OK(t, conn.QueryRow(t.Context(), `insert into campaigns (name, channel, content, audience, starts_at, ends_at, rate_per_second, state, creator, created_by)
		values ('Bells', $1, '{}', '{"all":true}', now(), now() + interval '1 hour', 20, 'running', 'Lin', 'Lin') returning id`, delivery.Webhook).Scan(&running))
	away, err := redis.Open("redis://127.0.0.1:1") // nothing answers there
	musttest.OK(t, err)
	defer func() { _ = away.Close() }()
	other := workdb.Process{ID: uuid.New(), Program: "worker", Channels: delivery.ChannelSetOf(delivery.Webhook)}
	musttest.OK(t, workdb.NewProcesses(p.DB).Enter(t.Context(), other))
	musttest.OK(t, p.processes.Enter(t.Context()))
	if n, of := p.processes.All(t.Context()), p.processes.Delivering(t.Context(), delivery.Webhook); n != 2 || of != 2 {
		t.Fatalf("%d workers, %d deliver the channel", n, of)
	}
	for name, load := range map[string]delivery.Load{
		"channel":  {Channel: delivery.Webhook, Messages: 1, Kind: delivery.KindReminder},
		"campaign": {Channel: delivery.Webhook, Messages: 1, Kind: delivery.KindCampaign, Owner: running, Priority: 9},
	} {
		now := time.Now()
		alone := redis.NewAlone(redis.AloneConfig{Sharing: p.processes.Delivering, Counted: p.processes.Alone, Log: p.Log, Now: func() time.Time { return now }})
		a := limitsOn(p, away, redis.NewPacer(away, alone), alone)
		admitted := 0
		for range 600 {
			if wait, _ := a.Admit(t.Context(), load); wait == 0 {
				admitted++
			}
			now = now.Add(10 * time.Millisecond)
		}
		if most := map[string]int{"channel": 100, "campaign": 50}[name]; admitted > most || admitted < most*9/10 {
			t.Errorf("%s: %d messages in five seconds and one at the beginning, want %d", name, admitted, most)
		}
	}
}

// limitsOn are the limits of channels in a Redis.
func limitsOn(p *program, client goredis.UniversalClient, pacer *redis.Pacer, alone *redis.Alone) *workerdelivery.Admission {
	return workerdelivery.NewAdmission(p.Stores.Channels, pacer, campaigns.NewLimits(p.Stores.Campaigns, pacer), senders.NewBreakers(client, alone, p.Log), nil)
}
