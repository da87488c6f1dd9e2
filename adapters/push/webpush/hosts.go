package webpush

import (
	"sync"
	"time"
)

const (
	// tolerated failures in a row are a host's own affair; then it is left alone.
	tolerated = 5
	// firstPause doubles with each probe that fails, up to longestPause.
	firstPause, longestPause = 5 * time.Second, 30 * time.Second
	// forgiving is how long waiting for a host uses up no attempts.
	forgiving = 15 * time.Minute
	// lately is how long the outcome of a call says something about the host's present state.
	lately = 5 * time.Minute
	// maxHosts is the largest number of remembered hosts: endpoints may name any host.
	maxHosts = 256
)

// hosts remembers the state of each push service separately. Users choose the push services, and
// the failure of one service must not stop the others.
type hosts struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]*host
}

// A host is one push service.
type host struct {
	good     bool // it has delivered before
	tried    time.Time
	failures int // in a row
	since    time.Time
	cause    string // of the last failure
	pause    time.Duration
	until    time.Time // the end of the pause, or of the probe
	probing  bool
}

func newHosts(now func() time.Time) *hosts {
	return &hosts{now: now, all: map[string]*host{}}
}

// A rest is why and for how long a host is not called.
type rest struct {
	left  time.Duration // 0 = call it
	since time.Time
	cause string
}

// ask returns whether the host may be called now; see [rest]. After a pause one caller probes
// the host for at most the duration probe, and the other callers continue to wait.
func (s *hosts) ask(name string, probe time.Duration) rest {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := s.find(name, now)
	if h.failures < tolerated {
		return rest{}
	}
	if left := h.until.Sub(now); left > 0 {
		return rest{left, h.since, h.cause}
	}
	h.probing, h.until = true, now.Add(probe)
	return rest{}
}

// answered records that the host works, and whether it accepted a message.
func (s *hosts) answered(name string, took bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := s.find(name, now)
	*h = host{good: h.good || took, tried: now}
}

// failed records a failure of the host itself.
func (s *hosts) failed(name, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := s.find(name, now)
	if h.failures++; h.failures == 1 {
		h.since = now
	}
	h.cause = cause
	switch {
	case h.failures == tolerated:
		h.pause = firstPause
	case h.probing:
		h.pause = min(2*h.pause, longestPause)
	default:
		return
	}
	h.probing, h.until = false, now.Add(h.pause)
}

// spared records that the caller made no call, or cancelled its call. Another caller may then
// probe the host.
func (s *hosts) spared(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.all[name]; h != nil && h.probing {
		h.probing, h.until = false, s.now()
	}
}

// good reports whether the host has ever delivered.
func (s *hosts) good(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[name]
	return h != nil && h.good
}

// down reports whether every host that was tried within the last five minutes fails. Only hosts
// that have delivered before count: users can invent hosts.
func (s *hosts) down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, found := s.now(), false
	for _, h := range s.all {
		if !h.good || now.Sub(h.tried) > lately {
			continue
		}
		if h.failures == 0 {
			return false
		}
		found = true
	}
	return found
}

// find returns the host and marks it as tried now. When there is no room, find removes a host: a
// host that never delivered first, then the host that was not tried for the longest time.
func (s *hosts) find(name string, now time.Time) *host {
	h := s.all[name]
	if h == nil {
		if len(s.all) >= maxHosts {
			delete(s.all, s.leastMissed())
		}
		h = &host{}
		s.all[name] = h
	}
	h.tried = now
	return h
}

func (s *hosts) leastMissed() (name string) {
	var least *host
	for n, h := range s.all {
		if least == nil || h.good != least.good && least.good || h.good == least.good && h.tried.Before(least.tried) {
			name, least = n, h
		}
	}
	return name
}
