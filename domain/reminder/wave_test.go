package reminder_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// The sum of a wave's columns is the number of sent messages, whatever the spans.
func TestWaveAddsUp(t *testing.T) {
	start := time.Date(2026, 11, 20, 11, 30, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var want [delivery.Channels]int64
		var spans []reminder.Span
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			from := start.Add(time.Duration(rapid.IntRange(0, 3_600_000).Draw(t, "from")) * time.Millisecond)
			s := reminder.Span{Channel: delivery.Channel(rapid.IntRange(0, int(delivery.Channels)-1).Draw(t, "channel")), From: from,
				To: from.Add(time.Duration(rapid.IntRange(-1000, 600_000).Draw(t, "took")) * time.Millisecond), Sent: rapid.Int64Range(-1, 5000).Draw(t, "sent")}
			spans = append(spans, s)
			want[s.Channel] += max(0, s.Sent)
		}
		w := reminder.WaveOf(spans)
		if got := w.Totals(); got != want {
			t.Fatalf("%+v sums to %v, want %v", spans, got, want)
		}
		if len(w.Sent) > reminder.WaveSteps {
			t.Fatalf("%d columns", len(w.Sent))
		}
	})
}

func TestWave(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Date(2026, 11, 20, 11, 30, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
	}
	if w := reminder.WaveOf(nil); len(w.Sent) != 0 || !w.From.IsZero() {
		t.Errorf("of nothing: %+v", w)
	}
	w := reminder.WaveOf([]reminder.Span{{Channel: delivery.App, From: at(0.2), To: at(0.9), Sent: 1000},
		{Channel: delivery.Email, From: at(1), To: at(4), Sent: 10}, {Channel: delivery.Email, From: at(2), To: at(2), Sent: 5}})
	if !w.From.Equal(at(0)) || w.Step != time.Second || len(w.Sent) != 4 {
		t.Fatalf("%+v", w)
	}
	for i, want := range [][2]int64{{1000, 0}, {0, 4}, {0, 8}, {0, 3}} {
		if got := w.Sent[i]; got[delivery.App] != want[0] || got[delivery.Email] != want[1] {
			t.Errorf("second %d: %v, want %v", i, got, want)
		}
	}
	long := reminder.WaveOf([]reminder.Span{{Channel: delivery.SMS, From: at(0), To: at(600), Sent: 6000}})
	if long.Step != 5*time.Second || len(long.Sent) != reminder.WaveSteps || long.Sent[7][delivery.SMS] != 50 {
		t.Errorf("ten minutes: %d columns of %s, %v", len(long.Sent), long.Step, long.Sent[7])
	}
}

// The first minute and what came later are together the messages of the spans. The minute begins
// when the slot was due, or with the first message if that is not within the minute.
func TestFirstMinuteOfAWave(t *testing.T) {
	due := time.Date(2026, 11, 20, 11, 30, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var spans []reminder.Span
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			from := due.Add(time.Duration(rapid.IntRange(-100_000, 400_000).Draw(t, "from")) * time.Millisecond)
			spans = append(spans, reminder.Span{Channel: delivery.Channel(rapid.IntRange(0, int(delivery.Channels)-1).Draw(t, "channel")), From: from,
				To: from.Add(time.Duration(rapid.IntRange(-1000, 200_000).Draw(t, "took")) * time.Millisecond), Sent: rapid.Int64Range(-1, 5000).Draw(t, "sent")})
		}
		minute, later := reminder.MinuteOf(spans, due)
		sum := minute.Totals()
		for c := range sum {
			sum[c] += later[c]
		}
		if want := reminder.WaveOf(spans).Totals(); sum != want {
			t.Fatalf("%+v sums to %v, want %v", spans, sum, want)
		}
		if !minute.From.IsZero() && (len(minute.Sent) != reminder.MinuteSteps || minute.Step != time.Second) {
			t.Fatalf("%d columns of %s", len(minute.Sent), minute.Step)
		}
	})
	at := func(s int) time.Time { return due.Add(time.Duration(s) * time.Second) }
	spans := []reminder.Span{{Channel: delivery.Email, From: at(2), To: at(3), Sent: 10}, {Channel: delivery.Email, From: at(59), To: at(61), Sent: 4}}
	minute, later := reminder.MinuteOf(spans, due)
	if !minute.From.Equal(due) || minute.Sent[2][delivery.Email] != 10 || minute.Sent[59][delivery.Email] != 2 || later[delivery.Email] != 2 {
		t.Errorf("%v, later %v", minute, later)
	}
	if minute, _ := reminder.MinuteOf(spans, due.Add(-time.Hour)); !minute.From.Equal(at(2)) {
		t.Errorf("an hour late, the minute begins at %s", minute.From)
	}
	if minute, _ := reminder.MinuteOf(spans, at(30)); !minute.From.Equal(at(2)) {
		t.Errorf("messages before the slot was due: the minute begins at %s", minute.From)
	}
}
