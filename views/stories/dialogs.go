package stories

import (
	"context"
	"image"
	"image/color"

	"github.com/a-h/templ"

	"dropbell/views/i18n"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// said renders a page whose properties hold texts of the catalogue, in the viewer's language as in
// the console.
func said(page func(*i18n.Locale) templ.Component) templ.Component {
	return inContext(func(ctx context.Context) templ.Component { return page(ui.From(ctx).Locale) })
}

// asked draws a confirmation whose texts are the catalogue's.
func asked(question func(*i18n.Locale) pageparts.Confirmation) templ.Component {
	return said(func(l *i18n.Locale) templ.Component { return question(l).Page() })
}

// providerDialogs ask before a provider is disabled, enabled or deleted.
func providerDialogs() []Story {
	ask := func(step, name string, points ...string) templ.Component {
		return asked(func(l *i18n.Locale) pageparts.Confirmation {
			c := pageparts.Confirmation{Active: "providers", Crumbs: []ui.Crumb{{Label: l.T("nav.providers"), URL: "/providers"}}, ConfirmProps: ui.ConfirmProps{
				Title: l.T("provider."+step+".title", name), NoReason: true, Action: "/providers/1/" + step, Cancel: "/providers", Submit: l.T("provider." + step), Kind: "danger"}}
			if step == "enable" {
				c.Kind = "primary"
			}
			for _, key := range points {
				c.Points = append(c.Points, l.T(key))
			}
			return c
		})
	}
	return []Story{
		{Name: "providers/disable", Page: ask("disable", "Twilio, the whole world", "provider.disable.1")},
		{Name: "providers/disable-app", Page: ask("disable", "Tea House on iPhones", "provider.disable.apps", "provider.disable.unnamed")},
		{Name: "providers/enable", Page: ask("enable", "Amazon", "provider.enable.1")},
		{Name: "providers/delete", Page: ask("delete", "An-old-gateway-with-a-long-name.telecom.example.com", "provider.delete.1")},
	}
}

// webhookDialogs are the confirmations before an endpoint's secret is replaced or the endpoint is
// removed, and an endpoint that was disabled, by its failures and by hand.
func webhookDialogs() []Story {
	endpoint := webhookEndpoints()[1]
	ask := func(step, kind string) templ.Component {
		return asked(func(l *i18n.Locale) pageparts.Confirmation {
			return pageparts.Confirmation{Active: "webhooks", Crumbs: []ui.Crumb{{Label: l.T("nav.webhooks"), URL: "/webhooks"}}, ConfirmProps: ui.ConfirmProps{
				Title: l.T("hooks." + step + ".title"), Points: []string{endpoint.URL, l.T("hooks." + step + ".1")}, NoReason: true,
				Action: "/webhooks/2/" + step, Cancel: "/webhooks/2", Submit: l.T("hooks." + step), Kind: kind}}
		})
	}
	disabled := webhookPage()
	disabled.Endpoint, disabled.Secret, disabled.OldUntil = webhookEndpoints()[2], "", nil
	off := webhookForm()
	off.ID, off.Version, off.Enabled, off.Errors = 3, 2, false, nil
	off.Values = map[string]string{"url": disabled.URL}
	return []Story{
		{Name: "webhooks/rotate", Page: ask("rotate", "primary")},
		{Name: "webhooks/remove", Page: ask("remove", "danger")},
		{Name: "webhooks/disabled", Page: disabled.Page()},
		{Name: "webhooks/edit", Page: off.Page()},
	}
}

// pretendQR stands in for a QR code: its three corners, and dots between them.
func pretendQR() image.Image {
	const side, dot = 29, 8
	img := image.NewGray(image.Rect(0, 0, side*dot, side*dot))
	corner := func(x, y int) (inside, dark bool) {
		for _, c := range [][2]int{{0, 0}, {side - 7, 0}, {0, side - 7}} {
			if dx, dy := x-c[0], y-c[1]; dx >= -1 && dx <= 7 && dy >= -1 && dy <= 7 {
				ring := max(max(dx-3, 3-dx), max(dy-3, 3-dy))
				return true, ring == 3 || ring <= 1
			}
		}
		return false, false
	}
	for x := range side * dot {
		for y := range side * dot {
			col, row := x/dot, y/dot
			inside, dark := corner(col, row)
			if !inside {
				dark = (col*7+row*13+col*row*3)%5 < 2
			}
			if !dark {
				img.SetGray(x, y, color.Gray{Y: 255})
			}
		}
	}
	return img
}
