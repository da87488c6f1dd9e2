package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
)

const (
	// slowKey is a hash with a field for each domain that asked for fewer mails: until
	// when they are kept back, in milliseconds, and how often in a row it asked.
	slowKey = "pace:mail:slow"
	// slowFirst is the first pause, which doubles up to slowMost. A domain that did not
	// ask for slowForget begins anew.
	slowFirst, slowMost, slowForget = 15 * time.Second, 2 * time.Minute, 10 * time.Minute
	// slowLife is how old what is known of slow domains may be.
	slowLife = 500 * time.Millisecond
)

// DomainPacer keeps all workers together below what the mail domains of recipients
// take. Pauses are on the workers' clocks.
type DomainPacer struct {
	client goredis.UniversalClient
	rate   *redis_rate.Limiter
	// perSecond are the limits by domain.
	perSecond map[string]int
	now       func() time.Time

	mu     sync.Mutex
	slow   map[string]pause
	readAt time.Time
}

// A pause is until when mails to a domain are kept back.
type pause struct {
	until time.Time
	times int
}

// NewDomainPacer returns a pacer with the limits by domain, in mails per second.
func NewDomainPacer(client goredis.UniversalClient, perSecond map[string]int, now func() time.Time) *DomainPacer {
	return &DomainPacer{client: client, rate: redis_rate.NewLimiter(client), perSecond: perSecond, now: now, slow: map[string]pause{}}
}

// Admit takes up to n mails out of what the domain takes, and returns how many, and for
// the others when the first of them may go and the time between two. limited is false
// where nothing limits the domain, also when Redis does not answer: a late mail is
// worse.
func (p *DomainPacer) Admit(ctx context.Context, domain string, n int) (now int, wait, every time.Duration, limited bool) {
	if until := p.paused(ctx)[domain].until; p.now().Before(until) {
		return 0, until.Sub(p.now()), 0, true
	}
	rate := p.perSecond[domain]
	if rate <= 0 {
		return n, 0, 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	r, err := p.rate.AllowAtMost(ctx, "pace:mail:"+domain, redis_rate.PerSecond(rate), n)
	if err != nil {
		return n, 0, 0, false
	}
	every = time.Second / time.Duration(rate)
	return r.Allowed, max(r.RetryAfter, every), every, true
}

// Slow notes that the domain asked for fewer mails and returns the pause.
func (p *DomainPacer) Slow(ctx context.Context, domain string) time.Duration {
	before := p.paused(ctx)[domain]
	if p.now().Before(before.until) { // calls that began before say nothing new
		return before.until.Sub(p.now())
	}
	times := before.times + 1
	if p.now().Sub(before.until) > slowForget {
		times = 1
	}
	length := min(slowMost, slowFirst<<min(times-1, 10))
	next := pause{p.now().Add(length), times}
	p.mu.Lock()
	p.slow[domain] = next
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisclient.CallTimeout)
	defer cancel()
	// Without Redis the other workers learn it by themselves.
	_, _ = p.client.Pipelined(ctx, func(all goredis.Pipeliner) error {
		all.HSet(ctx, slowKey, domain, strconv.FormatInt(next.until.UnixMilli(), 10)+" "+strconv.Itoa(times))
		all.PExpire(ctx, slowKey, slowMost+slowForget)
		return nil
	})
	return length
}

// paused returns the slow domains, at most [slowLife] old.
func (p *DomainPacer) paused(ctx context.Context) map[string]pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Sub(p.readAt) >= slowLife {
		p.readAt = p.now()
		ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
		defer cancel()
		if all, err := p.client.HGetAll(ctx, slowKey).Result(); err == nil {
			fresh := make(map[string]pause, len(all))
			for domain, text := range all {
				until, times, _ := strings.Cut(text, " ")
				ms, _ := strconv.ParseInt(until, 10, 64)
				n, _ := strconv.Atoi(times)
				if fresh[domain] = (pause{time.UnixMilli(ms), n}); p.now().Sub(fresh[domain].until) > slowForget {
					delete(fresh, domain)
					_ = p.client.HDel(ctx, slowKey, domain).Err()
				}
			}
			p.slow = fresh
		}
	}
	copied := make(map[string]pause, len(p.slow))
	for domain, one := range p.slow {
		copied[domain] = one
	}
	return copied
}
