package shell

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestZoneOfTheBrowser: the cookie decides the zone, and what is no name of a zone is ignored.
func TestZoneOfTheBrowser(t *testing.T) {
	sh := &Shell{DefaultZone: time.UTC}
	for name, want := range map[string]string{"": "UTC", "Local": "UTC", "Nowhere/City": "UTC", "../etc/passwd": "UTC", "Asia/Shanghai": "Asia/Shanghai"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: ZoneCookie, Value: name})
		if got := sh.browserZone(r); got.String() != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		if again := sh.browserZone(r); again != sh.browserZone(r) {
			t.Errorf("%q: two zones, so two drawings of one part", name)
		}
	}
}
