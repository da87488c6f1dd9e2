package delivery_test

import (
	"testing"
	"time"

	"dropbell/domain/delivery"
)

func TestWarmUp(t *testing.T) {
	for _, wrong := range []string{"2026-12-01", "2026-12-01:200", "2026-12-01:x1.5", "2026-12-01:200x1", "2026-12-01:200x0.5", "2026-12-01:0x2", "12/01:200x1.5", "2026-12-01:200x11", "2026-12-01:200xNaN"} {
		if w, err := delivery.ParseWarmUp(wrong); err == nil {
			t.Errorf("%s is %+v", wrong, w)
		}
	}
	for _, text := range []string{"2026-12-01:200x1.5", "2026-12-01: 200 × 1.5", "2026-12-01:200*1.5"} {
		w, err := delivery.ParseWarmUp(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for at, want := range map[string]int64{"2026-11-01T00:00:00Z": 200, "2026-12-01T23:59:59Z": 200, "2026-12-02T00:00:00Z": 300, "2026-12-04T07:00:00+08:00": 450, "2027-01-01T00:00:00Z": 0} {
			now, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Most(now); got != want {
				t.Errorf("%s: %d mails at %s, not %d", text, got, at, want)
			}
		}
	}
	if none, err := delivery.ParseWarmUp(""); err != nil || none.Most(time.Now()) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}
