package pg

import "testing"

// TestRowColumns: columns and places of a row have the same fields in the same order.
func TestRowColumns(t *testing.T) {
	type fields struct {
		ID         int64
		TemplateID int64
		UsedAt     string
	}
	if got := RowColumns[fields]("c"); got != "c.id, c.template_id, c.used_at" {
		t.Error(got)
	}
	var row fields
	want := []any{&row.ID, &row.TemplateID, &row.UsedAt}
	for i, place := range RowPlaces(&row) {
		if place != want[i] {
			t.Errorf("place %d is %v, want %v", i, place, want[i])
		}
	}
}
