package search_test

import (
	"net/http"
	"net/url"
	"testing"

	"dropbell/domain/staff"
)

// Fields offer names as the viewer may see them, and accept a name, a name with its number, or a
// number.
func TestFieldsTakeNames(t *testing.T) {
	g, _, _, coupons := sameNames(t)
	b, limited := g.As(staff.Admin), g.As(staff.Operator, 10)
	offered := func(kind, text string) string {
		return "/search/choices/" + kind + "?field=x&x=" + url.QueryEscape(text)
	}
	b.Get(offered("drops", "moon")).Is(200).Has("Moon 10 (#1)", "Moon 11 (#65)", "Moon shop 11")
	b.Get(offered("drops", "Moon 11 (#65)")).Is(200).Has("Moon 11 (#65)").HasNot("Moon 10")
	b.Get(offered("campaigns", "letter")).Is(200).Has("Moon letter 10 (#1)")
	b.Get(offered("people", "moon")).Is(200).Has("Moon Li (#1001)", "li@moon.example")
	limited.Get(offered("drops", "moon")).Is(200).Has("Moon 10 (#1)").HasNot("Moon 11")
	limited.Get(offered("people", "moon")).Is(200).Has("Moon Li (#1001)").HasNot("li@moon.example")
	b.Get(offered("nonsense", "moon")).Is(http.StatusNotFound)
	b.Get(offered("drops", "")).Is(200)

	g.Exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
		select 'cancelled', id, id, 0, 1, 2000, now(), now(), '\x00', 1 from templates`)
	for _, text := range []string{"1", "moon 10", "Moon 10 (#1)", "１"} {
		b.Get("/deliveries?template=" + url.QueryEscape(text)).Is(200).Has(`"/templates/1"`).HasNot(`"/templates/65"`)
	}
	b.Get("/deliveries?template=moon").Is(200).Has("nothing has this name")
	g.Exec(`update templates set name = 'Moon'`)
	b.Get("/deliveries?template=moon").Is(200).Has("several have this name")
	limited.Get("/deliveries?template=moon").Is(200).Has(`"/templates/1"`).HasNot(`"/templates/65"`)
	b.Get("/deliveries.csv?template=moon").Is(http.StatusUnprocessableEntity)
	g.Exec(`delete from batches`)
	for _, path := range []string{"/dead-letters?template=moon+letter", "/dead-letters?campaign=moon+letter+11", "/dead-letters?user=moon+li", "/dead-letters?user=-4", "/deliveries?user=moon+li"} {
		b.Get(path).Is(200)
	}
	b.Get("/coupons?by=user&q=moon+li").Is(200).Has("/coupons/1")
	g.Exec(`update templates set name = 'Sun' where id = 65`)
	b.Get("/coupons?by=template&q=sun").Is(200).Has(`"/coupons/65"`).HasNot(`"/coupons/1"`)
	if coupons != [2]int64{1, 65} {
		t.Error("the coupons have other numbers")
	}
	b.Get("/coupons?by=template&q=stars").Is(200)
}
