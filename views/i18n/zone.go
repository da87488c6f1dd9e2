package i18n

import (
	"time"

	"dropbell/domain/wording"
)

// Zone returns the usual name of t's zone; see [wording.Zone].
func (l *Locale) Zone(t time.Time, zone *time.Location) string {
	return wording.Zone(t.In(zone), l.Tag)
}
