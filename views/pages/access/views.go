package access

import (
	"context"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// nameOf is what the field for the view's name shows.
func (p Views) nameOf(v staff.SavedView) string {
	if p.Renaming == v.ID {
		return p.NewName
	}
	return v.Name
}

// errorOf says what is wrong with the name of the view being renamed, or of the
// new one (0).
func (p Views) errorOf(ctx context.Context, view int64) string {
	if p.Renaming != view {
		return ""
	}
	for _, f := range p.Errors {
		return ui.FieldText(ctx, f)
	}
	return ""
}
