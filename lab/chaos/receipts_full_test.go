//go:build chaos

package chaos_test

import "testing"

// fullReceipts is the proof for the reports of providers. manyReceipts is the proof for further
// providers. groupedReceipts is for providers that take 100 messages or more in a call of SMS,
// so that there are few calls.
var (
	fullReceipts = receiptPlan{
		users: 5000, workerKills: 6, every: 8,
		texts:   map[fault]int{refuse: 60, throttle: 60, dropBefore: 40, dropAfter: 60, hang: 6, late: 6},
		letters: map[fault]int{refuse: 60, dropBefore: 40, dropAfter: 60},
	}
	manyReceipts = receiptPlan{
		users: 2000, workerKills: 4, every: 8,
		texts:   map[fault]int{refuse: 24, throttle: 24, dropBefore: 16, dropAfter: 24, hang: 3, late: 3},
		letters: map[fault]int{refuse: 24, dropBefore: 16, dropAfter: 24},
	}
	groupedReceipts = receiptPlan{
		users: 2000, workerKills: 4, every: 2,
		texts:   map[fault]int{refuse: 2, throttle: 2, dropBefore: 2, dropAfter: 2, hang: 1, late: 1},
		letters: manyReceipts.letters,
	}
)

// TestReceiptsFull is [TestReceiptsShort] with more users and more faults. It runs with each
// provider of SMS, and with each provider of mail whose reports are read.
func TestReceiptsFull(t *testing.T) {
	for _, c := range []struct {
		sms, mail string
		plan      receiptPlan
	}{
		{"twilio", "postmark", fullReceipts},
		{"aliyun", "ses", manyReceipts},
		{"tencent", "sendgrid", groupedReceipts},
		{"json", "mailgun", groupedReceipts},
		{"sns", "directmail", manyReceipts},
	} {
		t.Run(c.sms+"-"+c.mail, func(t *testing.T) { runReceipts(t, c.sms, c.mail, c.plan) })
	}
}
