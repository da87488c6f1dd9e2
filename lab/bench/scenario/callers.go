package scenario

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Work is the result of callers that repeatedly called one operation.
type Work struct {
	Calls     int
	PerSecond float64
	P50, P99  time.Duration
}

// Drive lets callers call do until the time is over. i counts from 1 and is never repeated.
// Drive returns an error if a call failed or if there was no call.
func Drive(callers int, lasting time.Duration, do func(i int64) error) (Work, error) {
	var next atomic.Int64
	until := time.Now().Add(lasting)
	took, errs := make([][]time.Duration, callers), make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for begin := time.Now(); begin.Before(until); begin = time.Now() {
				if errs[c] = do(next.Add(1)); errs[c] != nil {
					return
				}
				took[c] = append(took[c], time.Since(begin))
			}
		})
	}
	all.Wait()
	times := slices.Concat(took...)
	slices.Sort(times)
	n := len(times)
	if err := errors.Join(errs...); err != nil {
		return Work{}, err
	}
	if n == 0 {
		return Work{}, errors.New("no call ended in time")
	}
	return Work{n, float64(n) / lasting.Seconds(), times[n/2], times[n*99/100]}, nil
}

// Each lets callers call do with 0…n-1, each number once. After an error no call begins.
func Each(n, callers int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if errs[c] = do(i); errs[c] != nil {
					next.Store(int64(n))
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
