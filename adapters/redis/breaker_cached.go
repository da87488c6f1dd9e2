package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"
)

// trustFor is how long a circuit that was read as closed is taken as closed, and how long
// successful calls may wait before they are reported.
const trustFor = 100 * time.Millisecond

// A CachedBreaker is a breaker that reads from and reports to Redis ten times a second instead
// of twice per call while all calls succeed: every report is a write that Redis may have to
// sync. A failure is reported at once, after the pending successes, so that the counts stay
// correct. While Redis does not answer, circuits count as closed, but pauses that providers
// requested from this process are kept. A CachedBreaker is safe for concurrent use.
type CachedBreaker struct {
	breaker  *Breaker
	alone    *Alone
	circuits [delivery.Channels]circuit
}

// circuit is one process's state of a channel.
type circuit struct {
	mu           sync.Mutex
	trustedUntil time.Time
	toldAt       time.Time
	untold       int // calls that went well
	// heldUntil is the end of the pause that this process knows of.
	heldUntil time.Time
}

// NewCachedBreaker returns a cache of b.
func NewCachedBreaker(b *Breaker, alone *Alone) *CachedBreaker {
	return &CachedBreaker{breaker: b, alone: alone}
}

// Admit is [Breaker.Admit], but may notice up to 100 ms late that another process opened the
// circuit. While Redis does not answer, Admit follows the pauses that this process knows of.
func (b *CachedBreaker) Admit(ctx context.Context, channel delivery.Channel) (time.Duration, string, error) {
	c := &b.circuits[channel]
	if c.trusted(time.Now()) {
		return 0, StateClosed, nil
	}
	if b.alone.away() {
		wait, state := c.held(time.Now())
		return wait, state, nil
	}
	wait, state, err := b.breaker.Admit(ctx, channel)
	b.alone.answered(ctx, err)
	switch {
	case err != nil:
		wait, state = c.held(time.Now())
	case state == StateClosed:
		c.trust(time.Now().Add(trustFor))
	case state == StateHeld && wait > 0:
		c.hold(time.Now().Add(wait))
	}
	return wait, state, nil
}

// Unused is [Breaker.Unused]. It does nothing for a circuit that was just read as closed: such a
// circuit has no probe to give back.
func (b *CachedBreaker) Unused(ctx context.Context, channel delivery.Channel) error {
	if b.circuits[channel].trusted(time.Now()) {
		return nil
	}
	return b.ask(ctx, func() error { return b.breaker.Unused(ctx, channel) })
}

// Report is [Breaker.Report].
func (b *CachedBreaker) Report(ctx context.Context, channel delivery.Channel, ok bool, detail string) error {
	calls := b.circuits[channel].learn(ok, time.Now())
	if calls == 0 && ok {
		return nil
	}
	return b.ask(ctx, func() (err error) {
		if calls > 0 {
			err = b.breaker.succeeded(ctx, channel, calls)
		}
		if !ok && err == nil {
			err = b.breaker.Report(ctx, channel, false, detail)
		}
		return err
	})
}

// ask calls Redis unless it does not answer.
func (b *CachedBreaker) ask(ctx context.Context, call func() error) error {
	if b.alone.away() {
		return redisclient.ErrUnavailable
	}
	err := call()
	b.alone.answered(ctx, err)
	return err
}

// Throttled is [Breaker.Throttled]. It is reported at once, like a failure.
func (b *CachedBreaker) Throttled(ctx context.Context, channel delivery.Channel, after time.Duration) error {
	c := &b.circuits[channel]
	calls := c.learn(false, time.Now())
	c.hold(time.Now().Add(min(max(after, time.Second), longestAlone)))
	return b.ask(ctx, func() (err error) {
		if calls > 0 {
			err = b.breaker.succeeded(ctx, channel, calls)
		}
		return errors.Join(err, b.breaker.Throttled(ctx, channel, after))
	})
}

// longestAlone is the longest pause while Redis does not answer. With Redis, one call now and
// then checks whether the provider still throttles; without Redis no call does.
const longestAlone = time.Minute

// hold notes a pause.
func (c *circuit) hold(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heldUntil = until
}

// held returns how long the pause lasts.
func (c *circuit) held(now time.Time) (time.Duration, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := c.heldUntil.Sub(now); left > 0 {
		return left, StateHeld
	}
	return 0, StateClosed
}

func (c *circuit) trusted(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.trustedUntil)
}

func (c *circuit) trust(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trustedUntil = until
}

// learn counts a call and returns how many successful calls are to be reported now. A probe's
// success is reported at once, because a half-open circuit is never trusted.
func (c *circuit) learn(ok bool, now time.Time) (calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.untold++
	} else {
		c.trustedUntil = time.Time{}
	}
	if ok && now.Before(c.trustedUntil) && now.Sub(c.toldAt) < trustFor {
		return 0
	}
	calls, c.untold, c.toldAt = c.untold, 0, now
	return calls
}
