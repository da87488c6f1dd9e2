package pg

import "time"

// Grouping tunes group commit. The zero value is what was measured best.
type Grouping struct {
	Workers  int // statements in flight, 0 = 2
	MaxGroup int // rows per statement, 0 = 256
	// Timeout ends the storing of a group; 0 = 15 s. Longer than its callers
	// wait makes no sense.
	Timeout time.Duration
	// Observe, if not nil, is called with the size and duration of every group.
	Observe func(size int, took time.Duration)
}

// Config returns what a committer on db takes.
func (g Grouping) Config(db *DB) GroupConfig {
	cfg := DefaultGroups()
	cfg.Observe, cfg.Traced = g.Observe, db.traced
	if g.Workers > 0 {
		cfg.Workers = g.Workers
	}
	if g.MaxGroup > 0 {
		cfg.MaxGroup = g.MaxGroup
	}
	if g.Timeout > 0 {
		cfg.Timeout = g.Timeout
	}
	return cfg
}
