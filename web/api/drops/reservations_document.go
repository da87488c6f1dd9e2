package drops

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// sayMinutes describes the minutes of a cancellation by their allowed numbers. The API reads them
// as text, so that it can refuse a text that is no number in its own words.
func sayMinutes(doc *huma.OpenAPI) {
	const path = "/reservations/{template_id}"
	item, op := *doc.Paths[path], *doc.Paths[path].Delete
	op.Parameters = slices.Clone(op.Parameters)
	for i, p := range op.Parameters {
		if p.Name == "minutes" {
			said := *p
			said.Schema = &huma.Schema{Type: huma.TypeInteger, Enum: minutesOf(doc), Examples: []any{10}}
			op.Parameters[i] = &said
		}
	}
	item.Delete = &op
	doc.Paths[path] = &item
}

// minutesOf returns the values that minutes can have, as a reservation's.
func minutesOf(doc *huma.OpenAPI) []any {
	return doc.Components.Schemas.Map()["ReminderWish"].Properties["minutes"].Enum
}
