package live

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Verdict is the meaning of an answer from Apple.
type Verdict int

// The verdicts. The zero value is a failure that is tried again.
const (
	Failed Verdict = iota
	Done
	Gone // there is no such channel
)

// An Answer is Apple's answer to one request.
type Answer struct {
	Verdict Verdict
	// After is the pause that Apple asked for; 0 = none.
	After  time.Duration
	Detail string
}

// A Broadcaster is Apple's service. It is safe for concurrent use.
type Broadcaster interface {
	// Create makes a channel and returns its name.
	Create(ctx context.Context) (channel string, a Answer)
	// Broadcast reaches every phone that follows the channel.
	Broadcast(ctx context.Context, channel string, m Move, at time.Time) Answer
	// Delete removes the channel.
	Delete(ctx context.Context, channel string) Answer
}

// A Result is the result of a step for a drop.
type Result struct {
	TemplateID int64
	Channel    string
	Told       *Content
	Broadcast  bool // just now
	Ended      bool
	Failures   int
	Remove     bool // the row
	// Again is how long after now the drop is looked at next.
	Again time.Duration
}

// Store keeps the channels of drops.
type Store interface {
	// Cover adds published drops that have no row, up to limit.
	Cover(ctx context.Context, limit int) error
	// Wake makes the drop due: it has changed.
	Wake(ctx context.Context, templateID int64) error
	// Due reports whether a drop is due that no worker holds.
	Due(ctx context.Context) (bool, error)
	// Lease leases up to limit due drops. No other worker gets them while the lease lasts.
	Lease(ctx context.Context, limit int, lasting time.Duration) (token string, due []Case, err error)
	// Record stores results of drops whose lease is held. A drop for which Wake was called since
	// the lease stays due.
	Record(ctx context.Context, token string, results []Result) error
}

const (
	leased = 32
	// leaseFor is longer than all requests of a lease take, each until its time-out.
	leaseFor = 2 * time.Minute
	calls    = 8
	turn     = 20 * time.Second
	// firstPause follows the first failure; it doubles up to longestPause.
	firstPause, longestPause = time.Second, time.Minute
)

// A Keeper carries out the due steps.
type Keeper struct {
	Store Store
	Apple Broadcaster
	Now   func() time.Time
	// Observe, if set, is called with every answer, possibly concurrently.
	Observe func(step Step, a Answer)
}

// Drain carries out due steps until no drop is due, at most for about [turn].
func (k *Keeper) Drain(ctx context.Context) error {
	until := k.Now().Add(turn)
	for ctx.Err() == nil && k.Now().Before(until) {
		token, due, err := k.Store.Lease(ctx, leased, leaseFor)
		if err != nil || len(due) == 0 {
			return err
		}
		results := make([]Result, len(due))
		var busy sync.WaitGroup
		turns := make(chan struct{}, calls)
		for i, c := range due {
			busy.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				results[i] = k.do(context.WithoutCancel(ctx), c)
			})
		}
		busy.Wait()
		if err := k.Store.Record(context.WithoutCancel(ctx), token, results); err != nil {
			return err // the lease runs out; the repeated broadcast is the same
		}
	}
	return nil
}

// do takes the due step of a drop and returns its result.
func (k *Keeper) do(ctx context.Context, c Case) Result {
	m := Decide(c)
	r := Result{TemplateID: c.Template.ID, Channel: c.Channel, Told: c.Told, Ended: c.Ended, Again: max(0, m.Next.Sub(c.Now))}
	var a Answer
	switch m.Step {
	case Wait:
		return r
	case Forget:
		r.Remove = true
		return r
	case Create:
		r.Channel, a = k.Apple.Create(ctx)
	case Tell:
		if a = k.Apple.Broadcast(ctx, c.Channel, m, c.Now); a.Verdict == Done {
			r.Told, r.Broadcast, r.Ended = &m.Content, true, m.End
		}
	case Delete:
		a = k.Apple.Delete(ctx, c.Channel)
		r.Remove = a.Verdict != Failed
	}
	if k.Observe != nil {
		k.Observe(m.Step, a)
	}
	if a.Verdict == Gone && m.Step == Tell { // deleted by hand: phones get another one from the drop
		r.Channel, r.Told, r.Again = "", nil, 0
	}
	if a.Verdict == Failed {
		r.Failures = c.Failures + 1
		r.Again = max(a.After, time.Duration(float64(min(longestPause, firstPause<<min(c.Failures, 10)))*(0.9+rand.Float64()/5)))
	}
	return r
}
