//go:build chaos

package chaos_test

import (
	"testing"
	"time"
)

// full is the proof: more than 50,000 reminders and everything that can break.
var full = size{
	drops: 8, users: 2150, late: 120, deadline: 400,
	booking: 45 * time.Second, apart: 18 * time.Second, storm: 190 * time.Second,
	webKills: 4, workerKills: 20,
	whileBooking: []trouble{restartPostgres, crashPostgres, emptyRedis},
	whileSending: []trouble{emptyRedis, stopRedis, restartPostgres, crashPostgres, pausePostgres, longPause, killInPause, haltWorker,
		providersDown, emptyRedis},
	hook:     [2]time.Duration{400 * time.Millisecond, 2500 * time.Millisecond},
	mail:     [2]time.Duration{10 * time.Millisecond, 50 * time.Millisecond},
	hooks:    map[fault]int{refuse: 12, throttle: 12, dropBefore: 12, dropAfter: 12, hang: 5, late: 5},
	mails:    map[fault]int{refuse: 40, throttle: 40, dropBefore: 40, dropAfter: 40, hang: 4, late: 4},
	patience: 90 * time.Second,
}

func TestChaosFull(t *testing.T) { destroy(t, full) }

// fullSeason is the proof for campaigns: more than 50,000 users in each of the app, mail and
// webhooks.
var fullSeason = campaignPlan{
	size: size{
		users: 50_400, storm: 120 * time.Second, webKills: 4, workerKills: 10,
		whileSending: []trouble{emptyRedis, restartPostgres, crashPostgres, longPause, killInPause, haltWorker, stopRedis, providersDown, emptyRedis},
		hook:         [2]time.Duration{200 * time.Millisecond, 1200 * time.Millisecond},
		mail:         [2]time.Duration{time.Millisecond, 5 * time.Millisecond},
		hooks:        map[fault]int{refuse: 12, throttle: 12, dropBefore: 12, dropAfter: 12, hang: 5, late: 5},
		mails:        map[fault]int{refuse: 40, throttle: 40, dropBefore: 40, dropAfter: 40, hang: 4, late: 4},
		patience:     90 * time.Second,
	},
	extras: 550_000, limited: 6000, twins: 6, pauses: 50, rate: 1000, window: 30 * time.Second,
	short: 250,
}

func TestCampaignsFull(t *testing.T) { spoil(t, fullSeason) }
