package reminder_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/reminder"
	"dropbell/musttest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestReceipt(t *testing.T) {
	fired := noon.Add(3 * time.Millisecond)
	head := reminder.ReceiptHead{Slot: reminder.Slot{ID: 7, TemplateID: 42, Slot: 2, OpensAt: noon.Add(10 * time.Minute), DueAt: noon,
		State: reminder.Sending, FiredAt: &fired}}
	head.Kept[delivery.App] = delivery.Counts{Reserved: 3, Sent: 2, InFlight: 1}
	head.Kept[delivery.SMS] = delivery.Counts{Reserved: 4, Skipped: 1, Expired: 1, Dead: 2}
	var text strings.Builder
	w := reminder.NewReceiptWriter(&text)
	check := func(err error) {
		t.Helper()
		musttest.OK(t, err)
	}
	check(w.Head(head))
	for _, r := range []reminder.ReceiptRow{
		{UserID: 1, Channel: delivery.App, Outcome: delivery.Sent, At: noon.Add(time.Second), Reported: feedback.Delivered},
		{UserID: 2, Channel: delivery.App, Outcome: delivery.Recovered, Reason: delivery.ReasonProvider, Attempts: 2, At: noon.Add(1500 * time.Millisecond), Reported: feedback.Complained},
		{UserID: 3, Channel: delivery.App, Outcome: delivery.InFlight},
		{UserID: 4, Channel: delivery.SMS, Outcome: delivery.Skipped, Reason: delivery.ReasonOptedOut, At: noon.In(time.FixedZone("", 3600))},
		{UserID: 5, Channel: delivery.SMS, Outcome: delivery.Expired, Reason: delivery.ReasonDeadline, At: noon},
		{UserID: 6, Channel: delivery.SMS, Outcome: delivery.Dead, Reason: delivery.ReasonRefused, Attempts: 1, At: noon},
		{UserID: 9007199254740993, Channel: delivery.SMS, Outcome: delivery.Discarded, Reason: delivery.ReasonOperator, Attempts: 8, At: noon},
	} {
		check(w.Row(r))
	}
	check(w.Close())
	body := `# template,42
# slot,2
# minutes_before_opening,10
# round,0
# opens_at,2026-11-20T12:10:00Z
# planned_due,2026-11-20T12:00:00Z
# fired_at,2026-11-20T12:00:00.003Z
# cut_at,
# finished_at,
# state,sending
# stop_reason,
# balance,app,reserved=3,sent=2,skipped=0,expired=0,dead=0,in_flight=1
# balance,sms,reserved=4,sent=0,skipped=1,expired=1,dead=2,in_flight=0
user_id,channel,outcome,reason,attempts,recorded_at,reported
1,app,sent,,0,2026-11-20T12:00:01Z,delivered
2,app,recovered,provider_error,2,2026-11-20T12:00:01.5Z,complained
3,app,in_flight,,0,,
4,sms,skipped,opted_out,0,2026-11-20T12:00:00Z,
5,sms,expired,deadline,0,2026-11-20T12:00:00Z,
6,sms,dead,refused_by_provider,1,2026-11-20T12:00:00Z,
9007199254740993,sms,discarded,discarded_by_operator,8,2026-11-20T12:00:00Z,
# counted,app,reserved=3,sent=2,skipped=0,expired=0,dead=0,in_flight=1
# counted,sms,reserved=4,sent=0,skipped=1,expired=1,dead=2,in_flight=0
# reported,app,delivered=2,bounced=0,complained=1
`
	if want := body + fmt.Sprintf("# sha256,%x\n", sha256.Sum256([]byte(body))); text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if w.Counted() != head.Kept {
		t.Errorf("counted %+v", w.Counted())
	}
}

// full is a disk with room for a few bytes.
type full struct{ room int }

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestReceiptSaysWhenItCannotBeWritten(t *testing.T) {
	write := func(w *reminder.ReceiptWriter) error {
		var head reminder.ReceiptHead
		head.Kept[delivery.App].Reserved = 1
		return errors.Join(w.Head(head), w.Row(reminder.ReceiptRow{UserID: 1, Outcome: delivery.Sent, At: noon}), w.Close())
	}
	var text strings.Builder
	musttest.OK(t, write(reminder.NewReceiptWriter(&text)))
	for room := range text.Len() {
		if err := write(reminder.NewReceiptWriter(&full{room})); !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
	}
}
