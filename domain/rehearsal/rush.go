package rehearsal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// FirstUser is the first of the made-up users of a rush. Ids of real users are below it.
const FirstUser = user.ID(1) << 62

// A Rush is an open load of claims: customers come at their instants, whether earlier ones were answered or not.
type Rush struct {
	// Seconds are how many customers come in each second; they are spread evenly over it.
	Seconds []int64
	// Claim claims a coupon for one made-up user.
	Claim func(ctx context.Context, by user.ID) error
	Now   func() time.Time
	// Answered is set to how many claims were answered so far.
	Answered *atomic.Int64
}

// Arrivals returns the seconds of a rush of about n customers who come as curve says: the coupons issued in each second of
// an earlier drop. Without a curve they come evenly within [RushTakes]. No second has more than most.
func Arrivals(n int64, curve []int64, most int64) []int64 {
	if seconds := int(RushTakes / time.Second); len(curve) == 0 || slices.Max(curve) == 0 {
		curve = slices.Repeat([]int64{1}, seconds)
	}
	curve = curve[:min(len(curve), int(RushTakes/time.Second))]
	var sum int64
	for _, c := range curve {
		sum += c
	}
	list := make([]int64, len(curve))
	for i, c := range curve {
		list[i] = min(max(1, most), (n*c+sum/2)/max(1, sum))
	}
	return list
}

// Result is the result of a rush.
type Result struct {
	// Took are the latencies of all claims, ascending, from the instant at which the customer came.
	Took []time.Duration
	// Issued claims got a coupon, Refused a refusal, and Failed another error.
	Issued, Refused, Failed int64
}

// Quantile returns the latency within which the share q of the claims was answered; 0 without claims.
func (r Result) Quantile(q float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(len(r.Took)-1, int(q*float64(len(r.Took))))]
}

// tick is the distance of the instants at which customers are let come.
const tick = 10 * time.Millisecond

// Run lets all customers come and waits for their answers.
func (r Rush) Run(ctx context.Context) Result {
	var mu sync.Mutex
	var all sync.WaitGroup
	var result Result
	begin, by := r.Now(), FirstUser
	for second, n := range r.Seconds {
		came := int64(0)
		for part := range int64(time.Second / tick) {
			at := begin.Add(time.Duration(second)*time.Second + time.Duration(part)*tick)
			if !sleep(ctx, at.Sub(r.Now())) {
				all.Wait()
				return result
			}
			for until := n * (part + 1) / int64(time.Second/tick); came < until; came++ {
				by++
				who := by
				all.Go(func() {
					err := r.Claim(ctx, who)
					took := r.Now().Sub(at)
					mu.Lock()
					defer mu.Unlock()
					result.Took = append(result.Took, took)
					switch {
					case err == nil:
						result.Issued++
					case fault.KindOf(err) == fault.Conflict:
						result.Refused++
					default:
						result.Failed++
					}
					if r.Answered != nil {
						r.Answered.Add(1)
					}
				})
			}
		}
	}
	all.Wait()
	slices.Sort(result.Took)
	return result
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
