package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"

	goredis "github.com/redis/go-redis/v9"
)

// States of a breaker: closed admits calls, open makes calls wait, half-open admits one probe.
// In each state calls may also be held for a while because the provider asked for it.
const (
	StateClosed   = "closed"
	StateOpen     = "open"
	StateHalfOpen = "half-open"
	StateHeld     = "held"
)

const maxDetail = 200

//go:embed breaker.lua
var breakerSource string

// BreakerConfig holds a breaker's limits. A zero field means the default that the field's
// comment names.
type BreakerConfig struct {
	// Failures in a row that open the breaker: 5.
	Failures int
	// Window over which calls are counted: 10 s.
	Window time.Duration
	// MinCalls in a window from which on half of them failing opens it: 20.
	MinCalls int
	// OpenFor is the first pause, 5 s; each failed probe doubles it up to
	// MaxOpen, 60 s.
	OpenFor, MaxOpen time.Duration
	// ProbeLease is how long a probe may run before another call may probe; default 15 s. It
	// must exceed the time-out of a provider call; otherwise two probes run at a time.
	ProbeLease time.Duration
	// Hold is the first pause after a provider throttled without naming a time; default 1 s. The
	// pause doubles up to LongestHold, default 30 s, until a call succeeds.
	Hold, LongestHold time.Duration
	// MaxHold is the longest pause that a provider can request; default 5 min.
	MaxHold time.Duration
	// LookEvery is how often one call is admitted during a requested pause; default 5 s. If that
	// call succeeds, the pause ends: the provider had throttled one call only.
	LookEvery time.Duration
}

func (c BreakerConfig) withDefaults() BreakerConfig {
	return BreakerConfig{
		Failures: or(c.Failures, 5), Window: or(c.Window, 10*time.Second), MinCalls: or(c.MinCalls, 20),
		OpenFor: or(c.OpenFor, 5*time.Second), MaxOpen: or(c.MaxOpen, time.Minute),
		ProbeLease: or(c.ProbeLease, 15*time.Second),
		Hold:       or(c.Hold, time.Second), LongestHold: or(c.LongestHold, 30*time.Second), MaxHold: or(c.MaxHold, 5*time.Minute),
		LookEvery: or(c.LookEvery, 5*time.Second),
	}
}

