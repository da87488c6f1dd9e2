package console

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// gives issues a coupon of the template to the user and returns its id.
func (g *rig) gives(t template.Template, userID int64) int64 {
	g.Helper()
	var id int64
	g.must(g.sql.QueryRow(g.Context(), `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, $2, (random() * 1e15)::bigint + 1, 'claim', now(), now() + interval '1 hour') returning id`, t.ID, userID).Scan(&id))
	return id
}

func (g *rig) locks(id int64, order string) {
	g.Helper()
	s := &coupon.Service{Store: postgres.NewCouponSteps(g.db), LockFor: time.Hour}
	_, err := s.Lock(g.Context(), "key:1 Till", id, coupon.Order{ID: order, Amount: 50000})
	g.must(err)
}

func TestCouponsAreFound(t *testing.T) {
	g := newRig(t)
	d, other := g.published(10, time.Hour), g.published(11, time.Hour)
	id, hidden := g.gives(d, 1001), g.gives(other, 1001)
	g.locks(id, "A-1")
	b := g.as(staff.Viewer, 10)
	b.get("/coupons").is(200).has("Find a coupon")
	b.get("/coupons?by=user&q=1001").is(200).has(d.Name, "A-1", "Locked").hasNot(fmt.Sprintf("/coupons/%d\"", hidden))
	b.get("/coupons?by=order&q=A-1").is(200).has(fmt.Sprintf("/coupons/%d\"", id))
	b.get("/coupons?by=user&q=1001&state=unused").is(200).has("No such coupon")
	for _, odd := range []string{"by=user&q=1001&state=nonsense", "by=nonsense&q=1001"} {
		b.get("/coupons?"+odd).is(200).has("The filter cannot be read", "choose one").hasNot(d.Name, "/coupons.csv")
		b.get("/coupons.csv?" + odd).is(422)
	}
	b.get("/coupons?q=" + url.QueryEscape("１００１")).is(200).has(d.Name)
	b.get("/coupons?by=user&q=abc").is(200).has("Nothing can be called that")
	b.get("/coupons?by=order&q=" + url.QueryEscape("a b")).is(200).has("Nothing can be called that")
	b.get("/coupons?by=template&q=99999999999999999999").is(200).has("Nothing can be called that")
	b.get("/coupons?by=user&q=1001&before=nonsense").is(200).has("A-1")
	b.get(fmt.Sprintf("/coupons/%d", id)).is(200).has("What happened", "Locked", "Till").hasNot("Release")
	b.get(fmt.Sprintf("/coupons/%d", hidden)).is(403)
	b.get("/coupons/404404").is(404)
	b.get("/coupons/locks").is(200).has("A-1")
	b.get("/coupons/locks?after=1-1").is(200).has("A-1")
	b.get("/coupons/locks?after=9223372036854775807-9").is(200)
	b.get("/notices").is(200).has("No notices in these days")
	b.get("/notices?month=nonsense").is(200)
	g.exec(`insert into notice_days (day, template_id, planned, sent) values ($1, $2, 7, 3)`, g.now(), d.ID)
	b.get("/notices").is(200).has("Day by day", "7 notices", "Today", "Waiting")
	b.get("/notices?month=2001-02").is(200).has("February 2001", "No notices in these days", "month=2001-03", "month=2001-01")
}

func TestLockIsReleasedByOperator(t *testing.T) {
	g := newRig(t)
	id := g.gives(g.published(10, time.Hour), 1001)
	g.locks(id, "A-1")
	page := fmt.Sprintf("/coupons/%d", id)
	g.as(staff.Marketer).get(page + "/release?order=A-1").is(403)
	g.as(staff.Marketer).post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"stuck"}}).is(403)
	b := g.as(staff.Operator)
	b.get(page + "/release?order=A-1").is(200).has("Release the lock of order A-1?")
	b.post(page+"/release", url.Values{"order": {"A-1"}}).is(422).has("say why")
	b.post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"payment is gone"}}).to(page)
	b.get(page).is(200).has("The lock has been released.", "Released", "payment is gone", "Unused")
	b.post(page+"/release", url.Values{"order": {"A-2"}, "reason": {"x"}}).is(http.StatusConflict)
	b.get(page + "/revoke").is(200).has("Revoke this coupon?")
	b.post(page+"/revoke", url.Values{"reason": {"mistake"}}).to(page)
	b.get(page).is(200).has("The coupon has been revoked.", "Revoked").hasNot("Revoke</")
	b.get("/audit").is(200).has("payment is gone", "mistake")
}

// A dialog that was kept, or typed, asks nothing that cannot be done.
func TestImpossibleCouponSteps(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	id, used, late := g.gives(d, 1001), g.gives(d, 1002), g.gives(d, 1003)
	page := fmt.Sprintf("/coupons/%d", id)
	b, dialog := g.as(staff.Admin), g.as(staff.Admin).htmx()
	refused := func(at string, why ...string) {
		t.Helper()
		dialog.header.Set("Accept-Language", b.header.Get("Accept-Language"))
		b.get(at).is(http.StatusConflict).has(why...).hasNot(`name="reason"`)
		dialog.get(at).is(http.StatusConflict).has(why...).hasNot("<html", "<button")
	}
	refused(page+"/release", "There is no lock to release", "No order holds this coupon.")
	refused(page+"/release?order=A-1", "No order holds this coupon.")
	g.locks(id, "A-1")
	refused(page+"/release", "No order is given.")
	refused(page+"/release?order=A-2", "Order A-2 does not hold this coupon")
	refused(page+"/revoke", "This coupon cannot be revoked", "An order holds it. Release its lock first.")
	b.post(page+"/revoke", url.Values{"reason": {"x"}}).is(http.StatusConflict).has("An order holds it.")
	b.get(page + "/release?order=A-1").is(200)
	g.locks(used, "A-3")
	_, err := (&coupon.Service{Store: postgres.NewCouponSteps(g.db)}).Confirm(t.Context(), "key:1 Till", used, "A-3")
	g.must(err)
	refused(fmt.Sprintf("/coupons/%d/release?order=A-3", used), "Order A-3 has used this coupon.")
	refused(fmt.Sprintf("/coupons/%d/revoke", used), "It has been used.")
	g.exec(`update coupons set issued_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' where id = $1`, late)
	refused(fmt.Sprintf("/coupons/%d/revoke", late), "It has expired")
	b.post(page+"/release", url.Values{"order": {"A-1"}, "reason": {"x"}}).to(page)
	b.post(page+"/revoke", url.Values{"reason": {"x"}}).to(page)
	refused(page+"/revoke", "It was revoked before.")
	b.header.Set("Accept-Language", "zh-CN")
	refused(page+"/revoke", "这张券不能作废", "它此前已作废。")
}

func TestLockIsReleasedInTheBrowser(t *testing.T) {
	g := newRig(t)
	id := g.gives(g.published(10, time.Hour), 1001)
	g.locks(id, "A-1")
	b := newTab(t)
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + "/coupons")
	b.fill("#q", "1001")
	b.sees("#results", "A-1", "Locked")
	b.accessible("coupons")
	b.open(g.server.URL + "/coupons/locks")
	b.press("main", "Release")
	b.sees("#dialog", "Release the lock of order A-1?")
	b.fill("#dialog [name=reason]", "payment is gone")
	b.press("#dialog", "Release")
	b.sees("main", "The lock has been released.", "payment is gone", "Unused")
	b.accessible("a coupon")
}
