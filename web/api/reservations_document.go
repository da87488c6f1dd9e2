package api

import "github.com/danielgtaylor/huma/v2"

// sayMinutes describes minutes of a cancellation as the numbers they can be,
// until the function it returns is called: they are read as text, so that the
// API says in its own words when they are no number.
func sayMinutes(doc *huma.OpenAPI) (undo func()) {
	undo = func() {}
	for _, p := range doc.Paths["/reservations/{template_id}"].Delete.Parameters {
		if p.Name == "minutes" {
			text := p.Schema
			p.Schema = &huma.Schema{Type: huma.TypeInteger, Enum: minutesOf(doc), Examples: []any{10}}
			undo = func() { p.Schema = text }
		}
	}
	return undo
}

// minutesOf returns the values that minutes can have, as a reservation's.
func minutesOf(doc *huma.OpenAPI) []any {
	return doc.Components.Schemas.Map()["ReminderWish"].Properties["minutes"].Enum
}
