package middleware

// Keys returns how many keys a limiter keeps.
func Keys(l *Limiter) (n int) {
	for i := range l.shards {
		n += len(l.shards[i].full)
	}
	return n
}

// Bodies is the deadline of bodies with another time.
var Bodies = bodies
