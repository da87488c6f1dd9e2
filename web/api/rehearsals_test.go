package api_test

import (
	"testing"
	"time"
)

func TestRehearsals(t *testing.T) { testRehearsals(t) }

// testRehearsals: a published drop is rehearsed once at a time, and not near an opening. Its report is listed.
func testRehearsals(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(3 * time.Hour)
	path := "/admin/templates/" + id + "/rehearsals"
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("rehearsals.0") != nil {
		t.Errorf("before the first: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+r.draft(3*time.Hour)+"/rehearsals", nil), 409, "rehearsal_state")
	asked := r.want(r.call(r.admin(), "POST", path, nil), 202, "")
	if asked.at("state") != "asked" || asked.at("template_id") != id || asked.at("report") != nil {
		t.Errorf("%s", asked.Body)
	}
	r.want(r.call(r.admin(), "POST", path, nil), 409, "rehearsal_running")
	r.exec(`update rehearsals set state = 'running', progress = '{"step": "reminding"}', opens_at = now()`)
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("rehearsals.0.step") != "reminding" {
		t.Errorf("while it runs: %s", a.Body)
	}
	r.exec(`update rehearsals set state = 'done', ended_at = now(), report = '{"users": 5, "late_p99": 900, "wave": 64000, "forecast": 61000, "parts": [{"kind": "door", "name": "Club", "came": 9, "got": 4}], "bottleneck": "providers"}'`)
	a := r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	for at, want := range map[string]any{"rehearsals.0.state": "done", "rehearsals.0.report.users": 5.0, "rehearsals.0.report.late_p99_ms": 900.0, "rehearsals.0.report.wave_ms": 64000.0, "rehearsals.0.report.forecast_wave_ms": 61000.0,
		"rehearsals.0.report.parts.0.name": "Club", "rehearsals.0.report.parts.0.got": 4.0, "rehearsals.0.report.bottleneck": "providers", "rehearsals.0.evening_wave_ms": 0.0, "rehearsals.0.removed": false, "rehearsals.0.step": nil} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	r.drop(30 * time.Minute)
	r.want(r.call(r.admin(), "POST", path, nil), 409, "rehearsal_near_opening")
	r.want(r.call(r.admin(), "POST", "/admin/templates/999999/rehearsals", nil), 404, "template_not_found")
}
