package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redis"
	"dropbell/musttest"
)

// All workers together stay below a domain's limit. If a domain asks one worker for fewer mails,
// all workers pause mails to the domain: longer each time, and for a limited time. Without Redis
// each worker keeps to its part of the limit.
func TestDomainsAreSharedByWorkers(t *testing.T) {
	server := localstack.RedisServer(t)
	client, err := redis.Open(server.URL())
	musttest.OK(t, err)
	defer client.Close()
	now := time.Now()
	clock := func() time.Time { return now }
	limits := map[string]int{"gmail.com": 20}
	a, b := redis.NewDomainPacer(client, limits, clock, redis.AloneFor(1, clock)), redis.NewDomainPacer(client, limits, clock, redis.AloneFor(1, clock))
	began := time.Now()
	first, _ := a.Admit(t.Context(), "gmail.com", redis.Mails{All: 15})
	second, limited := b.Admit(t.Context(), "gmail.com", redis.Mails{All: 30})
	back := int(time.Since(began).Seconds()*20) + 1 // flow back meanwhile, up to the 20 of a second
	if first.Now != 15 || second.Now < 5 || second.Now > 5+back || !limited || second.Wait <= 0 || second.Every != time.Second/20 {
		t.Errorf("%+v and %+v", first, second)
	}
	if n, limited := b.Admit(t.Context(), "qq.com", redis.Mails{All: 1000}); n.Now != 1000 || limited {
		t.Errorf("%d of a domain without a limit", n.Now)
	}
	if d, others := a.Slow(t.Context(), "relay", "qq.com"); !others || d != 15*time.Second {
		t.Errorf("the first pause is %s", d)
	}
	now = now.Add(time.Second)
	if n, limited := b.Admit(t.Context(), "qq.com", redis.Mails{All: 5}); n.Now != 0 || !limited || n.Wait.Round(time.Second) != 14*time.Second {
		t.Errorf("%+v", n)
	}
	if n, _ := b.Admit(t.Context(), "163.com", redis.Mails{All: 5}); n.Now != 5 {
		t.Error("another domain waits too")
	}
	if d, others := b.Slow(t.Context(), "relay", "qq.com"); !others || d.Round(time.Second) != 14*time.Second { // a call that began before
		t.Errorf("the pause begins anew: %s", d)
	}
	now = now.Add(20 * time.Second)
	if n, _ := a.Admit(t.Context(), "qq.com", redis.Mails{All: 5}); n.Now != 5 {
		t.Error("the pause does not end")
	}
	if d, others := b.Slow(t.Context(), "relay", "qq.com"); !others || d != 30*time.Second {
		t.Errorf("the second pause is %s", d)
	}
	now = now.Add(time.Hour)
	if d, others := a.Slow(t.Context(), "relay", "qq.com"); !others || d != 15*time.Second {
		t.Errorf("after an hour the pause is %s", d)
	}
	server.Kill()
	now = now.Add(time.Hour)
	if n, limited := a.Admit(t.Context(), "gmail.com", redis.Mails{All: 500}); n.Now != 0 || !limited || n.Wait != time.Second || n.Given != 500 {
		t.Errorf("without Redis, at first: %+v", n)
	}
	now = now.Add(time.Second)
	if n, _ := a.Admit(t.Context(), "gmail.com", redis.Mails{All: 500}); n.Now != 20 || n.Wait != time.Second || n.Every != time.Second/20 || n.Given != 480 {
		t.Errorf("without Redis: %+v", n)
	}
}

// A domain that accepts most mails and refuses some is not paused: only the refused mails wait.
// A domain that refuses a quarter is paused. The pause does not grow while the domain accepts
// mails in between. Answers of long ago do not count.
func TestADomainThatTakesMostMails(t *testing.T) {
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	defer client.Close()
	now := time.Now()
	p := redis.NewDomainPacer(client, nil, func() time.Time { return now }, redis.AloneFor(1, func() time.Time { return now }))
	takes := func(mails int) {
		for range mails {
			p.Taken("relay", "qq.com")
		}
	}
	goes := func(want bool) {
		t.Helper()
		if n, limited := p.Admit(t.Context(), "qq.com", redis.Mails{All: 5}); limited == want {
			t.Errorf("%+v", n)
		}
	}
	takes(1)
	for range 32 {
		takes(3)
		if wait, others := p.Slow(t.Context(), "relay", "qq.com"); others || wait != 15*time.Second {
			t.Fatalf("%s, others %t", wait, others)
		}
	}
	goes(true)
	if wait, others := p.Slow(t.Context(), "relay", "qq.com"); !others || wait != 15*time.Second {
		t.Errorf("a quarter: %s, others %t", wait, others)
	}
	goes(false)
	takes(3) // of calls that began before
	now = now.Add(15 * time.Second)
	goes(true)
	if wait, others := p.Slow(t.Context(), "relay", "qq.com"); !others || wait != 30*time.Second {
		t.Errorf("nothing was taken: %s, others %t", wait, others)
	}
	now = now.Add(30 * time.Second)
	takes(1)
	if wait, others := p.Slow(t.Context(), "relay", "qq.com"); !others || wait != 15*time.Second {
		t.Errorf("one mail was taken: %s, others %t", wait, others)
	}
	takes(1000)
	now = now.Add(15 * time.Second)
	for n := range 8 { // the server refuses all from now on
		if _, others := p.Slow(t.Context(), "relay", "qq.com"); others != (n == 7) {
			t.Errorf("refused %d times in a row: others %t", n+1, others)
		}
	}
	now = now.Add(time.Hour)
	takes(8)
	if wait, others := p.Slow(t.Context(), "another", "qq.com"); !others || wait != 15*time.Second {
		t.Errorf("another server, from which it takes none: %s, others %t", wait, others)
	}
	now = now.Add(15 * time.Second)
	if wait, others := p.Slow(t.Context(), "relay", "qq.com"); others || wait != 15*time.Second {
		t.Errorf("after an hour: %s, others %t", wait, others)
	}
}

