package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

func TestClaimsCard(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.get("/templates/1").is(200).has("Claims and stock", "Claiming starts at the opening.", "The curve appears with the first coupon.",
		`data-live="/templates/1/claims"`)
	g.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', issued = 7, stock = 7 where id = $1`, d.ID)
	g.exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '50 seconds', 5), ($1, date_trunc('second', now()) - interval '40 seconds', 2)`, d.ID)
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	defer b.header.Del("HX-Request")
	deadline := time.Now().Add(10 * time.Second)
	for { // what was looked up is kept for a second
		if page := b.get("/templates/1/claims").is(200); strings.Contains(page.body, "Sell-out curve, 7 coupons at the end") {
			page.has("of 7 in all", "7 issued, 0 on the shelf", "Sold out ", "after the opening", "Most per second").hasNot("<html")
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the card does not show what was sold")
		}
	}
	g.shop(11)
	g.as(staff.Viewer, 11).get("/templates/1/claims").is(http.StatusForbidden)
}

func TestClaimsCardOfADraftAndByItself(t *testing.T) {
	g := newRig(t)
	g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.get("/templates/1/claims").is(http.StatusSeeOther)
	b.get("/templates/1/cockpit").is(200).has("Claims and stock")
	g.exec(`update templates set state = 'draft' where id = 1`)
	b.get("/templates/1").is(200).hasNot("Claims and stock")
	b.get("/templates/1/claims").is(http.StatusNotFound)
	b.get("/templates/9/claims").is(http.StatusNotFound)
}
