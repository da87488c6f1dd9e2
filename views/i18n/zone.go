package i18n

import (
	"time"

	"dropbell/domain/wording"
)

// Zone names t's zone as people call it; see [wording.Zone].
func (l *Locale) Zone(t time.Time, zone *time.Location) string {
	return wording.Zone(t.In(zone), l.Tag)
}
