package pgtest

import "sync"

// Together runs n callers at the same moment and returns their errors.
func Together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { <-start; errs[i] = call(i) })
	}
	close(start)
	all.Wait()
	return errs
}
