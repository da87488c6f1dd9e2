package parts

import (
	"context"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// KeyTimeTwice marks a typed time that happens twice in the shop's zone.
const KeyTimeTwice = "rule.time_twice"

// TimeHappensTwice reports whether the named time was refused for that.
func TimeHappensTwice(errs []fault.Field, name string) bool {
	for _, e := range errs {
		if e.Name == name && e.Key == KeyTimeTwice {
			return true
		}
	}
	return false
}

// InstantText writes an instant with its weekday and the name of the zone.
func InstantText(ctx context.Context, at time.Time, zone *time.Location) string {
	l := ui.From(ctx).Locale
	return l.DateTime(at, zone) + " " + l.Zone(at, zone)
}

// ZoneName returns the present name of a zone that is stored by its IANA name.
func ZoneName(ctx context.Context, id string) string {
	now := ui.From(ctx)
	return now.Locale.Zone(now.Now, template.Template{ShopTimezone: id}.Zone())
}
