package middleware

import "golang.org/x/time/rate"

// NewSmallLimiter returns a limiter that keeps so many keys at most.
func NewSmallLimiter(perMinute, most int) *Limiter {
	return newLimiter(rate.Limit(perMinute)/60, perMinute, most)
}

// Keys returns how many keys a limiter keeps now.
func Keys(l *Limiter) int {
	l.buckets.CleanUp()
	return l.buckets.EstimatedSize()
}

// Bodies is the deadline of bodies with another time.
var Bodies = bodies

// Listed returns how many keys of a limiter are shared now.
func Listed(l *Limiter) int {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	return len(l.shared.busy)
}
