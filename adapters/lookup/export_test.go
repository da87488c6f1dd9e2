package lookup

// Waiting returns how many templates the round that begins next will read.
func Waiting(t *Templates) int {
	t.rounds.mu.Lock()
	defer t.rounds.mu.Unlock()
	if len(t.rounds.waiting) == 0 {
		return 0
	}
	return len(t.rounds.waiting[0].ids)
}

// Stop ends the goroutine of the cache, as the bubble of a test asks.
func Stop(t *Templates) { t.cache.StopAllGoroutines() }

// StopCodes ends the goroutine of the cache.
func StopCodes(c *Codes) { c.cache.StopAllGoroutines() }
