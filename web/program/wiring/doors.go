package wiring

import (
	"time"

	"dropbell/app"
	"dropbell/domain/door"
	"dropbell/domain/template"
)

// NewDoors makes the use cases of staff about doors.
func NewDoors(stores app.Stores, templates *template.Service, now func() time.Time) *door.Service {
	return &door.Service{Store: stores.Templates, Templates: templates, Members: stores.Doors, Segments: stores.Segments, Now: now}
}
