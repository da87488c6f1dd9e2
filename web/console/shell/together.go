package shell

import "sync"

// Together calls the functions at the same time and returns the first error, in their order. Reads
// of a page that do not depend on each other wait for the network to the database once. A panic of
// a function is raised again in the calling goroutine, whose request is then answered as an error.
func Together(reads ...func() error) error {
	errs, panics := make([]error, len(reads)), make([]any, len(reads))
	var all sync.WaitGroup
	for i, read := range reads {
		all.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = read()
		})
	}
	all.Wait()
	for i := range reads {
		if panics[i] != nil {
			panic(panics[i])
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