func or[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// A Breaker holds one circuit per channel, or, made by [Breaker.Of], one circuit per channel of
// one provider. All workers share the circuits. A circuit opens after failures in a row, or when
// half the calls of a window failed. It admits one probe after a pause, and closes when the
// probe succeeds. Its clock is the clock of Redis, so workers need not agree on the time.
type Breaker struct {
	client goredis.UniversalClient
	script *goredis.Script
	config BreakerConfig
	// provider is the id of a configured provider, 0 = the environment's.
	provider int64
}

// NewBreaker returns a breaker that uses client and does not close it.
func NewBreaker(client goredis.UniversalClient, config BreakerConfig) *Breaker {
	return &Breaker{client: client, script: goredis.NewScript(breakerSource), config: config.withDefaults()}
}

// Of returns the circuits of the configured provider with that id. Id 0 means the provider of
// the environment; its circuits are the channels' circuits.
func (b *Breaker) Of(provider int64) *Breaker {
	of := *b
	of.provider = provider
	return &of
}

// Admit returns 0 if a call may be made now, or else how long to wait before the next Admit. The
// second result is the circuit's state, or [StateHeld] during a requested pause, also for the
// call that is admitted in the pause. After an admission the caller must call [Breaker.Report],
// [Breaker.Throttled] or [Breaker.Unused]. Admit returns [redisclient.ErrUnavailable] when Redis
// does not answer; the caller should then make the call.
func (b *Breaker) Admit(ctx context.Context, channel delivery.Channel) (time.Duration, string, error) {
	return b.step(ctx, channel, report{event: "admit"})
}

// Unused gives back an admission that led to no call. If that admission was the probe, another
// call may probe at once and need not wait for the end of the probe's lease.
func (b *Breaker) Unused(ctx context.Context, channel delivery.Channel) error {
	_, _, err := b.step(ctx, channel, report{event: "unused"})
	return err
}

// Report reports the result of a call. A provider that refuses single recipients works: the call
// counts as ok. Detail is the provider's answer and is shown to operators; the first 200 bytes
// are kept.
func (b *Breaker) Report(ctx context.Context, channel delivery.Channel, ok bool, detail string) error {
	if ok {
		return b.succeeded(ctx, channel, 1)
	}
	_, _, err := b.step(ctx, channel, report{event: "fail", detail: detail})
	return err
}

// Throttled reports that the provider requested a pause of length after, or 0 if the provider
// named no time. Few calls are admitted during the pause; see [BreakerConfig].LookEvery. A
// throttled call is not a failure of the provider.
func (b *Breaker) Throttled(ctx context.Context, channel delivery.Channel, after time.Duration) error {
	_, _, err := b.step(ctx, channel, report{event: "throttled", calls: 1, after: after})
	return err
}

// succeeded reports that many calls at once.
func (b *Breaker) succeeded(ctx context.Context, channel delivery.Channel, calls int) error {
	_, _, err := b.step(ctx, channel, report{event: "ok", calls: calls})
	return err
}

// report is the event that a step reports to the circuit.
type report struct {
	event, detail string
	calls         int // that went well
	after         time.Duration
}

func (b *Breaker) step(ctx context.Context, channel delivery.Channel, n report) (time.Duration, string, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	c := b.config
	reply, err := b.script.Run(ctx, b.client, []string{b.key(channel)}, n.event, c.Failures,
		c.Window.Milliseconds(), c.MinCalls, c.OpenFor.Milliseconds(), c.MaxOpen.Milliseconds(),
		c.ProbeLease.Milliseconds(), shortened(n.detail), n.calls,
		milliseconds(n.after), c.Hold.Milliseconds(), c.LongestHold.Milliseconds(), c.MaxHold.Milliseconds(),
		c.LookEvery.Milliseconds()).Slice()
	if err != nil {
		return 0, "", redisclient.Unavailable("breaker", err)
	}
	wait, isNumber := reply[0].(int64)
	state, isText := reply[1].(string)
	if !isNumber || !isText {
		return 0, "", fmt.Errorf("breaker: unexpected reply %v", reply)
	}
	return time.Duration(wait) * time.Millisecond, state, nil
}

// quietFor is how long after the end of its pause a circuit without calls counts as closed. No
// message waits for such a circuit, and the next call is admitted.
func milliseconds(d time.Duration) int64 {
	return (max(0, d) + time.Millisecond - 1).Milliseconds()
}

// quietFor is how long after the end of its pause a circuit without calls counts
// as closed: no message waits for it, and the next call may go.
const quietFor = 2 * time.Minute

// A State is one circuit as operators see it.
type State struct {
	Channel delivery.Channel
	// State is the state that a call would find now. An open circuit whose pause is over is
	// half-open; after a further [quietFor] without calls it is closed.
	State string
	// Failures in a row up to now.
	Failures int
	// Since is when the state was entered; zero for a circuit never used.
	Since time.Time
	// Until is the end of the pause, or of the probe's lease; zero when closed.
	Until time.Time
	// HeldUntil is the end of the last pause that the provider requested, possibly in the past;
	// zero if the provider requested none.
	HeldUntil time.Time
	// Detail is the provider's last failing answer; empty if no call failed since the circuit
	// last closed.
	Detail string
}

// States returns the circuit of every channel, in channel order. Instants are
// on the clock of Redis.
func (b *Breaker) States(ctx context.Context) ([]State, error) {
	var replies [delivery.Channels]*goredis.MapStringStringCmd
	var clock *goredis.TimeCmd
	_, err := b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, channel := range delivery.AllChannels() {
			replies[i] = p.HGetAll(ctx, b.key(channel))
		}
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, redisclient.Unavailable("breaker states", err)
	}
	states := make([]State, 0, len(replies))
	for i, channel := range delivery.AllChannels() {
		state, err := readState(channel, replies[i].Val())
		if err != nil {
			return nil, err
		}
		states = append(states, state.at(clock.Val()))
	}
	return states, nil
}

// State returns the circuit of one channel.
func (b *Breaker) State(ctx context.Context, channel delivery.Channel) (State, error) {
	var reply *goredis.MapStringStringCmd
	var clock *goredis.TimeCmd
	_, err := b.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		reply, clock = p.HGetAll(ctx, b.key(channel)), p.Time(ctx)
		return nil
	})
	if err != nil {
		return State{}, redisclient.Unavailable("breaker state", err)
	}
	s, err := readState(channel, reply.Val())
	return s.at(clock.Val()), err
}

func readState(channel delivery.Channel, stored map[string]string) (State, error) {
	if len(stored) == 0 {
		return State{Channel: channel, State: StateClosed}, nil
	}
	failures, err1 := redisclient.Int(stored["failures"])
	since, err2 := redisclient.Int(stored["since"])
	until, err3 := redisclient.Int(stored["until"])
	held, err4 := redisclient.Int(stored["held"])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return State{}, fmt.Errorf("breaker of %s: %w", channel, err)
	}
	state := State{Channel: channel, State: stored["state"], Failures: int(failures), Since: instant(since), HeldUntil: instant(held), Detail: stored["detail"]}
	if state.State != StateClosed {
		state.Until = instant(until)
	}
	return state, nil
}

// at returns the state at the instant now. The stored state does not change when a pause ends
// and no call is made.
func (s State) at(now time.Time) State {
	switch {
	case s.State == StateClosed || now.Before(s.Until):
	case now.Sub(s.Until) >= quietFor:
		s.State, s.Since, s.Until, s.Failures = StateClosed, s.Until.Add(quietFor), time.Time{}, 0
	case s.State == StateOpen:
		s.State, s.Since, s.Until = StateHalfOpen, s.Until, time.Time{}
	}
	return s
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func shortened(detail string) string {
	if len(detail) > maxDetail {
		detail = detail[:maxDetail]
	}
	return strings.ToValidUTF8(detail, "")
}

func (b *Breaker) key(channel delivery.Channel) string {
	if b.provider == 0 {
		return breakerKey(channel)
	}
	return breakerKey(channel) + ":" + strconv.FormatInt(b.provider, 10)
}

func breakerKey(channel delivery.Channel) string { return "breaker:" + channel.String() }
