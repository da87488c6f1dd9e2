package redis

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
)

// TestLimitsWithoutRedisArePartsOfThem: Redis dies, and four workers take from each shared limit
// as fast as they can. In no second do they together take more than the limit, except for calls
// that are admitted as a whole. Over ten seconds they take hardly less than the limit.
func TestLimitsWithoutRedisArePartsOfThem(t *testing.T) {
	const workers, rate = 4, 40
	whole := map[string]int{"channel, calls of eight": 8}
	for name, take := range map[string]func(p *Pacer, d *DomainPacer) int{
		"channel": func(p *Pacer, _ *DomainPacer) int {
			return taken(p.Admit(t.Context(), delivery.Webhook, 1, rate), 1)
		},
		"channel, calls of eight": func(p *Pacer, _ *DomainPacer) int {
			return taken(p.Admit(t.Context(), delivery.SMS, 8, rate), 8)
		},
		"campaign": func(p *Pacer, _ *DomainPacer) int {
			return taken(p.AdmitCampaign(t.Context(), delivery.Email, 7, 1, rate), 1)
		},
		"push": func(p *Pacer, _ *DomainPacer) int {
			n, _ := p.AdmitPushes(t.Context(), "fcm", 2, 60*rate)
			return n
		},
		"domain": func(_ *Pacer, d *DomainPacer) int {
			turns, limited := d.Admit(t.Context(), "gmail.com", Mails{All: 50})
			if !limited || turns.Now+turns.Given != 50 {
				t.Fatalf("%+v, limited %v", turns, limited)
			}
			return turns.Now
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRedis(t)
			client := open(t, s)
			now := time.Now()
			clock := func() time.Time { return now }
			var pacers []*Pacer
			var domains []*DomainPacer
			for range workers {
				alone := AloneFor(workers, clock)
				pacers = append(pacers, NewPacer(client, alone))
				domains = append(domains, NewDomainPacer(client, map[string]int{"gmail.com": rate}, clock, alone))
			}
			s.kill(t)
			var seconds [11]int
			for range 1100 {
				for i := range workers {
					for n := take(pacers[i], domains[i]); n > 0; n = take(pacers[i], domains[i]) {
						second := &seconds[int(now.Sub(pacers[0].alone.since)/time.Second)]
						if *second += n; *second > 10*rate {
							t.Fatalf("%d and more in a second", *second)
						}
					}
				}
				now = now.Add(10 * time.Millisecond)
			}
			all := 0
			for i, n := range seconds {
				if all += n; n > rate+workers*max(0, whole[name]-1) {
					t.Errorf("%d in second %d, want at most %d", n, i, rate)
				}
			}
			if seconds[0] != 0 {
				t.Errorf("%d passed at once, beside what Redis may just have admitted", seconds[0])
			}
			if most := rate*10 + workers*max(1, whole[name]); all > most || all < most*9/10 {
				t.Errorf("%d in ten seconds, want %d", all, most)
			}
		})
	}
}

func taken(wait time.Duration, n int) int {
	if wait > 0 {
		return 0
	}
	return n
}

// TestAWorkerHasFewerWhenThereAreMore: the part follows the number of workers.
func TestAWorkerHasFewerWhenThereAreMore(t *testing.T) {
	s := startRedis(t)
	client := open(t, s)
	s.kill(t)
	now := time.Now()
	for workers, want := range map[int]time.Duration{1: 100 * time.Millisecond, 3: 300 * time.Millisecond, 40: 4 * time.Second} {
		p := NewPacer(client, AloneFor(workers, func() time.Time { return now }))
		if wait := p.Admit(t.Context(), delivery.SMS, 1, 10); wait != time.Second {
			t.Errorf("of %d workers at first: %v", workers, wait)
		}
		now = now.Add(time.Second)
		if first, second := p.Admit(t.Context(), delivery.SMS, 1, 10), p.Admit(t.Context(), delivery.SMS, 1, 10); first != 0 || second.Round(time.Millisecond) != want {
			t.Errorf("one of %d workers waits %v and %v, want %v between two", workers, first, second, want)
		}
		p.Return(t.Context(), delivery.SMS, 1, 10)
		if wait := p.Admit(t.Context(), delivery.SMS, 1, 10); wait > time.Millisecond {
			t.Errorf("what was given back waits %v", wait)
		}
	}
}

// TestARedisThatHangs: one call in five seconds asks a hanging Redis. The log has one line when
// Redis stops answering, and one line when Redis answers again.
func TestARedisThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	hanging := open(t, &redisServer{URL: "redis://" + listener.Addr().String()})
	var log bytes.Buffer
	now := time.Now()
	alone := AloneFor(2, func() time.Time { return now })
	counted := map[string]int{}
	alone.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	alone.config.Counted = func(limit string, n int) { counted[limit] += n }
	p, breaker := NewPacer(hanging, alone), NewCachedBreaker(NewBreaker(hanging, BreakerConfig{}), alone)
	began := time.Now()
	for range 100 {
		if wait := p.Admit(t.Context(), delivery.SMS, 1, 10); wait == 0 {
			t.Fatal("a message passes at once")
		}
		if wait, _, err := breaker.Admit(t.Context(), delivery.SMS); wait != 0 || err != nil {
			t.Fatalf("the circuit: %v, %v", wait, err)
		}
		_ = breaker.Report(t.Context(), delivery.SMS, false, "502")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("300 questions took %v", took)
	}
	if counted[limitChannel] != 100 {
		t.Errorf("counted %v", counted)
	}
	p.rate = NewPacer(open(t, startRedis(t)), alone).rate // Redis answers again
	now = now.Add(awayFor)
	if wait := p.Admit(t.Context(), delivery.SMS, 10, 10); wait != 0 {
		t.Errorf("a second's worth waits %v for Redis", wait)
	}
	if text := log.String(); strings.Count(text, "alone") != 1 || strings.Count(text, "shared between the workers again") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("said:\n%s", text)
	}
}

// TestARedisThatAnswersNowAndThen: an intermittent Redis admits messages, and the local limits
// admit no further messages.
func TestARedisThatAnswersNowAndThen(t *testing.T) {
	s := startRedis(t)
	p := NewPacer(open(t, s), aloneFor(1))
	for range 20 {
		p.alone.answered(t.Context(), nil)
		p.alone.answered(t.Context(), net.ErrClosed)
		if wait := p.Admit(t.Context(), delivery.SMS, 1, 1000); wait == 0 {
			t.Fatal("a message passes at once")
		}
	}
}

// TestPausesHoldWithoutRedis: a provider asks this process for a pause of half a minute while
// Redis does not answer, and shortly before.
func TestPausesHoldWithoutRedis(t *testing.T) {
	for _, before := range []bool{false, true} {
		s := startRedis(t)
		b := NewCachedBreaker(NewBreaker(open(t, s), BreakerConfig{}), aloneFor(1))
		if !before {
			s.kill(t)
		}
		_ = b.Throttled(t.Context(), delivery.SMS, 30*time.Second)
		if before {
			s.kill(t)
		}
		wait, state, err := b.Admit(t.Context(), delivery.SMS)
		if err != nil || state != StateHeld || wait < 20*time.Second || wait > 30*time.Second {
			t.Errorf("asked before Redis died %v: waits %v, %s, %v", before, wait, state, err)
		}
		if wait, state, err := b.Admit(t.Context(), delivery.Email); wait != 0 || state != StateClosed || err != nil {
			t.Errorf("another channel waits %v, %s, %v", wait, state, err)
		}
	}
}
