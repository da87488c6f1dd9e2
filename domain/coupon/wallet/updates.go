package wallet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/domain/coupon"
)

// Verdict is the meaning of an answer of a wallet's service.
type Verdict int

// The verdicts. The zero value is a failure that is tried again.
const (
	Failed  Verdict = iota
	Told            // the service knows of the change
	Gone            // the device has no pass any more
	Refused         // the same request can never succeed
)

// An Answer is a service's answer to one call.
type Answer struct {
	Verdict Verdict
	// After is the pause that the service asked for; 0 = none.
	After time.Duration
	// Detail is the cause of a failure, without names of devices.
	Detail string
}

// A Waker makes Apple's devices ask for the passes that changed.
type Waker interface {
	Wake(ctx context.Context, pushToken string) Answer
}

// A Teller tells Google the state of a coupon whose pass was saved.
type Teller interface {
	Tell(ctx context.Context, couponID int64, state coupon.State) Answer
}

// A Device is to be woken.
type Device struct{ Name, Token string }

// A Change is a leased change of a pass, with the devices to notify.
type Change struct {
	CouponID, Revision int64
	State              coupon.State // by the database's clock
	Attempts           int          // that were recorded before
	Age                time.Duration
	Google             bool // Google is to be told
	Devices            []Device
}

// A Result is the outcome of one attempt to notify of a change.
type Result struct {
	CouponID, Revision int64
	// Told and Gone are devices, with the tokens that were called. A device that
	// has registered with another token meanwhile is in neither list.
	Told, Gone []Device
	Google     bool // Google is told
	// Again is when the next attempt follows; nil = none does.
	Again *time.Duration
}

// Changes is the store as workers use it.
type Changes interface {
	// Note records steps of the coupons as changes of their passes, once, and reports
	// whether any step is such a change.
	Note(ctx context.Context, coupons []int64) (bool, error)
	// NoteExpired makes the expiry of up to limit coupons a change of their passes.
	NoteExpired(ctx context.Context, limit int) (int, error)
	// NoteMissed records changes of passes for which [Changes.Note] was not called, for up
	// to limit passes of the coupons after the given coupon. It returns the last of these
	// coupons, or 0 if no passes are left.
	NoteMissed(ctx context.Context, after int64, limit int) (last int64, err error)
	// Due reports whether a change is due that no worker holds.
	Due(ctx context.Context) (bool, error)
	// Lease returns up to limit due changes, which no other worker gets while the lease
	// lasts.
	Lease(ctx context.Context, limit int, lasting time.Duration) (token string, due []Change, err error)
	// Record stores results of changes whose lease is held. A pass that has changed
	// again meanwhile stays due.
	Record(ctx context.Context, token string, results []Result) error
}

const (
	// leased is how many changes one worker holds at a time.
	leased = 16
	// calls is how many calls of services it makes at a time.
	calls = 16
	// leaseFor is longer than all calls of a lease take, each until its time-out.
	leaseFor = 5 * time.Minute
	// turn is how long a worker stays.
	turn = 20 * time.Second
	// firstPause follows the first failure; it doubles up to longestPause.
	firstPause, longestPause = 5 * time.Second, 10 * time.Minute
	// GiveUpAfter is the age of a change after which no wallet is notified any more.
	// The owner opens the pass anyway, and the coupon's own state decides whether
	// it can be used.
	GiveUpAfter = 24 * time.Hour
)

// An Updater notifies wallets of changes. Apple and Google are nil if they are not
// configured.
type Updater struct {
	Store  Changes
	Apple  Waker
	Google Teller
	Now    func() time.Time
	// Observe, if set, is called with every answer, possibly concurrently; wallet is
	// "apple" or "google".
	Observe func(wallet string, a Answer)
}

