//go:build chaos

package chaos_test

import "testing"

// fullReceipts is the proof for what providers report.
var fullReceipts = receiptPlan{
	users: 5000, workerKills: 6,
	texts:   map[fault]int{refuse: 60, throttle: 60, dropBefore: 40, dropAfter: 60, hang: 6, late: 6},
	letters: map[fault]int{refuse: 60, dropBefore: 40, dropAfter: 60},
}

func TestReceiptsFull(t *testing.T) { runReceipts(t, fullReceipts) }
