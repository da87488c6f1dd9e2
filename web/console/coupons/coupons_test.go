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

func TestCouponsAreFound(t *testing.T) {
	g := consoletest.New(t)
	d, other := g.Published(10, time.Hour), g.Published(11, time.Hour)
	id, hidden := g.Gives(d, 1001), g.Gives(other, 1001)
	g.Locks(id, "A-1")
	b := g.As(staff.Viewer, 10)
	b.Get("/coupons").Is(200).Has("Find a coupon")
	b.Get("/coupons?by=user&q=1001").Is(200).Has(d.Name, "A-1", "Locked").HasNot(fmt.Sprintf("/coupons/%d\"", hidden))
	b.Get("/coupons?by=order&q=A-1").Is(200).Has(fmt.Sprintf("/coupons/%d\"", id))
	b.Get("/coupons?by=user&q=1001&state=unused").Is(200).Has("No such coupon")
	for _, odd := range []string{"by=user&q=1001&state=nonsense", "by=nonsense&q=1001"} {
		b.Get("/coupons?"+odd).Is(200).Has("The filter cannot be read", "choose one").HasNot(d.Name, "/coupons.csv")
		b.Get("/coupons.csv?" + odd).Is(422)
	}
	b.Get("/coupons?q=" + url.QueryEscape("１００１")).Is(200).Has(d.Name)
	b.Get("/coupons?by=user&q=abc").Is(200).Has("The search is not valid")
	b.Get("/coupons?by=order&q=" + url.QueryEscape("a b")).Is(200).Has("The search is not valid")
	b.Get("/coupons?by=template&q=99999999999999999999").Is(200).Has("The search is not valid")
	b.Get("/coupons?by=user&q=1001&before=nonsense").Is(200).Has("A-1")
	b.Get(fmt.Sprintf("/coupons/%d", id)).Is(200).Has("History", "Locked", "Till").HasNot("Release")
	b.Get(fmt.Sprintf("/coupons/%d", hidden)).Is(403)
	b.Get("/coupons/404404").Is(404)
	b.Get("/coupons/locks").Is(200).Has("A-1")
	b.Get("/coupons/locks?after=1-1").Is(200).Has("A-1")
	b.Get("/coupons/locks?after=9223372036854775807-9").Is(200)
	b.Get("/notices").Is(200).Has("No notices in these days")
	b.Get("/notices?month=nonsense").Is(200)
	g.Exec(`insert into notice_days (day, template_id, planned, sent) values ($1, $2, 7, 3)`, g.Now(), d.ID)
	b.Get("/notices").Is(200).Has("Day by day", "7 notices", "Today", "Waiting")
	b.Get("/notices?month=2001-02").Is(200).Has("February 2001", "No notices in these days", "month=2001-03", "month=2001-01")
}

func TestLockIsReleasedByOperator(t *testing.T) {
	g := consoletest.New(t)
	id := g.Gives(g.Published(10, time.Hour), 1001)
	g.Locks(id, "A-1")
	page := fmt.Sprintf("/coupons/%d", id)
	g.As(staff.Marketer).Get(page + "/release?order=A-1").Is(403)
	g.As(staff.Marketer).Post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"stuck"}}).Is(403)
	b := g.As(staff.Operator)
	b.Get(page + "/release?order=A-1").Is(200).Has("Release the lock of order A-1?")
	b.Post(page+"/release", url.Values{"order": {"A-1"}}).Is(422).Has("say why")
	b.Post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"payment is gone"}}).To(page)
	b.Get(page).Is(200).Has("The lock has been released.", "Released", "payment is gone", "Unused")
	b.Post(page+"/release", url.Values{"order": {"A-2"}, "reason": {"x"}}).Is(http.StatusConflict)
	b.Get(page + "/revoke").Is(200).Has("Revoke this coupon?")
	b.Post(page+"/revoke", url.Values{"reason": {"mistake"}}).To(page)
	b.Get(page).Is(200).Has("The coupon has been revoked.", "Revoked").HasNot("Revoke</")
	b.Get("/audit").Is(200).Has("payment is gone", "mistake")
}

// A dialog of an impossible step has nothing to submit.
func TestImpossibleCouponSteps(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	id, used, late := g.Gives(d, 1001), g.Gives(d, 1002), g.Gives(d, 1003)
	page := fmt.Sprintf("/coupons/%d", id)
	b, dialog := g.As(staff.Admin), g.As(staff.Admin).Htmx()
	refused := func(at string, why ...string) {
		t.Helper()
		dialog.Header.Set("Accept-Language", b.Header.Get("Accept-Language"))
		b.Get(at).Is(http.StatusConflict).Has(why...).HasNot(`name="reason"`)
		dialog.Get(at).Is(http.StatusConflict).Has(why...).HasNot("<html", "<button")
	}
	refused(page+"/release", "There is no lock to release", "No order holds this coupon.")
	refused(page+"/release?order=A-1", "No order holds this coupon.")
	g.Locks(id, "A-1")
	refused(page+"/release", "No order is given.")
	refused(page+"/release?order=A-2", "Order A-2 does not hold this coupon")
	refused(page+"/revoke", "This coupon cannot be revoked", "An order holds it. Release its lock first.")
	b.Post(page+"/revoke", url.Values{"reason": {"x"}}).Is(http.StatusConflict).Has("An order holds it.")
	b.Get(page + "/release?order=A-1").Is(200)
	g.Locks(used, "A-3")
	_, err := (&coupon.Service{Store: pgtest.Payments(t, g.DB)}).Confirm(t.Context(), "key:1 Till", used, "A-3")
	g.Must(err)
	refused(fmt.Sprintf("/coupons/%d/release?order=A-3", used), "Order A-3 has used this coupon.")
	refused(fmt.Sprintf("/coupons/%d/revoke", used), "It has been used.")
	g.Exec(`update coupons set issued_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where id = $1`, late)
	refused(fmt.Sprintf("/coupons/%d/revoke", late), "It has expired")
	b.Post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"x"}}).To(page)
	b.Post(page+"/revoke", url.Values{"reason": {"x"}}).To(page)
	refused(page+"/revoke", "It was revoked before.")
	b.Header.Set("Accept-Language", "zh-CN")
	refused(page+"/revoke", "这张券不能作废", "它此前已作废。")
}

func TestLockIsReleasedInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	id := g.Gives(g.Published(10, time.Hour), 1001)
	g.Locks(id, "A-1")
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + "/coupons")
	b.Fill("#q", "1001")
	b.Sees("#results", "A-1", "Locked")
	b.Accessible("coupons")
	b.Open(g.Server.URL + "/coupons/locks")
	b.Press("main", "Release")
	b.Sees("#dialog", "Release the lock of order A-1?")
	b.Fill("#dialog [name=reason]", "payment is gone")
	b.Press("#dialog", "Release")
	b.Sees("main", "The lock has been released.", "payment is gone", "Unused")
	b.Accessible("a coupon")
}
