package middleware

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"
)

// A LimitKey is whose requests are counted together.
type LimitKey struct {
	Kind byte
	High uint64
	Low  uint64
}

// AddressKey counts an IPv4 address, or the /64 network of an IPv6 address,
// which is what one subscriber gets.
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

// A Limiter allows each key so many requests a minute, all at once if they
// come at once, and lets the budget flow back evenly (GCRA). It counts in the
// memory of this process and forgets keys when there are too many: it keeps
// one client from starving the others and needs neither Redis nor a lock
// that all requests share. Behind N web processes a client gets up to N times
// the limit.
type Limiter struct {
	perMinute int
	seed      maphash.Seed
	shards    [64]shard
}

type shard struct {
	mu sync.Mutex
	// full holds when the key's whole budget is back, in Unix nanoseconds.
	full map[LimitKey]int64
}

const keysPerShard = 4096

// NewLimiter returns a limiter; perMinute 0 allows everything.
func NewLimiter(perMinute int) *Limiter {
	l := &Limiter{perMinute: perMinute, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].full = map[LimitKey]int64{}
	}
	return l
}

// Unlimited reports whether the limiter allows everything.
func (l *Limiter) Unlimited() bool { return l == nil || l.perMinute <= 0 }

// Allow counts one request of key at now and decides about it. A refused
// request costs nothing.
func (l *Limiter) Allow(key LimitKey, now time.Time) Decision {
	if l.Unlimited() {
		return Decision{Allowed: true, Remaining: math.MaxInt32}
	}
	step, at := int64(time.Minute)/int64(l.perMinute), now.UnixNano()
	s := &l.shards[maphash.Comparable(l.seed, key)%uint64(len(l.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	full := max(s.full[key], at)
	d := Decision{Limit: l.perMinute}
	if used := (full - at + step - 1) / step; used >= int64(l.perMinute) {
		d.Reset = time.Duration(full - at)
		d.RetryAfter = time.Duration(full - at - int64(l.perMinute-1)*step)
		return d
	}
	full += step
	s.keep(key, full, at)
	d.Allowed, d.Reset = true, time.Duration(full-at)
	d.Remaining = l.perMinute - int((full-at+step-1)/step)
	return d
}

// Return gives one counted request of key back.
func (l *Limiter) Return(key LimitKey) {
	if l.Unlimited() {
		return
	}
	s := &l.shards[maphash.Comparable(l.seed, key)%uint64(len(l.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, ok := s.full[key]; ok {
		s.full[key] = full - int64(time.Minute)/int64(l.perMinute)
	}
}

// Look says what Allow would decide, and counts nothing.
func (l *Limiter) Look(key LimitKey, now time.Time) Decision {
	if l.Unlimited() {
		return Decision{Allowed: true, Remaining: math.MaxInt32}
	}
	step, at := int64(time.Minute)/int64(l.perMinute), now.UnixNano()
	s := &l.shards[maphash.Comparable(l.seed, key)%uint64(len(l.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	full := max(s.full[key], at)
	d := Decision{Limit: l.perMinute, Reset: time.Duration(full - at), Remaining: l.perMinute - int((full-at+step-1)/step)}
	if d.Allowed = d.Remaining > 0; !d.Allowed {
		d.RetryAfter = time.Duration(full - at - int64(l.perMinute-1)*step)
	}
	return d
}

func (s *shard) keep(key LimitKey, full, now int64) {
	if _, known := s.full[key]; !known && len(s.full) >= keysPerShard {
		s.forget(now)
	}
	s.full[key] = full
}

// forget drops keys with a full budget and, if that is not enough, any: under
// such load letting somebody start anew is better than growing.
func (s *shard) forget(now int64) {
	for k, full := range s.full {
		if full <= now {
			delete(s.full, k)
		}
	}
	for k := range s.full {
		if len(s.full) < keysPerShard*7/8 {
			return
		}
		delete(s.full, k)
	}
}
