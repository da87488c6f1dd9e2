package redis

import "time"

// SetClock replaces the clock of Redis.
func (p *DomainPacer) SetClock(at func() time.Time) { p.at = at }
