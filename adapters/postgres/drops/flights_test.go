package drops_test

import (
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/flight"
)

// A drop is checked after its first save and each later one, a day and an hour before its opening, and every ten
// minutes while it is red. A check is made by one caller at a time.
func TestFlightChecksAreTakenWhenDue(t *testing.T) {
	f := newFixture(t)
	store := dropsdb.NewFlights(f.DB)
	drop := f.Published(30 * time.Hour)
	take := func(want int64, when string) {
		t.Helper()
		got, err := store.Take(t.Context(), time.Minute)
		if err != nil || got != want {
			t.Fatalf("%s: took %d, %v; want %d", when, got, err, want)
		}
	}
	version := drop.Version
	keep := func(level flight.Level) {
		t.Helper()
		f.Must(store.Keep(t.Context(), flight.Check{TemplateID: drop.ID, Version: version, Findings: []flight.Finding{{Point: flight.Links, Level: level, Found: "found", Do: "do"}}}))
	}
	take(drop.ID, "after the first save")
	take(0, "while another caller checks it")
	f.Exec(`update flight_checks set taken_until = now() - interval '1 second'`)
	take(drop.ID, "after a caller died")
	if _, ok, err := store.Kept(t.Context(), drop.ID); ok || err != nil {
		t.Errorf("a check is stored before the first one: %v", err)
	}
	keep(flight.Green)
	take(0, "after the check")
	version++
	f.Exec(`update templates set version = $2 where id = $1`, drop.ID, version)
	take(drop.ID, "after a change")
	keep(flight.Green)
	for _, before := range []string{"24 hours", "1 hour"} {
		f.Exec(`update flight_checks set checked_at = now() - interval '2 minutes'`)
		f.Exec(`update templates set opens_at = date_trunc('second', now() + $2::interval + interval '1 minute') where id = $1`, drop.ID, before)
		take(0, "a minute more than "+before+" before the opening")
		f.Exec(`update templates set opens_at = date_trunc('second', now() + $2::interval - interval '1 minute') where id = $1`, drop.ID, before)
		take(drop.ID, before+" before the opening")
		keep(flight.Green)
		take(0, "after the check "+before+" before the opening")
	}
	f.Exec(`update templates set opens_at = date_trunc('second', now() + interval '40 minutes') where id = $1`, drop.ID)
	f.Exec(`update flight_checks set red = 1, checked_at = now() - interval '9 minutes'`)
	take(0, "nine minutes after a red check")
	f.Exec(`update flight_checks set checked_at = now() - interval '11 minutes'`)
	take(drop.ID, "eleven minutes after a red check")
	keep(flight.Red)
	version--
	keep(flight.Green)
	if c, ok, err := store.Kept(t.Context(), drop.ID); err != nil || !ok || c.Version != version+1 || c.Level() != flight.Red || c.Findings[0].Do != "do" {
		t.Errorf("%+v %v %v, want the check of the newer version", c, ok, err)
	}
	f.Exec(`update flight_checks set version = 0`)
	f.Exec(`update templates set opens_at = date_trunc('second', now() - interval '1 second') where id = $1`, drop.ID)
	take(0, "after the opening")
}

func TestDropsAround(t *testing.T) {
	f := newFixture(t)
	store := dropsdb.NewFlights(f.DB)
	drop := f.Published(3 * time.Hour)
	f.Published(3*time.Hour + 5*time.Minute)
	f.Published(4 * time.Hour)
	f.Draft(nil)
	n, reserved, err := store.Around(t.Context(), drop, 10*time.Minute)
	if err != nil || n != 1 || reserved != 0 {
		t.Errorf("%d drops, %d users, %v", n, reserved, err)
	}
}
