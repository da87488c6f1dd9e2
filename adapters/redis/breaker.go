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

// States of a breaker: calls pass, calls wait, one call probes. In each of
// them calls may be held for a while because the provider asked for it.
const (
	StateClosed   = "closed"
	StateOpen     = "open"
	StateHalfOpen = "half-open"
	StateHeld     = "held"
)

const maxDetail = 200

//go:embed breaker.lua
var breakerSource string

// BreakerConfig holds a breaker's limits. A zero field takes the default
// named beside it.
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
	// ProbeLease is how long a probe may be silent before the next probe, 15 s.
	// It must exceed a provider call's time-out, or two probes run at a time.
	ProbeLease time.Duration
	// Hold is the first pause for a provider that throttles without a time, 1 s;
	// it doubles up to LongestHold, 30 s, until a call succeeds.
	Hold, LongestHold time.Duration
	// MaxHold bounds what a provider can ask for, 5 min.
	MaxHold time.Duration
	// LookEvery is how often one call may go all the same, 5 s: if it goes well,
	// the pause is over, since it was meant for one call and not for all.
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

// A Breaker holds one circuit per channel, or of each channel's provider that
// [Breaker.Of] names, shared by all workers. It opens
// after failures in a row or when half the calls of a window failed, lets one
// probe through after a pause, and closes when that succeeds. Its clock is
// that of Redis, so workers need not agree on the time.
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

// Of returns the circuits of the configured provider with that id; 0 = that of the
// environment, whose circuits are the channels'.
func (b *Breaker) Of(provider int64) *Breaker {
	of := *b
	of.provider = provider
	return &of
}

// Admit returns 0 if a call may be made now, else how long to wait before the
// next Admit, and the circuit's state, or [StateHeld], also for the one call
// that goes in a pause. After an admission the caller must call
// [Breaker.Report], [Breaker.Throttled] or [Breaker.Unused]. It returns
// [redisclient.ErrUnavailable] when Redis does not answer; the caller should
// then make the call.
func (b *Breaker) Admit(ctx context.Context, channel delivery.Channel) (time.Duration, string, error) {
	return b.step(ctx, channel, report{event: "admit"})
}

// Unused gives back an admission that led to no call, so that others need not
// wait for the end of the probe's lease.
func (b *Breaker) Unused(ctx context.Context, channel delivery.Channel) error {
	_, _, err := b.step(ctx, channel, report{event: "unused"})
	return err
}

// Report reports the result of a call. A refusal of single recipients is a
// working provider and counts as ok. Detail is the provider's answer, shown to
// operators; the first 200 bytes are kept.
func (b *Breaker) Report(ctx context.Context, channel delivery.Channel, ok bool, detail string) error {
	if ok {
		return b.succeeded(ctx, channel, 1)
	}
	_, _, err := b.step(ctx, channel, report{event: "fail", detail: detail})
	return err
}

// Throttled reports that the provider requested a pause of after, zero if it
// named no time. Few calls are admitted during it; see
// [BreakerConfig].LookEvery. It does not count as a failure of the provider.
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

// milliseconds rounds up: a pause must not end early, nor become none.
func milliseconds(d time.Duration) int64 {
	return (max(0, d) + time.Millisecond - 1).Milliseconds()
}

// quietFor is how long after the end of its pause a circuit without calls counts
// as closed: no message waits for it, and the next call may go.
const quietFor = 2 * time.Minute

// A State is one circuit as operators see it.
type State struct {
	Channel delivery.Channel
	// State is what a call would find now: an open circuit whose pause is over is
	// half-open, and closed after a while without calls.
	State string
	// Failures in a row up to now.
	Failures int
	// Since is when the state was entered; zero for a circuit never used.
	Since time.Time
	// Until is the end of the pause, or of the probe's lease; zero when closed.
	Until time.Time
	// HeldUntil is the end of the last pause that the provider asked for, which
	// may be over; zero if there was none.
	HeldUntil time.Time
	// Detail is the provider's last failing answer; empty if there was none
	// since the circuit last closed.
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

// at returns the state as it is at now: without calls nothing in Redis changes when
// a pause ends.
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
