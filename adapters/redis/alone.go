package redis

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"dropbell/domain/delivery"
)

const (
	// awayFor is how long Redis is not asked again after it gave no answer.
	awayFor = 5 * time.Second
	// aloneAfter is how long the first message waits after Redis stopped answering: Redis may
	// just have admitted a second's worth.
	aloneAfter = time.Second
	// aloneSpare is how much unused time may be made up for. Waits end late rather than early,
	// so some time stays unused.
	aloneSpare = 100 * time.Millisecond
)

// Alone keeps rate limits in this process while Redis does not answer. Each process takes an
// equal part of each limit, so that all processes together stay below the limit. All limits of a
// process share one Alone, so that a hanging Redis delays one call and not a call per limit.
// Alone is safe for concurrent use.
type Alone struct {
	config AloneConfig

	mu sync.Mutex
	// off reports that Redis has not answered since the instant since. From next on one call
	// asks Redis again.
	off         bool
	since, next time.Time
	// used is until when the part of a limit is used up.
	used map[string]time.Time
}

// AloneConfig holds the dependencies of Alone.
type AloneConfig struct {
	// Sharing returns how many processes share the limits of a channel, this process included.
	Sharing func(ctx context.Context, c delivery.Channel) int
	// Counted is called with every n that was asked of a limit here.
	Counted func(limit string, n int)
	Log     *slog.Logger
	Now     func() time.Time
}

// NewAlone returns limits that are not in force, since Redis was not asked yet.
func NewAlone(c AloneConfig) *Alone { return &Alone{config: c, used: map[string]time.Time{}} }

// The limits, as they are counted.
const (
	limitChannel  = "channel"
	limitCampaign = "campaign"
	limitDomain   = "domain"
	limitPush     = "push"
)

// AloneLimits returns the names of the limits that Alone keeps.
func AloneLimits() []string { return []string{limitChannel, limitCampaign, limitDomain, limitPush} }

// A part is a limit of which this process has a part.
type part struct {
	// limit is the kind, for metrics; key is the limit.
	limit, key string
	channel    delivery.Channel
	perSecond  float64
}

// away reports whether Redis is not to be asked now.
func (a *Alone) away() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.off {
		return false
	}
	now := a.config.Now()
	if now.Before(a.next) {
		return true
	}
	a.next = now.Add(awayFor) // this call looks for all
	return false
}

// answered records the result of a call to Redis. The result is ignored if the call's own ctx
// ended. Each new outage starts with a wait of aloneAfter, so that an intermittent Redis and the
// local limits together admit hardly more than Redis alone.
func (a *Alone) answered(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now, was := a.config.Now(), a.off
	switch a.off = err != nil; {
	case was && !a.off:
		maps.DeleteFunc(a.used, func(_ string, used time.Time) bool { return used.Before(now) })
		a.config.Log.Info("rates of channels, campaigns, mail domains and push services are shared between the workers again")
	case a.off:
		if a.next = now.Add(awayFor); !was {
			a.since = now
			a.config.Log.Warn("rates of channels, campaigns, mail domains and push services are kept by each worker alone, each its part, until Redis answers", "error", err)
		}
	}
}

// admit takes up to n messages out of this process's part of the limit. It returns how many it
// took, or 0 and how long to wait. It takes at most a second's worth (at least one message);
// with whole it takes all n or nothing. each is the time between two messages.
func (a *Alone) admit(ctx context.Context, p part, n int, whole bool) (admitted int, wait, each time.Duration) {
	mine := p.perSecond / float64(max(1, a.config.Sharing(ctx, p.channel)))
	each = time.Duration(float64(time.Second) / mine)
	a.config.Counted(p.limit, n)
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	used := a.used[p.key]
	if first := a.since.Add(aloneAfter); used.Before(first) {
		used = first
	}
	if spare := now.Add(-aloneSpare); used.Before(spare) {
		used = spare
	}
	if wait = used.Sub(now); wait > 0 {
		return 0, max(wait, time.Millisecond), each
	}
	if !whole {
		n = min(n, max(1, int(mine)))
	}
	a.used[p.key] = used.Add(time.Duration(float64(n) * float64(each)))
	return n, 0, each
}

// giveBack returns n admitted messages that were not sent.
func (a *Alone) giveBack(ctx context.Context, p part, n int) {
	mine := p.perSecond / float64(max(1, a.config.Sharing(ctx, p.channel)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if used, is := a.used[p.key]; is {
		a.used[p.key] = used.Add(-time.Duration(float64(n) / mine * float64(time.Second)))
	}
}
