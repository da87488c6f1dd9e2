package coupons_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestReviewPages: a group is proposed, approved by a second member, its appeal answered, and its
// coupons go back to the stock.
func TestReviewPages(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	store := g.Stores.Reviews
	work := func() {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = store.Work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, viewer := g.As(staff.Marketer), g.As(staff.Viewer)
	b.Get("/reviews").Is(200).Has("Nothing waits for a decision", "How right the rules were", "Shared phone")
	g.Exec(`update templates set protection = 'standard', stock = 300, issued = issued + 214 where id = $1`, d.ID)
	g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) select $1, n, n, 'claim', now(), now() + interval '1 day' from generate_series(1, 214) n`, d.ID)
	g.Exec(`insert into review_runs (template_id, shop_number, claims, found, left_out) values ($1, 10, 300, 214, 0)`, d.ID)
	g.Exec(`with r as (insert into reviews (template_id, shop_number, rules, facts, coupons) values ($1, 10, '{at_once,before_anybody,nothing_opened}',
			'{"claims": 214, "networks": 1, "agents": 5, "from_ms": 3, "to_ms": 9, "nothing_opened": 214}', 214) returning id)
		insert into review_coupons (review_id, coupon_id, user_id) select r.id, c.id, c.user_id from r, coupons c where c.template_id = $1 and c.user_id <= 214`, d.ID)
	id := g.Number(`select id from reviews`)
	page := fmt.Sprintf("/reviews/%d", id)
	said := "214 claims, one network, 5 kinds of browser, 3–9 ms after the opening, nothing opened before by 214"
	b.Get("/reviews").Is(200).Has(said, page)
	b.Get(fmt.Sprintf("/reviews?template=%d", d.ID)).Is(200).Has("300 claims were reviewed; 214 of them are in groups.", "Review again")
	b.Get("/reviews?template=x").Is(200).HasNot(said)
	if rows := b.File("/reviews.csv?show=all", 1); rows[1][5] != "214" {
		t.Errorf("%q", rows)
	}
	b.Get(page).Is(200).Has(said, page+"/suspend", page+"/let_be", "after=", "Faster than people")
	viewer.Get(page).Is(200).HasNot(page + "/suspend")
	viewer.Post(page+"/suspend", url.Values{"reason": {"x"}}).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Get(page).Is(http.StatusForbidden)

	reason := url.Values{"reason": {"a script in a data centre"}}
	b.Get(page+"/suspend").Is(200).Has("cannot be used until you decide", "another member must approve")
	b.Post(page+"/suspend", nil).Is(422).Has("say why")
	b.Post(page+"/suspend", reason).To(page)
	b.Get(page).Is(200).Has("Another member must approve this now.", "Waits for approval", page+"/decline").HasNot(page + "/approve")
	b.Post(page+"/approve", reason).Is(http.StatusConflict).Has("Another member must approve this.")
	other := g.As(staff.Operator)
	other.Get(page + "/approve").Is(200).Has("214 coupons cannot be used")
	other.Post(page+"/approve", reason).To(page)
	work()
	b.Get(page).Is(200).Has("214 suspended", page+"/return", page+"/restore", "Can be undone until")
	one := g.Number(`select coupon_id from review_coupons where user_id = 7`)
	g.Exec(`update review_coupons set appeal = 'It <b>was</b> me.', appealed_at = now() where coupon_id = $1`, one)
	g.Exec(`update reviews set appeals = 1`)
	b.Get("/reviews").Is(200).Has("1 appeal")
	b.Get(page+"?appealed=1").Is(200).Has("It &lt;b&gt;was&lt;/b&gt; me.", "Give it back")
	b.Get(page + "/return").Is(http.StatusConflict).Has("Appeals wait for an answer")
	answer := fmt.Sprintf("%s/appeals/%d/restored", page, one)
	b.Get(answer).Is(200).Has("The owner can use the coupon again")
	b.Post(answer, nil).Is(422).Has("say why")
	b.Post(answer, url.Values{"reason": {"a customer for years"}}).To(page)
	b.Get(fmt.Sprintf("/coupons/%d", one)).Is(200).Has("Restored", "Unused", "a customer for years")
	b.Post(page+"/return", reason).To(page)
	other.Post(page+"/approve", reason).To(page)
	work()
	b.Get(page).Is(200).Has("Returned to stock", "213 returned, 1 restored").HasNot(page + "/return")
	b.Get(page + "/return").Is(http.StatusConflict).Has("This is not possible now")
	b.Get(fmt.Sprintf("/templates/%d/report", d.ID)).Is(200).Has("Taken back", "213")
	b.Get("/audit?kind=review").Is(200).Has("decided to suspend the claims of", "approved the decision about")
	b.Post(fmt.Sprintf("/templates/%d/review", d.ID), nil).Is(303)
	b.Get(fmt.Sprintf("/reviews?template=%d", d.ID)).Is(200).Has("The drop will be reviewed again in a moment.").HasNot("Review again")
	g.As(staff.Marketer, 11).File("/reviews.csv?show=all", 0)
}
