package redis_test

import (
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redis"
)

// All workers together stay below a domain's limit, and all keep back mails to a domain
// that asked one of them for fewer: for longer each time, and for a while only. Without
// Redis nothing limits.
func TestDomainsAreSharedByWorkers(t *testing.T) {
	server := localstack.RedisServer(t)
	client, err := redis.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	now := time.Now()
	clock := func() time.Time { return now }
	limits := map[string]int{"gmail.com": 20}
	a, b := redis.NewDomainPacer(client, limits, clock), redis.NewDomainPacer(client, limits, clock)
	first, _, _, _ := a.Admit(t.Context(), "gmail.com", 15)
	second, wait, every, limited := b.Admit(t.Context(), "gmail.com", 15)
	if first != 15 || second < 5 || second > 10 || !limited || wait <= 0 || every != time.Second/20 { // some flow back meanwhile
		t.Errorf("%d and %d, wait %s, every %s", first, second, wait, every)
	}
	if n, _, _, limited := b.Admit(t.Context(), "qq.com", 1000); n != 1000 || limited {
		t.Errorf("%d of a domain without a limit", n)
	}
	if d := a.Slow(t.Context(), "qq.com"); d != 15*time.Second {
		t.Errorf("the first pause is %s", d)
	}
	now = now.Add(time.Second)
	if n, wait, _, limited := b.Admit(t.Context(), "qq.com", 5); n != 0 || !limited || wait.Round(time.Second) != 14*time.Second {
		t.Errorf("%d pass, wait %s", n, wait)
	}
	if n, _, _, _ := b.Admit(t.Context(), "163.com", 5); n != 5 {
		t.Error("another domain waits too")
	}
	if d := b.Slow(t.Context(), "qq.com"); d.Round(time.Second) != 14*time.Second { // a call that began before
		t.Errorf("the pause begins anew: %s", d)
	}
	now = now.Add(20 * time.Second)
	if n, _, _, _ := a.Admit(t.Context(), "qq.com", 5); n != 5 {
		t.Error("the pause does not end")
	}
	if d := b.Slow(t.Context(), "qq.com"); d != 30*time.Second {
		t.Errorf("the second pause is %s", d)
	}
	now = now.Add(time.Hour)
	if d := a.Slow(t.Context(), "qq.com"); d != 15*time.Second {
		t.Errorf("after an hour the pause is %s", d)
	}
	server.Kill()
	now = now.Add(time.Hour)
	if n, _, _, limited := a.Admit(t.Context(), "gmail.com", 500); n != 500 || limited {
		t.Errorf("without Redis %d pass", n)
	}
}
