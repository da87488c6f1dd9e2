package audience

import (
	"strings"
	"testing"
	"time"

	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// An order between 00:00 and 08:00 in Beijing is of the day that the customer's zone has, not of the
// day before, which UTC and a viewer in UTC have.
func TestLastOrderIsDatedInTheCustomersZone(t *testing.T) {
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	ctx := ui.With(t.Context(), &ui.Frame{Locale: languages.Match("en"), Zone: time.UTC})
	for clock, want := range map[string]string{"2026-11-29T15:59:59Z": "29 Nov 2026", "2026-11-29T16:00:00Z": "30 Nov 2026", "2026-11-29T23:34:00Z": "30 Nov 2026"} {
		at, err := time.Parse(time.RFC3339, clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastNote(ctx, at, shanghai); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", clock, got, want)
		}
	}
}
