package rehearsal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/user"
)

// A Rush is an open load of claims: customers come at their instants, whether earlier ones were answered or not.
type Rush struct {
	// Seconds are how many customers come in each second; they are spread evenly over it.
	Seconds []int64
	// Next returns the id of the next made-up user.
	Next func() user.ID
	// Claim claims a coupon for one made-up user. tap is 1, or 2 for the second tap of a customer.
	Claim func(ctx context.Context, by user.ID, tap int) error
	Now   func() time.Time
	// Tally, if set, counts what happened so far.
	Tally *Tally
}

// A Tally counts what happened in a rush so far.
type Tally struct{ Came, Answered, Issued atomic.Int64 }

// Customers returns a function for [Rush.Next]: the ids after first, in their order, for which belongs holds.
func Customers(first user.ID, belongs func(user.ID) bool) func() user.ID {
	by := first
	return func() user.ID {
		for by++; !belongs(by); by++ {
		}
		return by
	}
}

// Everybody is true for each user; see [Customers].
func Everybody(user.ID) bool { return true }

// Result is the result of a rush.
type Result struct {
	// Took are the latencies of all claims, ascending, from the instant at which the customer tapped.
	Took []time.Duration
	// Issued claims got a coupon, Refused a refusal, and Failed another error. These are first taps.
	Issued, Refused, Failed int64
	// Twice customers tapped a second time, and Again of them got an answer that gives a coupon: the first one, or another one if
	// the drop gives several to a user.
	Twice, Again int64
}

// Came returns how many customers came.
func (r Result) Came() int64 { return r.Issued + r.Refused + r.Failed }

// Plus returns the sum of two results.
func (r Result) Plus(o Result) Result {
	took := slices.Concat(r.Took, o.Took)
	slices.Sort(took)
	return Result{took, r.Issued + o.Issued, r.Refused + o.Refused, r.Failed + o.Failed, r.Twice + o.Twice, r.Again + o.Again}
}

// Quantile returns the latency within which the share q of the claims was answered; 0 without claims.
func (r Result) Quantile(q float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(len(r.Took)-1, int(q*float64(len(r.Took))))]
}

const (
	// tick is the distance of the instants at which customers are let come.
	tick = 10 * time.Millisecond
	// impatient is of how many customers one taps twice, and secondTap after how long.
	impatient = 8
	secondTap = 300 * time.Millisecond
)

// running is a rush that runs.
type running struct {
	Rush
	mu     sync.Mutex
	all    sync.WaitGroup
	result Result
}

// Run lets all customers come and waits for their answers.
func (r Rush) Run(ctx context.Context) Result {
	if r.Tally == nil {
		r.Tally = &Tally{}
	}
	run := &running{Rush: r}
	begin := r.Now()
	for second, n := range r.Seconds {
		came := int64(0)
		for part := range int64(time.Second / tick) {
			at := begin.Add(time.Duration(second)*time.Second + time.Duration(part)*tick)
			if !pause.For(ctx, at.Sub(r.Now())) {
				break
			}
			for until := n * (part + 1) / int64(time.Second/tick); came < until; came++ {
				by, twice := r.Next(), run.Tally.Came.Add(1)%impatient == 0
				run.all.Go(func() { run.tap(ctx, by, at, 1) })
				if twice {
					run.all.Go(func() {
						if again := at.Add(secondTap); pause.For(ctx, again.Sub(r.Now())) {
							run.tap(ctx, by, again, 2)
						}
					})
				}
			}
		}
	}
	run.all.Wait()
	slices.Sort(run.result.Took)
	return run.result
}

// tap lets a customer claim at the instant.
func (r *running) tap(ctx context.Context, by user.ID, at time.Time, tap int) {
	err := r.Claim(ctx, by, tap)
	took := r.Now().Sub(at)
	r.mu.Lock()
	defer r.mu.Unlock()
	result := &r.result
	result.Took = append(result.Took, took)
	r.Tally.Answered.Add(1)
	switch {
	case tap == 2:
		result.Twice++
		if err == nil {
			result.Again++
		}
	case err == nil:
		result.Issued++
		r.Tally.Issued.Add(1)
	case fault.KindOf(err) == fault.Conflict, fault.KindOf(err) == fault.Denied:
		result.Refused++
	default:
		result.Failed++
	}
}
