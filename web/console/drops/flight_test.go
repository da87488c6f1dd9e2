package drops_test

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/flight"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A member looks at the flight check of a draft, in both languages. A red check is named on the drop's page, and the draft
// is published only with a reason, which the audit log keeps.
func TestFlightCheckOfADrop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	draft := g.Draft(10, 48*time.Hour)
	page := shell.TemplateURL(draft.ID)
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has(page + "/flight")
	b.Get(page+"/flight").Is(200).Has("Flight check", "customers can reserve reminders once the drop is published", "no other drop opens within ten minutes")
	if id, err := g.Stores.Flights.Take(t.Context(), time.Minute); err != nil || id != draft.ID {
		t.Fatalf("took %d, %v", id, err)
	}
	g.Must(g.Stores.Flights.Keep(t.Context(), flight.Check{TemplateID: draft.ID, Version: draft.Version, Findings: []flight.Finding{
		{Point: flight.Links, Level: flight.Red, Found: "a link answers with HTTP 404: https://shop.example/", Do: "correct the address in the drop or its texts, or publish the page"}}}))
	b.Get(page).Is(200).Has("The flight check has 1 red point")
	publish := url.Values{"version": {b.Get(page + "/publish").Is(200).Has("The flight check has 1 red point").HasNot("Reason optional").Field("version")}}
	b.Post(page+"/publish", publish).Is(409).Has("publish with a reason")
	publish.Set("reason", "the page is published at noon")
	b.Post(page+"/publish", publish).To(page)
	if n := g.Number(`select count(*) from audit where action = 'template.publish' and reason = 'the page is published at noon'`); n != 1 {
		t.Errorf("%d entries of the audit log have the reason", n)
	}
	g.As(staff.Viewer).Get(page + "/flight").Is(200)
}
