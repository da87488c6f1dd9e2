package pipeline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestADigestLogsOneLineASecond: a digest logs one line a second with the number of requests,
// however many there are, and no line while there are no requests.
func TestADigestLogsOneLineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := digest{log: slog.New(slog.NewTextHandler(&out, nil)), message: "dependency unavailable"}
		lines := func() []string {
			synctest.Wait()
			d.mu.Lock() // lines are written under it
			defer d.mu.Unlock()
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		d.warn(t.Context(), "request_id", "first")
		if l := lines(); len(l) != 1 || !strings.Contains(l[0], "request_id=first requests=1") {
			t.Errorf("at once: %q", l)
		}
		time.Sleep(time.Millisecond / 2) // so that no request comes at the instant of a line
		for range 2500 {                 // 2.5 s, a thousand a second
			d.warn(t.Context(), "request_id", "later")
			time.Sleep(time.Millisecond)
		}
		if l := lines(); len(l) != 3 || !strings.Contains(l[1], "request_id=later requests=1000") || !strings.Contains(l[2], "requests=1000") {
			t.Errorf("after 2.5 s: %q", l)
		}
		time.Sleep(time.Hour)
		if l := lines(); len(l) != 4 || !strings.Contains(l[3], "requests=500") {
			t.Errorf("afterwards: %q", l)
		}
		d.warn(t.Context(), "request_id", "last")
		if l := lines(); len(l) != 5 || !strings.Contains(l[4], "request_id=last requests=1") {
			t.Errorf("an hour later: %q", l)
		}
		time.Sleep(2 * time.Second)
	})
}