// Drain notifies of due changes until none is left, for about one turn. It reports
// whether due changes may be left.
func (u *Updater) Drain(ctx context.Context) (more bool, err error) {
	until := u.Now().Add(turn)
	for ctx.Err() == nil {
		token, due, err := u.Store.Lease(ctx, leased, leaseFor)
		if err != nil || len(due) == 0 {
			return false, err
		}
		results := u.tell(context.WithoutCancel(ctx), due)
		if err := u.Store.Record(context.WithoutCancel(ctx), token, results); err != nil {
			return false, err // the lease runs out, and the changes are told again
		}
		if !u.Now().Before(until) {
			return true, nil
		}
	}
	return true, nil
}

// answers are the answers to the calls of one lease.
type answers struct {
	devices map[string]Answer // by push token
	google  map[int64]Answer  // by coupon
}

// tell calls each device once, even if several of its passes changed: the device then
// asks for all changed passes.
func (u *Updater) tell(ctx context.Context, due []Change) []Result {
	a := answers{map[string]Answer{}, map[int64]Answer{}}
	var mu sync.Mutex
	var work []func()
	asked := map[string]bool{}
	for _, c := range due {
		for _, d := range c.Devices {
			if asked[d.Token] || u.Apple == nil {
				continue
			}
			asked[d.Token] = true
			work = append(work, func() {
				answer := u.observed("apple", u.Apple.Wake(ctx, d.Token))
				mu.Lock()
				defer mu.Unlock()
				a.devices[d.Token] = answer
			})
		}
		if c.Google && u.Google != nil {
			work = append(work, func() {
				answer := u.observed("google", u.Google.Tell(ctx, c.CouponID, c.State))
				mu.Lock()
				defer mu.Unlock()
				a.google[c.CouponID] = answer
			})
		}
	}
	inParallel(work)
	results := make([]Result, len(due))
	for i, c := range due {
		results[i] = u.result(c, a)
	}
	return results
}

func (u *Updater) observed(wallet string, a Answer) Answer {
	if u.Observe != nil {
		u.Observe(wallet, a)
	}
	return a
}

func inParallel(work []func()) {
	todo := make(chan func())
	var workers sync.WaitGroup
	for range min(calls, len(work)) {
		workers.Go(func() {
			for do := range todo {
				do()
			}
		})
	}
	for _, do := range work {
		todo <- do
	}
	close(todo)
	workers.Wait()
}

// result returns the result for c of the answers. A wallet that is no longer
// configured is not called.
func (u *Updater) result(c Change, a answers) Result {
	r := Result{CouponID: c.CouponID, Revision: c.Revision, Google: !c.Google || u.Google == nil}
	failed, asked := false, time.Duration(0)
	judge := func(answer Answer) bool {
		if answer.Verdict == Failed {
			failed, asked = true, max(asked, answer.After)
		}
		return answer.Verdict != Failed
	}
	if !r.Google {
		r.Google = judge(a.google[c.CouponID])
	}
	for _, d := range c.Devices {
		answer := a.devices[d.Token]
		switch {
		case u.Apple == nil:
			r.Told = append(r.Told, d)
		case answer.Verdict == Gone:
			r.Gone = append(r.Gone, d)
		case judge(answer):
			r.Told = append(r.Told, d)
		}
	}
	if !failed {
		return r
	}
	if pause := Pause(c.Attempts+1, asked, rand.Float64()); c.Age+pause < GiveUpAfter {
		r.Again = &pause
		return r
	}
	r.Google, r.Told = true, nil
	for _, d := range c.Devices {
		if a.devices[d.Token].Verdict != Gone {
			r.Told = append(r.Told, d)
		}
	}
	return r
}

// Pause returns the time between the failed attempt, counted from 1, and the next
// attempt. jitter is random in [0, 1) and spreads the pause by ±10 %. A pause that a
// service asked for is kept.
func Pause(attempt int, asked time.Duration, jitter float64) time.Duration {
	pause := min(longestPause, firstPause<<min(attempt-1, 10))
	return max(time.Duration(float64(pause)*(0.9+jitter/5)), asked)
}
