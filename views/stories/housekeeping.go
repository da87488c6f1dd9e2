package stories

import (
	"time"

	"dropbell/domain/housekeeping"
	workpages "dropbell/views/pages/work"
)

// housekeepings are the removal of old rows in order, behind, and before its first run.
func housekeepings() []Story {
	ago := func(d time.Duration) *time.Time {
		at := Now().Add(-d)
		return &at
	}
	count := func(n int64) *int64 { return &n }
	steps := []housekeeping.Step{
		{Name: "audit", RanAt: ago(3 * time.Minute), EndedAt: ago(3 * time.Minute), Took: 4 * time.Millisecond, Left: count(0)},
		{Name: "batches", RanAt: ago(3 * time.Minute), EndedAt: ago(3 * time.Minute), Took: 2 * time.Second, Removed: 8_400, RemovedEver: 4_120_000, PerSecond: 4_200, Left: count(0)},
		{Name: "step_of_a_newer_worker", RanAt: ago(3 * time.Minute), EndedAt: ago(3 * time.Minute), Left: count(0)},
	}
	behind := append([]housekeeping.Step{
		{Name: "reservations", RanAt: ago(3 * time.Minute), EndedAt: ago(26 * time.Hour), BehindSince: ago(80 * time.Minute), Took: time.Minute, Removed: 1_204_000,
			RemovedEver: 88_000_000, PerSecond: 20_060, Left: count(412)},
		{Name: "coupons", RanAt: ago(3 * time.Minute), BehindSince: ago(20 * time.Minute), Took: time.Minute, Removed: 240_000, RemovedEver: 240_000, PerSecond: 4_000},
		{Name: "idempotency_keys", RanAt: ago(3 * time.Minute), EndedAt: ago(20 * time.Minute), BehindSince: ago(3 * time.Minute), Took: time.Minute, Left: count(housekeeping.CountedLeft)},
	}, steps...)
	return []Story{
		{Name: "housekeeping/finished", Page: workpages.Housekeeping{Steps: steps, Archived: 18_250, Now: Now()}.Page()},
		{Name: "housekeeping/behind", Page: workpages.Housekeeping{Steps: behind, Archived: 1, Now: Now()}.Page()},
		{Name: "housekeeping/new", Page: workpages.Housekeeping{Now: Now()}.Page()},
	}
}
