package work_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/staff"
	"dropbell/views/i18n"
	"dropbell/web/console/consoletest"
)

// stepName begins the keys of the names of steps.
const stepName = "housekeeping.step."

// The page shows each step's last end, rows left and rate, and which steps are behind; members of
// single shops do not see it. Every step has a name in each language, and every name a step.
func TestHousekeepingPage(t *testing.T) {
	g := consoletest.New(t)
	viewer := g.As(staff.Viewer)
	viewer.Get("/housekeeping").Is(200).Has("No run yet")
	all := workdb.Retention{Delivery: time.Hour, Audit: time.Hour, Coupons: time.Hour, Operations: time.Hour, Idempotency: time.Hour,
		Events: time.Hour, Jobs: time.Hour, Uploads: time.Hour, Hooks: time.Hour}
	_, err := g.Stores.Housekeeping.Clean(g.Context(), all, 0)
	g.Must(err)
	steps, err := g.Stores.Housekeeping.Steps(g.Context())
	g.Must(err)
	languages, err := i18n.Load()
	g.Must(err)
	named := map[string]bool{}
	for _, s := range steps {
		named[stepName+s.Name] = true
		for _, l := range languages.All() {
			if !l.Has(stepName + s.Name) {
				t.Errorf("%v: the step %s has no name", l, s.Name)
			}
		}
	}
	for _, key := range languages.Default().Keys() {
		if strings.HasPrefix(key, stepName) && !named[key] {
			t.Errorf("%s names no step", key)
		}
	}
	viewer.Get("/housekeeping").Is(200).Has("All steps finished in their last run.", "Reservations and growth curves", `id="step-batches"`).HasNot("Behind since")
	g.Exec(`update housekeeping_steps set behind_since = now() - interval '2 hours', remaining = 412, per_second = 20060 where step = 'reservations'`)
	viewer.Get("/housekeeping").Is(200).Has("1 step did not finish in its time", "Behind since", ">412<", "20,060")
	if len(steps) < 40 {
		t.Errorf("%d steps", len(steps))
	}
	g.As(staff.Viewer, 10).Get("/housekeeping").Is(http.StatusForbidden)
}
