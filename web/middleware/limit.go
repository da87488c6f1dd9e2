package middleware

import (
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// A LimitKey is whose requests are counted together.
type LimitKey struct {
	Kind byte
	High uint64
	Low  uint64
}

// AddressKey returns the key of an IPv4 address, or of the /64 network of an IPv6 address, which is
// the range that one subscriber gets.
func AddressKey(kind byte, ip netip.Addr) LimitKey {
	if !ip.IsValid() {
		return LimitKey{Kind: kind}
	}
	b := ip.As16()
	k := LimitKey{Kind: kind}
	for _, c := range b[:8] {
		k.High = k.High<<8 | uint64(c)
	}
	if ip.Is4() || ip.Is4In6() {
		for _, c := range b[8:] {
			k.Low = k.Low<<8 | uint64(c)
		}
	}
	return k
}

// A Decision is the answer for one request.
type Decision struct {
	Allowed   bool
	Limit     int
	Remaining int
	// Reset is the time until the full limit is available again, RetryAfter
	// the time until one more request passes.
	Reset      time.Duration
	RetryAfter time.Duration
}

// A Limiter gives each key a token bucket of its own. It counts in the memory of this process. The
// memory is bounded: with too many keys, rarely used keys start again with a full bucket. A Limiter
// keeps one client from starving other clients, and needs neither Redis nor a lock that all
// requests share. [Share] makes several processes count together.
type Limiter struct {
	rate    rate.Limit
	burst   int
	buckets *otter.Cache[LimitKey, *bucket] // nil = everything is allowed
	shared  sharing
	// parts is the number of processes that the limit is divided among; 0 = the limit is shared.
	parts atomic.Int64
	// alone counts the requests since then.
	alone atomic.Int64
}

// A bucket holds the tokens of one key.
type bucket struct {
	*rate.Limiter
	// used counts the requests that were allowed and are not yet shared.
	used atomic.Int64
	// listed is set while the bucket is in the list of buckets to be shared.
	listed atomic.Bool
}

// maxKeys bounds the memory of a limiter to some 50 MB.
const maxKeys = 1 << 18

// NewLimiter returns a limiter of perMinute requests a minute and key; all of them may come at
// once. 0 allows everything.
func NewLimiter(perMinute int) *Limiter {
	if perMinute <= 0 {
		return &Limiter{}
	}
	return newLimiter(rate.Limit(perMinute)/60, perMinute, maxKeys)
}

// NewAttempts returns a limiter of burst attempts per key at once, and then one attempt per
// interval every.
func NewAttempts(burst int, every time.Duration) *Limiter {
	return newLimiter(rate.Every(every), burst, maxKeys)
}

func newLimiter(r rate.Limit, burst, most int) *Limiter {
	return &Limiter{rate: r, burst: burst, buckets: otter.Must(&otter.Options[LimitKey, *bucket]{MaximumSize: most})}
}

// Unlimited reports whether the limiter allows everything.
func (l *Limiter) Unlimited() bool { return l.buckets == nil }

// Allow counts one request of key at now and decides whether it may pass. A refused request takes
// no tokens.
func (l *Limiter) Allow(key LimitKey, now time.Time) Decision {
	if l.Unlimited() {
		return Decision{Allowed: true, Remaining: math.MaxInt32}
	}
	b, known := l.buckets.GetIfPresent(key)
	if !known {
		b, _ = l.buckets.SetIfAbsent(key, &bucket{Limiter: rate.NewLimiter(l.rate, l.burst)})
	}
	cost := l.cost()
	allowed := b.AllowN(now, cost)
	if l.parts.Load() > 0 {
		l.alone.Add(1)
	}
	if allowed && b.used.Add(1) >= l.shareFrom() {
		l.shared.list(key, b)
	}
	return l.decision(b.TokensAt(now), cost, allowed)
}

// cost is how many tokens of a bucket a request takes: one, or one for each process among which the
// limit is divided, but at most burst.
func (l *Limiter) cost() int { return min(max(1, int(l.parts.Load())), l.burst) }

// Return gives one counted request of key back.
func (l *Limiter) Return(key LimitKey, now time.Time) {
	if l.Unlimited() {
		return
	}
	if b, known := l.buckets.GetIfPresent(key); known {
		b.AllowN(now, -l.cost())
		b.used.Add(-1)
	}
}

// Look returns the decision of Allow without counting a request.
func (l *Limiter) Look(key LimitKey, now time.Time) Decision {
	if l.Unlimited() {
		return Decision{Allowed: true, Remaining: math.MaxInt32}
	}
	tokens := float64(l.burst)
	if b, known := l.buckets.GetIfPresent(key); known {
		tokens = b.TokensAt(now)
	}
	cost := l.cost()
	return l.decision(tokens, cost, tokens >= float64(cost)-lost)
}

// lost is more than fractions of tokens can lose in computations.
const lost = 1e-6

// decision returns the decision for a bucket with this many tokens left, of which each request
// takes cost.
func (l *Limiter) decision(tokens float64, cost int, allowed bool) Decision {
	after := func(missing float64) time.Duration {
		return time.Duration(math.Round(missing / float64(l.rate) * float64(time.Second)))
	}
	d := Decision{Allowed: allowed, Limit: l.burst / cost, Remaining: int((tokens + lost) / float64(cost)), Reset: after(float64(l.burst) - tokens)}
	if !allowed {
		d.RetryAfter = after(float64(cost) - tokens)
	}
	return d
}
