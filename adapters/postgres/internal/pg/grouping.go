package pg

import (
	"context"
	"log/slog"
	"time"
)

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
	cfg.Observe, cfg.Traced, cfg.Log = g.Observe, db.traced, db.log
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

// GroupConfig tunes a [Committer]; see [DefaultGroups].
type GroupConfig struct {
	Workers  int
	MaxGroup int
	// MaxCrowd is the size MaxGroup grows to while that many operations wait for
	// each worker: under such load larger groups delay no caller, since the next
	// group is gathered meanwhile. 0 = it does not grow.
	MaxCrowd int
	// MaxQueue is how many operations may wait; see [NewFairCommitter] for those of
	// several templates.
	MaxQueue int
	Timeout  time.Duration
	// SideBySide is the size from which groups are stored concurrently. Smaller
	// groups are stored one at a time, so that the next group grows and shares the
	// fixed cost of a transaction. 0 = always concurrently; not for committers
	// with a key function.
	SideBySide int
	// Gather is how long a worker waits at most until Enough operations are together, if the
	// last group had several, and while more of them arrive: with many processes each group
	// would have a few operations and cost a transaction. Smaller groups are stored one
	// at a time, so that the next one grows. A caller who is alone never waits.
	// 0 = a worker takes those that are there; not beside SideBySide.
	Gather time.Duration
	Enough int
	// Small, if set, reports whether operations are small enough for that: large ones lose
	// more by waiting than a shared transaction saves.
	Small func() bool
	// Observe, if set, is called with the size of every group and how long
	// storing it took.
	Observe func(size int, took time.Duration)
	// Traced makes each group part of its first traced caller's trace.
	Traced bool
	// LockWait is how long a group waits for a lock, as [LockTimeout] tells flush, before
	// templates are kept apart; see apart.go. 0 = groups fail as they are.
	LockWait time.Duration
	// Locked returns those of the templates whose rows another session has locked, without
	// waiting for the locks; nil = it cannot be told.
	Locked func(ctx context.Context, templates []int64) ([]int64, error)
	// Name says in the log which operations the groups are of.
	Name string
	Log  *slog.Logger
}

// DefaultGroups is what was measured best for short statements.
func DefaultGroups() GroupConfig {
	return GroupConfig{Workers: 2, MaxGroup: 256, MaxQueue: 16384, Timeout: 15 * time.Second}
}
