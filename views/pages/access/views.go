package access

import (
	"context"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// nameOf returns the value of the field for the view's name.
func (p Views) nameOf(v staff.SavedView) string {
	if p.Renaming == v.ID {
		return p.NewName
	}
	return v.Name
}

// errorOf returns the error about the name of the view being renamed, or of the new view (0).
func (p Views) errorOf(ctx context.Context, view int64) string {
	if p.Renaming != view {
		return ""
	}
	for _, f := range p.Errors {
		return ui.FieldText(ctx, f)
	}
	return ""
}
