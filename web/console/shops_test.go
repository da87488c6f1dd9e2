package console

import (
	"net/url"
	"testing"

	"dropbell/domain/staff"
)

func TestShopPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.get("/shops").is(200).has("No shops yet")
	b.post("/shops", url.Values{"shop_number": {"0"}, "timezone": {"Moon/Base"}}).is(422).has("must be a positive number", "is required", "choose a time zone")
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Local"}}).is(422)
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Asia/Kathmandu"}}).to("/shops")
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Again"}, "timezone": {"UTC"}}).is(422).has("exists already")
	b.get("/shops/10").is(200).has(`value="Tea"`, `<option value="Asia/Kathmandu" selected>`)
	b.post("/shops/10", url.Values{"shop_number": {"77"}, "name": {"Tea house"}, "timezone": {"Asia/Kathmandu"}}).to("/shops")
	b.get("/shops").is(200).has("Tea house").hasNot("<code>77</code>")
	b.get("/audit?kind=shop&id=10").is(200).has("Tea house", ">Tea<")
	for _, name := range []string{"Tea\u202ehouse", "Tea\ahouse"} {
		b.post("/shops/10", url.Values{"name": {name}, "timezone": {"UTC"}}).is(422).has("contains characters that cannot be stored")
	}
	b.post("/shops/10", url.Values{"name": {"Tea\nhouse"}, "timezone": {"UTC"}}).is(422).has("must be one line")
	b.post("/shops/10", url.Values{"name": {" Tea house "}, "timezone": {"UTC"}}).to("/shops")
	b.get("/shops/10").is(200).has(`value="Tea house"`)
}
