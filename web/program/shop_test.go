package program

import "testing"

// TestForServers: pages of shops may call the operations of end users only.
func TestForServers(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/api/v1/claims": false, "/api/v1/coupons": false, "/api/v1/coupons/7": false, "/api/v1/reservations/7/explain": false, "/api/v1/inbox/stream": false,
		"/api/v1/coupons/7/pass": false, "/api/v1/coupons/7/pass.pkpass": false, "/api/v1/coupons/7/lock": true, "/api/v1/coupons/7/confirm": true, "/api/v1/coupons/7/release": true, "/api/v1/coupons/7/refund": true,
		"/api/v1/admin/templates": true,
	} {
		if got := isForServers(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
