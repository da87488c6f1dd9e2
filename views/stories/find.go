package stories

import (
	"context"
	"io"
	"time"

	"github.com/a-h/templ"

	owned "dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	accesspages "dropbell/views/pages/access"
	pageparts "dropbell/views/pages/parts"
	searchpages "dropbell/views/pages/search"
	"dropbell/views/ui"
)

// inContext draws a page that is made of texts in the viewer's language.
func inContext(page func(context.Context) templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error { return page(ctx).Render(ctx, w) })
}

func savedViews() []staff.SavedView {
	return []staff.SavedView{{ID: 1, Owner: 1, By: "Lin Mei", List: "templates", Name: "Open now", Shared: true}, {ID: 2, Owner: 1, By: "Lin Mei", List: "templates", Name: "Evenings of Harbour Tea House that are over by now"},
		{ID: 3, Owner: 2, By: "Ada Okafor", List: "templates", Name: "Paused", Shared: true}}
}

// actionHits are the actions that the viewer may take on the drop.
func actionHits(ctx context.Context, t template.Template) (hits []searchpages.Hit) {
	for _, c := range pageparts.DropCommands(ctx, t) {
		hits = append(hits, searchpages.Hit{Icon: c.Icon, URL: c.URL, Title: ui.T(ctx, c.Label), Detail: t.Name})
	}
	return hits
}

func searches() []Story {
	found := func(masked bool) templ.Component {
		return inContext(func(ctx context.Context) templ.Component {
			u, note := person(1001), ""
			if masked {
				u, note = u.Masked(), ui.T(ctx, "find.masked")
			}
			return searchpages.Results{Search: "tea", Groups: []searchpages.Group{
				{ID: "actions", Hits: actionHits(ctx, coupon(1, "Evening tea for two", 2*time.Hour))},
				{ID: "shops", Hits: []searchpages.Hit{searchpages.ShopHit(shops()[0], true)}},
				{ID: "drops", Hits: []searchpages.Hit{searchpages.DropHit(ctx, coupon(1, "Evening tea for two", 2*time.Hour)), searchpages.DropHit(ctx, coupon(2, "Tea and moon cakes, a box for the whole family", -time.Hour))}},
				{ID: "people", Hits: []searchpages.Hit{searchpages.PersonHit(ctx, u)}, Note: note},
				{ID: "coupons", Hits: []searchpages.Hit{searchpages.CouponHit(ctx, ownedCoupon(901, owned.Unused)), searchpages.OrderHit(ctx, "TEA-2026-11-20-000000000000017", ownedCoupon(902, owned.Used))}},
			}}.Page()
		})
	}
	start := inContext(func(ctx context.Context) templ.Component {
		g := searchpages.Group{ID: "commands"}
		for _, c := range ui.Commands(ctx, "") {
			g.Hits = append(g.Hits, searchpages.CommandHit(c))
		}
		return searchpages.Results{Groups: []searchpages.Group{g}}.Page()
	})
	return []Story{
		{Name: "views/some", Page: accesspages.Views{List: "templates", Query: "state=open", LeftOut: true, Back: "/templates?state=open", Views: savedViews()}.Page()},
		{Name: "views/refused", Page: accesspages.Views{List: "campaigns", Back: "/campaigns", Views: savedViews(), Renaming: 1, NewName: "", Errors: []fault.Field{{Name: "name", Key: "rule.required"}}}.Page(), Role: staff.Viewer},
		{Name: "search/start", Page: start, Role: staff.Marketer},
		{Name: "search/found", Page: found(false)},
		{Name: "search/masked", Page: found(true), Role: staff.Viewer},
	}
}
