package pg

import (
	"context"
	"log/slog"
	"time"
)

// Grouping tunes group commit. The zero value has the values that measured best.
type Grouping struct {
	Workers  int // statements in flight, 0 = 2
	MaxGroup int // rows per statement, 0 = 256
	// Timeout bounds the time to store a group; 0 = 15 s. A timeout longer than callers wait
	// is useless.
	Timeout time.Duration
	// Observe, if not nil, is called with the size and duration of every group.
	Observe func(size int, took time.Duration)
}

// Config returns the configuration of a committer on db.
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
	// MaxCrowd is the size to which groups may grow beyond MaxGroup while that many operations
	// wait for each worker. Under such load larger groups delay no caller, since the next
	// group is gathered meanwhile. 0 = groups do not grow beyond MaxGroup.
	MaxCrowd int
	// MaxQueue is how many operations may wait; [NewFairCommitter] describes the limit when
	// several templates have waiting operations.
	MaxQueue int
	Timeout  time.Duration
	// SideBySide is the size from which groups are stored concurrently. Smaller groups are
	// stored one at a time, so that the next group grows and shares the fixed cost of a
	// transaction. 0 = all groups are stored concurrently. SideBySide has no effect in
	// committers with a key function.
	SideBySide int
	// Gather is the longest time that a worker waits for Enough operations. The worker waits
	// only if the last group had several operations, and only while more operations arrive.
	// With many processes each group would otherwise have a few operations and cost a
	// transaction. Smaller groups are stored one at a time, so that the next group grows. A
	// single caller never waits. 0 = a worker takes the queued operations at once. Gather must
	// not be combined with SideBySide.
	Gather time.Duration
	Enough int
	// Small, if set, reports whether operations are small enough to wait for more operations.
	// Waiting costs large operations more than a shared transaction saves.
	Small func() bool
	// Observe, if set, is called with the size of every group and how long
	// storing it took.
	Observe func(size int, took time.Duration)
	// Traced makes each group part of its first traced caller's trace.
	Traced bool
	// LockWait is how long a group waits for a lock before its templates are isolated; see
	// apart.go. flush gets this time through [LockTimeout]. 0 = groups that meet a lock fail.
	LockWait time.Duration
	// Locked returns those templates whose rows another session has locked. It does not wait
	// for the locks; nil = locked templates cannot be determined.
	Locked func(ctx context.Context, templates []int64) ([]int64, error)
	// Name says in the log which operations the groups are of.
	Name string
	Log  *slog.Logger
}

// DefaultGroups is the configuration that measured best for short statements.
func DefaultGroups() GroupConfig {
	return GroupConfig{Workers: 2, MaxGroup: 256, MaxQueue: 16384, Timeout: 15 * time.Second}
}
