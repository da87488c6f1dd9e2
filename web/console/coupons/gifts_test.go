package coupons_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Without scripts: a coupon is given to one customer, once for a form, taken back, and given again.
func TestGiftPages(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	g.Exec(`update templates set stock = 5 where id = $1`, d.ID)
	b := g.As(staff.Marketer)
	b.Get("/users/1001").Is(200).Has("/give?user=1001")
	b.Get("/coupons").Is(200).Has("/give")
	b.Get("/give?user=1001").Is(200).Has("Give a coupon", `value="1001"`, "request_key", "Give it even if the customer has reached the limit")
	b.Post("/give", url.Values{"user": {"1001"}}).Is(422).Has("say why", "aria-invalid")
	b.Post("/give", url.Values{"user": {"1001"}, "template": {"999999"}, "reason": {"x"}}).Is(422).Has("nothing has this name")
	form := func(key, user string, more ...string) url.Values {
		v := url.Values{"user": {user}, "template": {fmt.Sprintf("%s (#%d)", d.Name, d.ID)}, "reason": {"the parcel was late"}, "request_key": {key}}
		for _, box := range more {
			v.Set(box, "1")
		}
		return v
	}
	job := b.Post("/give", form("a", "1001")).Is(303).Header.Get("Location")
	b.Get(job).Is(200).Has("The coupons are being given.", "the parcel was late")
	g.WorkGrants()
	page := b.Post("/give", form("a", "1001")).Is(303).Header.Get("Location") // sent twice
	if n := g.Number(`select count(*) from coupons where user_id = 1001`); n != 1 {
		t.Fatalf("%d coupons", n)
	}
	b.Get(page).Is(200).Has("The customer has the coupon.", page+"/undo", page+"/reissue").HasNot(page + "/refund")
	b.Post("/give", form("b", "1002"))
	g.WorkGrants()
	b.Post("/give", form("b", "1002")).Is(http.StatusConflict).Has("No coupon was given", "as many coupons of this drop as one customer may have").HasNot(`value="b"`)
	b.Post("/give", form("c", "1002", "over_limit"))
	g.WorkGrants()
	b.Post("/give", form("c", "1002", "over_limit")).Is(303)
	if n := g.Number(`select count(*) from coupons where user_id = 1002`); n != 2 {
		t.Fatalf("%d coupons", n)
	}
	b.Get("/audit?kind=user&id=1001").Is(200).Has("gave a coupon to")

	// Take it back, then it cannot be taken back again, and can be given again once.
	b.Get(page+"/undo").Is(200).Has("returns to the stock", "expires are no longer sent")
	b.Post(page+"/undo", nil).Is(422).Has("say why")
	b.Post(page+"/undo", url.Values{"reason": {"the wrong customer"}}).To(page)
	b.Get(page).Is(200).Has("The coupon was taken back", "Returned to stock").HasNot(page + "/undo")
	b.Get(page + "/undo").Is(http.StatusConflict).Has("This is not possible now")
	b.Get(page+"/reissue").Is(200).Has("once", "limit per customer is not checked")
	again := url.Values{"reason": {"it was theirs"}, "request_key": {"d"}}
	b.Post(page+"/reissue", again).Is(303)
	g.WorkGrants()
	other := g.As(staff.Marketer).Post(page+"/reissue", url.Values{"reason": {"me too"}, "request_key": {"e"}}).Is(303).Header.Get("Location")
	g.WorkGrants()
	second := b.Post(page+"/reissue", again).Is(303).Header.Get("Location")
	b.Get(second).Is(200).Has("Unused")
	b.Get(page).Is(200).Has("Given again as", second).HasNot(page + "/reissue")
	b.Get(page + "/reissue").Is(http.StatusConflict).Has("was given again before")
	if n := g.Number(`select count(*) from coupons where user_id = 1001`); n != 2 {
		t.Errorf("%d coupons after two requests, %s", n, other)
	}

	viewer := g.As(staff.Viewer)
	viewer.Get(page).Is(200).HasNot(page + "/reissue")
	viewer.Get("/users/1001").Is(200).HasNot("/give")
	viewer.Post(page+"/undo", again).Is(http.StatusForbidden)
	viewer.Post("/give", form("f", "1003")).Is(http.StatusForbidden)
	elsewhere := g.As(staff.Marketer, 11)
	elsewhere.Post("/give", form("g", "1003")).Is(422)
	elsewhere.Post(page+"/reissue", again).Is(http.StatusForbidden)
}

// A used coupon is refunded with a reason, once, from its page and from its owner's.
func TestRefundPage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	id := g.Gives(d, 7)
	page := fmt.Sprintf("/coupons/%d", id)
	b := g.As(staff.Marketer)
	b.Get(page + "/refund").Is(http.StatusConflict).Has("No order has used this coupon")
	g.Locks(id, "A-7")
	_, err := (&coupon.Service{Store: pgtest.Payments(t, g.DB), LockFor: time.Hour}).Confirm(g.Context(), "key:1 Till", id, "A-7")
	g.Must(err)
	b.Get("/users/7").Is(200).Has(page + "/refund")
	b.Get(page + "/reissue").Is(http.StatusConflict).Has("Refund it instead")
	b.Get(page+"/refund").Is(200).Has("Order A-7 no longer uses this coupon", "You can undo it")
	b.Post(page+"/refund", url.Values{"order": {"A-7"}}).Is(422).Has("say why")
	sure := url.Values{"order": {"A-7"}, "reason": {"the shoes were sent back"}}
	b.Post(page+"/refund", sure).To(page)
	b.Get(page).Is(200).Has("Unused", "Refunded", "the shoes were sent back")
	b.Post(page+"/refund", sure).To(page)
	if n := g.Number(`select count(*) from coupon_operations where step = 'refund'`); n != 1 {
		t.Errorf("%d refunds", n)
	}
	b.Get(page).Is(200).Has(page + "/unrefund")
	b.Get(page + "/unrefund").Is(200).Has("uses this coupon again")
	b.Post(page+"/unrefund", nil).Is(422).Has("say why")
	b.Post(page+"/unrefund", url.Values{"reason": {"they keep them"}}).To(page)
	b.Get(page).Is(200).Has("The order uses the coupon again.", "Refund undone", "Done, then undone", page+"/refund").HasNot(page + "/unrefund")
	b.Post(page+"/unrefund", url.Values{"reason": {"sent twice"}}).Is(http.StatusConflict)
	b.Get(fmt.Sprintf("/audit?kind=coupon&id=%d", id)).Is(200).Has("refunded the use of", "undid the refund of")
	g.As(staff.Viewer).Post(page+"/refund", sure).Is(http.StatusForbidden)
}

// The cursor is in the first field of a form, and in the first wrong field after a refusal.
func TestFocusInForms(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	in := func(field string) {
		t.Helper()
		if got := consoletest.Evaluate[string](b, `document.activeElement.name || document.activeElement.tagName`); got != field {
			t.Errorf("the cursor is in %s, not in %s", got, field)
		}
	}
	b.Open(g.Server.URL + "/give")
	b.Sees("main", "Give a coupon")
	in("user")
	b.Accessible("the form of a gift")
	b.Fill("#f-user", "1001")
	b.Press("main", "Give the coupon")
	b.Sees("main", "say why")
	in("template")
	b.Open(g.Server.URL + "/segments/lists/new")
	b.Sees("main", "Name")
	in("name")
}
