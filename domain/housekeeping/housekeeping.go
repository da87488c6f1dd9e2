// Package housekeeping describes the removal of rows past their retention.
package housekeeping

import (
	"context"
	"time"
)

// A Step removes the rows of one kind. Steps run one after the other, every ten minutes.
type Step struct {
	// Name names the step: the table of its rows, or the kind of rows.
	Name string
	// RanAt is when the last run of the step ended, and EndedAt when a run last left nothing to
	// do; nil = none did yet.
	RanAt, EndedAt *time.Time
	// BehindSince is when the first of the latest unfinished runs in a row ended; nil if the last
	// run finished. A run that does not finish in its time is continued by the next run.
	BehindSince *time.Time
	// Took is how long the last run took, and Removed how many rows it removed.
	Took    time.Duration
	Removed int64
	// RemovedEver is how many rows the step has removed since it exists.
	RemovedEver int64
	// PerSecond is how many rows a second were removed by the last run that removed any.
	PerSecond float64
	// Left is how many drops, campaigns or rows the last run left to the next one, at most
	// [CountedLeft]; nil = they were not counted.
	Left *int64
}

// CountedLeft is up to how many rows that are left are counted.
const CountedLeft = 1_000_000

// Every is how often the steps run.
const Every = 10 * time.Minute

// Behind reports whether the step has rows left that an earlier run could not remove.
func (s Step) Behind() bool { return s.BehindSince != nil }

// BehindFor returns for how long the step has been behind at now; 0 if it is not.
func (s Step) BehindFor(now time.Time) time.Duration {
	if s.BehindSince == nil {
		return 0
	}
	return max(0, now.Sub(*s.BehindSince))
}

// Store reads the progress of the steps.
type Store interface {
	// Steps returns the steps that have run, those that are behind first, then by name.
	Steps(ctx context.Context) ([]Step, error)
	// Archived returns how many drops are archived: their figures are kept in a row, and the rows
	// that these were counted from were removed.
	Archived(ctx context.Context) (int64, error)
}
