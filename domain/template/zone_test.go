package template_test

import (
	"testing"

	"dropbell/domain/template"
)

// TestZone: a shop whose time zone is missing or unknown has UTC.
func TestZone(t *testing.T) {
	for name, want := range map[string]string{"Asia/Shanghai": "Asia/Shanghai", "": "UTC", "Mars/Olympus": "UTC"} {
		if got := (template.Template{ShopTimezone: name}).Zone().String(); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
