package coupons_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

func TestClaimsCard(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	b.Get("/templates/1?tab=claims").Is(200).Has("Claims and stock", "Claiming starts at the opening.", "The curve appears with the first coupon.",
		`data-live="/templates/1/claims"`)
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', issued = 7, stock = 7 where id = $1`, d.ID)
	g.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '50 seconds', 5), ($1, date_trunc('second', now()) - interval '40 seconds', 2)`, d.ID)
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	defer b.Header.Del("HX-Request")
	var card consoletest.Answer
	consoletest.Within(t, "what was sold", func() bool { // a look-up is kept for a second
		card = b.Get("/templates/1/claims").Is(200)
		return strings.Contains(card.Body, "issued by time after the opening") && strings.Contains(card.Body, `<td class="number">7</td>`)
	})
	card.Has("of 7 in total", "7 issued, 0 available", "Most in one second").HasNot("<html")
	g.Shop(11)
	g.As(staff.Viewer, 11).Get("/templates/1/claims").Is(http.StatusForbidden)
}

func TestClaimsCardOfADraftAndByItself(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	b.Get("/templates/1/claims").Is(http.StatusSeeOther)
	b.Get("/templates/1?tab=live").Is(200).Has("Claims and stock")
	g.Exec(`update templates set state = 'draft' where id = 1`)
	b.Get("/templates/1").Is(200).HasNot("Claims and stock")
	b.Get("/templates/1/claims").Is(http.StatusNotFound)
	b.Get("/templates/9/claims").Is(http.StatusNotFound)
}
