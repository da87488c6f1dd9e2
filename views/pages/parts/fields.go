package parts

import (
	"context"

	"dropbell/views/ui"
)

// FieldLabel is the label of a field of a template, by its wire name.
func FieldLabel(ctx context.Context, name string) string {
	if key := "field." + name; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return name
}

// OrDash returns s, or a dash if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
