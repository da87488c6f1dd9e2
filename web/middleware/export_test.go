package middleware

// MaxKeys is how many keys a limiter keeps.
const MaxKeys = maxKeys

// Keys returns how many keys a limiter keeps now.
func Keys(l *Limiter) int {
	l.buckets.CleanUp()
	return l.buckets.EstimatedSize()
}

// Bodies is the deadline of bodies with another time.
var Bodies = bodies
