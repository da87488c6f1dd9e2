package api_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
)

func TestCapacity(t *testing.T) { testCapacity(t) }

// testCapacity: numbers that an autoscaler reads by a path, and why, for a key that may only read.
func testCapacity(t *testing.T) {
	r := newFixture(t, nil)
	near, far := r.drop(10*time.Minute), r.drop(20*time.Minute)
	const path = "/admin/capacity"
	numbers := func(a answer, want map[string]float64) {
		t.Helper()
		for at, n := range want {
			if got := a.at(at); got != n {
				t.Errorf("%s is %v, want %v: %s", at, got, n, a.Body)
			}
		}
	}
	a := r.want(r.call(as(r.keys[staff.ScopeRead]), "GET", path, nil), 200, "")
	numbers(a, map[string]float64{"web": 2, "worker": 2, "worker_roles.delivery": 2, "worker_roles.gate": 2})
	if a.at("reasons.0") != nil {
		t.Errorf("reasons without reservations: %s", a.Body)
	}
	r.exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 1, 300000), ($1, 1, 2, 10000), ($1, 2, 1, 200000), ($2, 12, 1, 5000000)`, near, far)
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	numbers(a, map[string]float64{"web": 3, "reasons.0.expected": 310_000, "reasons.0.per_second": 31_000, "reasons.0.cores": 1.24})
	if a.at("reasons.0.kind") != "opening" || a.at("reasons.0.id") != near || a.at("reasons.0.target") != "web" {
		t.Errorf("the nearest opening is no reason: %s", a.Body)
	}
	numbers(r.want(r.call(r.admin(), "GET", path+"?web_cores=0.5&per_reservation=2", nil), 200, ""), map[string]float64{"web": 9, "reasons.0.expected": 620_000})
	r.exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 0, 10000000)`, near)
	numbers(r.want(r.call(r.admin(), "GET", path, nil), 200, ""), map[string]float64{"worker": 4, "worker_roles.delivery": 4, "worker_roles.gate": 2})
	for _, query := range []string{"web_cores=0", "worker_cores=x", "per_reservation=-1", "cores=2"} {
		r.want(r.call(r.admin(), "GET", path+"?"+query, nil), 422, "invalid_request")
	}
	r.want(r.call(as(token(1)), "GET", path, nil), 403, "forbidden")
}
