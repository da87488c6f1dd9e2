package provider

import "sync"

// A Current is a value that is replaced while calls use it. The zero Current holds the zero
// value of T. It is safe for concurrent use.
type Current[T any] struct {
	mu sync.Mutex
	in *inUse[T]
}

// inUse is a value with the calls that use it.
type inUse[T any] struct {
	value T
	using sync.WaitGroup
}

// Replace replaces the value, and returns a function that waits until no call uses the
// previous value.
func (c *Current[T]) Replace(value T) (unused func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.held()
	c.in = &inUse[T]{value: value}
	return before.using.Wait
}

// Use returns the value, and the function that gives it back.
func (c *Current[T]) Use() (value T, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.held()
	in.using.Add(1) // never after Replace has replaced it, so never concurrently with Wait
	return in.value, in.using.Done
}

func (c *Current[T]) held() *inUse[T] {
	if c.in == nil {
		c.in = &inUse[T]{}
	}
	return c.in
}
