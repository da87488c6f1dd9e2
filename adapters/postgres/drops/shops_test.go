package drops_test

import (
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/template"
)

// TestDropsOfAShop: the list of a shop has its drops and no drop of another shop.
func TestDropsOfAShop(t *testing.T) {
	w := pgtest.New(t)
	tea := w.Drop(pgtest.Drop{Shop: 11, Name: "Tea"})
	w.Drop(pgtest.Drop{Shop: 12})
	list, err := w.Templates.Templates(t.Context(), template.Query{Shops: []int64{11}, Limit: 10})
	w.Must(err)
	if len(list) != 1 || list[0].ID != tea || list[0].Name != "Tea" {
		t.Errorf("the shop has %+v", list)
	}
}
