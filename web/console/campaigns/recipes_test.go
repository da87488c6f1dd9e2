package campaigns_test

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// The recipes of a shop are cards with the settings of each, which are stored, refused with reasons, and kept from other
// shops and from viewers.
func TestRecipes(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer, 10)
	b.Get("/recipes").Is(200).Has("No shop yet")
	g.Published(10, 48*time.Hour)
	g.Shop(11)
	page := b.Get("/recipes").Is(200).Has("Expiring soon", "Reserved but did not claim", "Came too late", "Win back customers", "The week’s calendar", "Turn on", "of 1 drops")
	form := page.Form("/recipes/10/missed")
	form.Set("on", "1")
	form.Set("after_minutes", "0")
	b.Post("/recipes/10/missed", form).Is(http.StatusUnprocessableEntity).Has("must be between 1 and 1,440")
	form.Set("after_minutes", "45")
	form.Set("hold_out", "10")
	form.Set("title.zh-CN", "还有券")
	form.Set("body.zh-CN", "快来")
	for range 2 {
		b.Post("/recipes/10/missed", form).Is(http.StatusSeeOther)
	}
	stored := b.Get("/recipes?shop=10").Is(200).Has("changed this in the meantime", `value="45"`, "还有券").Form("/recipes/10/missed")
	if stored.Get("version") != "1" || stored.Get("on") != "1" {
		t.Errorf("stored: %v", stored)
	}
	back := b.Get("/recipes").Form("/recipes/10/win_back")
	back.Set("on", "1")
	b.Post("/recipes/10/win_back", back).Is(http.StatusUnprocessableEntity).Has("name the drop whose coupon is given")
	back.Set("grant_template", "1")
	b.Post("/recipes/10/win_back", back).Is(http.StatusSeeOther)
	week := b.Get("/recipes").Form("/recipes/10/calendar")
	week.Set("weekday", "5")
	week.Set("clock", "18:30")
	b.Post("/recipes/10/calendar", week).Is(http.StatusSeeOther)
	if n := g.Number(`select count(*) from recipes where shop_number = 10 and is_on`); n != 2 {
		t.Errorf("%d recipes are on", n)
	}
	if n := g.Number(`select count(*) from audit where action = 'recipe.save' and shop_number = 10`); n != 3 {
		t.Errorf("%d lines in the audit log", n)
	}
	b.Post("/recipes/10/nonsense", form).Is(http.StatusNotFound)
	b.Get("/recipes?shop=11").Is(http.StatusNotFound)
	b.Post("/recipes/11/missed", form).Is(http.StatusForbidden)
	viewer := g.As(staff.Viewer, 10)
	viewer.Get("/recipes").Is(200).Has("Reserved but did not claim").HasNot("/recipes/10/missed", "Turn on")
	viewer.Post("/recipes/10/missed", form).Is(http.StatusForbidden)
}