// Replies to concurrent calls that ask for fewer mails begin one pause.
func TestRefusalsAtOnceBeginOnePause(t *testing.T) {
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	defer client.Close()
	now := time.Now()
	p := redis.NewDomainPacer(client, nil, func() time.Time { return now }, redis.AloneFor(1, func() time.Time { return now }))
	p.Taken("relay", "qq.com")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if wait, others := p.Slow(t.Context(), "relay", "qq.com"); !others || wait != 15*time.Second {
				t.Errorf("%s, others %t", wait, others)
			}
		})
	}
	all.Wait()
	if n, _ := p.Admit(t.Context(), "qq.com", redis.Mails{All: 5}); n.Wait != 15*time.Second {
		t.Errorf("%+v", n)
	}
}

// A hangingHook keeps calls of Redis until it is released, and fails them then.
type hangingHook struct {
	calls   chan struct{}
	release chan struct{}
}

func (h hangingHook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h hangingHook) ProcessHook(goredis.ProcessHook) goredis.ProcessHook {
	return func(_ context.Context, c goredis.Cmder) error {
		h.calls <- struct{}{}
		<-h.release
		c.SetErr(errors.New("no answer"))
		return c.Err()
	}
}

func (h hangingHook) ProcessPipelineHook(goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(context.Context, []goredis.Cmder) error {
		h.calls <- struct{}{}
		return errors.New("no answer")
	}
}

// While Redis hangs, one call waits for Redis, and calls for domains without a limit pass. After
// the time-out no call asks Redis for some seconds, for any domain.
func TestARedisThatHangsHoldsUpOneCall(t *testing.T) {
	client, err := redis.Open("redis://127.0.0.1:1")
	musttest.OK(t, err)
	defer client.Close()
	h := hangingHook{calls: make(chan struct{}, 100), release: make(chan struct{})}
	client.AddHook(h)
	now := time.Now()
	p := redis.NewDomainPacer(client, map[string]int{"gmail.com": 20}, func() time.Time { return now }, redis.AloneFor(1, func() time.Time { return now }))
	first := make(chan int)
	go func() {
		n, _ := p.Admit(t.Context(), "gmail.com", redis.Mails{All: 5})
		first <- n.Now
	}()
	<-h.calls // the first call hangs
	if n, limited := p.Admit(t.Context(), "qq.com", redis.Mails{All: 7}); n.Now != 7 || limited {
		t.Errorf("meanwhile %d pass", n.Now)
	}
	close(h.release)
	if n := <-first; n != 0 { // Redis may have admitted a second's worth before it hung
		t.Errorf("%d pass at first", n)
	}
	if d, others := p.Slow(t.Context(), "relay", "163.com"); !others || d != 15*time.Second {
		t.Errorf("a pause of %s", d)
	}
	now = now.Add(4 * time.Second)
	if n, _ := p.Admit(t.Context(), "gmail.com", redis.Mails{All: 5}); n.Now != 5 {
		t.Errorf("%+v", n)
	}
	if n, _ := p.Admit(t.Context(), "163.com", redis.Mails{All: 5}); n.Now != 0 || n.Wait != 11*time.Second {
		t.Errorf("a slow domain: %+v", n)
	}
	if len(h.calls) != 0 {
		t.Errorf("%d further calls", len(h.calls))
	}
	now = now.Add(2 * time.Second)
	_, _ = p.Admit(t.Context(), "gmail.com", redis.Mails{All: 5})
	if len(h.calls) != 1 {
		t.Errorf("%d calls after the pause", len(h.calls))
	}
}
