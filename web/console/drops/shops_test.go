package drops_test

import (
	"net/url"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

func TestShopPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/shops").Is(200).Has("No shops yet")
	b.Post("/shops", url.Values{"shop_number": {"0"}, "timezone": {"Moon/Base"}}).Is(422).Has("must be a positive number", "Enter a name", "choose a time zone")
	b.Post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Local"}}).Is(422)
	b.Post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Asia/Kathmandu"}}).To("/shops")
	b.Post("/shops", url.Values{"shop_number": {"10"}, "name": {"Again"}, "timezone": {"UTC"}}).Is(422).Has("exists already")
	b.Get("/shops/10").Is(200).Has(`value="Tea"`, `<option value="Asia/Kathmandu" selected>`)
	b.Post("/shops/10", url.Values{"shop_number": {"77"}, "name": {"Tea house"}, "timezone": {"Asia/Kathmandu"}}).To("/shops")
	b.Get("/shops").Is(200).Has("Tea house").HasNot("<code>77</code>")
	b.Get("/audit?kind=shop&id=10").Is(200).Has("Tea house", ">Tea<")
	for _, name := range []string{"Tea\u202ehouse", "Tea\ahouse"} {
		b.Post("/shops/10", url.Values{"name": {name}, "timezone": {"UTC"}}).Is(422).Has("contains characters that cannot be stored")
	}
	b.Post("/shops/10", url.Values{"name": {"Tea\nhouse"}, "timezone": {"UTC"}}).Is(422).Has("must be one line")
	b.Post("/shops/10", url.Values{"name": {" Tea house "}, "timezone": {"UTC"}}).To("/shops")
	b.Get("/shops/10").Is(200).Has(`value="Tea house"`)
}
