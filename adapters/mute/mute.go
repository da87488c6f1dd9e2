// Package mute has the only senders of rehearsals. They hold no address, client or credential: they wait as long as
// a provider takes, and answer as it does. They have no way to reach a provider.
package mute

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/pause"
)

// A Profile is how the provider of a channel was measured.
type Profile struct {
	// PerSecond is how many messages it takes.
	PerSecond float64
	// Latency is how long one call takes.
	Latency time.Duration
	// Refused and Failed are the shares of messages, 0…1, that it refuses for good and that it fails to take once.
	Refused, Failed float64
}

// Profiles are the profiles of all channels.
type Profiles [delivery.Channels]Profile

// chunk is how many messages one call takes.
const chunk = 100

// sender is the sender of one channel.
type sender struct {
	channel delivery.Channel
	Profile
}

// Senders returns a sender for each channel.
func Senders(p Profiles) map[delivery.Channel]delivery.Sender {
	list := map[delivery.Channel]delivery.Sender{}
	for _, c := range delivery.AllChannels() {
		list[c] = sender{c, p[c]}
	}
	return list
}

// Channel returns the channel.
func (s sender) Channel() delivery.Channel { return s.channel }

// ChunkSize returns the size of a call; messages of the app need no provider.
func (s sender) ChunkSize() int {
	if s.channel == delivery.App {
		return 1000
	}
	return chunk
}

// Send sends nothing. It takes as long as the provider does and answers as it does.
func (s sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	if s.channel != delivery.App && s.Latency > 0 {
		pause.For(ctx, s.Latency)
	}
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(delivery.Result{Detail: delivery.CauseOf(err), Unsent: true}, len(messages))
	}
	list := make([]delivery.Result, len(messages))
	for i := range list {
		switch n := rand.Float64(); {
		case s.channel == delivery.App || n >= s.Refused+s.Failed:
			list[i] = delivery.Result{Status: delivery.Delivered}
		case n < s.Refused:
			list[i] = delivery.Result{Status: delivery.Permanent, Detail: refused}
		default:
			list[i] = delivery.Result{Status: delivery.Transient, Apart: true, Detail: failed}
		}
	}
	return list
}

// The answers of simulated providers.
const (
	refused = "rehearsal: refused as often as the provider refuses"
	failed  = "rehearsal: failed as often as the provider fails"
)

// Pace is the [delivery.Admission] of rehearsals: every channel takes as many messages a second as its provider. It uses up no limit
// of real messages. It is safe for concurrent use.
type Pace struct {
	mu   sync.Mutex
	rate Profiles
	next [delivery.Channels]time.Time
}

// NewPace returns the pace of the profiles.
func NewPace(p Profiles) *Pace { return &Pace{rate: p} }

// Admit returns how long the load has to wait. A channel without a rate takes everything.
func (p *Pace) Admit(_ context.Context, l delivery.Load) (wait time.Duration, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	perSecond := p.rate[l.Channel].PerSecond
	if perSecond <= 0 || l.Channel == delivery.App {
		return 0, ""
	}
	now := time.Now()
	if p.next[l.Channel].After(now) {
		return p.next[l.Channel].Sub(now), delivery.ReasonThrottled
	}
	p.next[l.Channel] = maxTime(p.next[l.Channel], now.Add(-time.Second)).Add(time.Duration(float64(l.Messages) / perSecond * float64(time.Second)))
	return 0, ""
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Unused does nothing: an admission that is not used delays a rehearsal by less than a second.
func (p *Pace) Unused(context.Context, delivery.Load) {}

// Report does nothing: there is no circuit breaker.
func (p *Pace) Report(context.Context, delivery.Channel, delivery.Call) {}
