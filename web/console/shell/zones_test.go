package shell

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dropbell/domain/template"
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

// TestSharedZone: days are of the zone that all shops have, or that the only shop has.
func TestSharedZone(t *testing.T) {
	sh := &Shell{DefaultZone: time.UTC}
	beijing := []template.Shop{{Number: 1, Timezone: "Asia/Shanghai"}, {Number: 2, Timezone: "Asia/Shanghai"}}
	mixed := append(beijing, template.Shop{Number: 3, Timezone: "Europe/Berlin"})
	for _, c := range []struct {
		shops []template.Shop
		only  int64
		want  string
	}{{beijing, 0, "Asia/Shanghai"}, {mixed, 0, ""}, {mixed, 3, "Europe/Berlin"}, {mixed, 9, ""}, {nil, 0, ""}} {
		got := ""
		if zone := sh.sharedZone(c.shops, c.only); zone != nil {
			got = zone.String()
		}
		if got != c.want {
			t.Errorf("%v, only %d: %q, want %q", c.shops, c.only, got, c.want)
		}
	}
}
