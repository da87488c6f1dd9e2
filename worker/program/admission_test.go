package program

import (
	"testing"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
)

// TestAProbeIsNotLostToTheRate: a worker that would probe a failing provider and has to
// wait for the rate leaves the probe to others, and so does one that has nothing to
// send after all.
func TestAProbeIsNotLostToTheRate(t *testing.T) {
	p, conn := assembled(t)
	if _, err := conn.Exec(t.Context(), `update channel_settings set rate_per_second = 1 where channel = $1`, delivery.SMS); err != nil {
		t.Fatal(err)
	}
	a, breaker := newAdmission(p.DB, p.Redis, p.Log), redis.NewBreaker(p.Redis, redis.BreakerConfig{})
	load := delivery.Load{Channel: delivery.SMS, Messages: 100, Kind: delivery.KindReminder}
	if wait, _ := a.Admit(t.Context(), load); wait != 0 {
		t.Fatalf("the first waits %v", wait)
	}
	if err := p.Redis.HSet(t.Context(), "breaker:sms", "state", redis.StateOpen, "until", 1, "backoff", 5000).Err(); err != nil {
		t.Fatal(err)
	}
	probe := func(what string) {
		t.Helper()
		if wait, state, err := breaker.Admit(t.Context(), delivery.SMS); wait != 0 || state != redis.StateHalfOpen || err != nil {
			t.Errorf("%s: the probe waits %v, %s, %v", what, wait, state, err)
		}
	}
	fresh := newAdmission(p.DB, p.Redis, p.Log) // has not seen the circuit closed
	if wait, why := fresh.Admit(t.Context(), load); wait == 0 || why != delivery.ReasonThrottled {
		t.Fatalf("beyond the rate: wait %v, %s", wait, why)
	}
	probe("after the rate refused")
	fresh.Unused(t.Context(), load)
	probe("after it was given back")
}
