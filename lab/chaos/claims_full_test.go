//go:build chaos

package chaos_test

import (
	"testing"
	"time"
)

// fullRush is the proof of claims: ten thousand users claim five hundred coupons of each gate,
// over eight shards, from three web processes.
var fullRush = rush{
	users: 10_000, visits: 40_000, stock: []int64{100, 150, 200, 250, 300, 350, 400, 450, 500}, limit: 2, codes: 200,
	storm: 100 * time.Second, webKills: 14, workerKills: 12, redisRestarts: 4, redisEmptied: 8, tills: 3,
	troubles: []trouble{restartPostgres, crashPostgres, pausePostgres},
	pauses:   4, moves: 8, pause: [2]time.Duration{time.Second, 7 * time.Second},
	patience: 90 * time.Second,
}

func TestClaimsChaosFull(t *testing.T) { rushAndDestroy(t, fullRush) }

// TestHistoriesFull is TestHistoriesShort with a hundred reservations, a hundred coupons, and
// more killed processes.
func TestHistoriesFull(t *testing.T) {
	checkHistories(t, rush{webKills: 8, workerKills: 4, storm: 30 * time.Second, patience: 60 * time.Second}, 100)
}
