package drops_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The page of a drop begins with the outcomes of its reminders and coupons, next to the last closed
// drop of the same shop that had reminders: not next to an open drop, a draft, or a drop without
// reminders, even if it opened later. Each figure equals the count of rows.
func TestThePictureOfADrop(t *testing.T) {
	g := consoletest.New(t)
	old, d, other := g.Published(10, time.Hour), g.Published(10, 3*time.Hour), g.Published(11, time.Hour)
	open, empty, draft := g.Published(10, time.Hour), g.Published(10, time.Hour), g.Draft(10, time.Hour)
	b := g.As(staff.Viewer)
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has("From reservation to use").HasNot("The one before")

	for _, id := range []int64{old.ID, other.ID} {
		g.Exec(`update templates set name = 'The old one', opens_at = opens_at - interval '3 hours', closes_at = date_trunc('second', now()) - interval '1 minute', issued = 40, stock = 50 where id = $1`, id)
		g.Exec(`insert into bookings values ($1, 11, 0, 80)`, id)
	}
	g.Exec(`update templates set name = 'Another', opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) - interval '2 minutes' where id = any($1)`, []int64{empty.ID, draft.ID})
	g.Exec(`update templates set name = 'Another', opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '1 hour' where id = $1`, open.ID)
	g.Exec(`insert into bookings values ($1, 11, 0, 80)`, open.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id`)
	g.Exec(`insert into coupon_tallies (template_id, used) values ($1, 10)`, old.ID)
	g.Exec(`insert into bookings values ($1, 11, 0, 1200)`, d.ID)
	g.Sending(d, 12, 1, 100, 40)
	g.Exec(`insert into drop_opening_counts values ($1, 1, 250), ($1, 2, 5), ($2, 1, 9)`, d.ID, old.ID)
	page := b.Get(shell.TemplateURL(d.ID)).Is(200).Has("The one before: The old one", fmt.Sprintf(`href="/templates/%d"`, old.ID))
	page.Has(
		"Step This drop The one before: The old one",
		"Reminders reserved 1,300 80", // 1,200 wait, a slot found 100
		"Reminders sent 40 3.1% of the reserved 0",
		"Links opened 255 customers, each once 9", // more than reminders were delivered: corrections have links too
		"Coupons claimed 0 0% of the stock 40 · 80% of the stock",
		"Coupons used 0 10 · 25% of the claimed")
}

// Any drop that has opened and that the member may see can be chosen instead of the previous drop,
// on every tab; the parts that keep themselves up to date keep the choice.
func TestTheDropToCompareWithCanBeChosen(t *testing.T) {
	g := consoletest.New(t)
	first, second, d, other := g.Published(10, time.Hour), g.Published(10, time.Hour), g.Published(10, 3*time.Hour), g.Published(11, time.Hour)
	for i, id := range []int64{first.ID, second.ID, other.ID} {
		g.Exec(`update templates set name = $2, opens_at = opens_at - make_interval(hours => 3 + $3), closes_at = date_trunc('second', now()) - interval '1 minute', issued = 40 + $3, stock = 50 where id = $1`,
			id, []string{"Latest", "Earlier", "Foreign"}[i], i)
		g.Exec(`insert into bookings values ($1, 11, 0, 80)`, id)
	}
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id`)
	g.Exec(`insert into claim_seconds (template_id, second, issued) select id, date_trunc('second', opens_at), 5 from templates where id in ($1, $2)`, second.ID, d.ID)
	b, url := g.As(staff.Viewer, 10), shell.TemplateURL(d.ID)
	b.Get(url+"?tab=claims").Is(200).Has("The one before: Latest", fmt.Sprintf(`href="%s/compare?tab=claims"`, url))
	b.Get(url+"/compare?tab=claims").Is(200).Has("Compare with another drop", "The drop before", "Latest", "Earlier", `name="tab" value="claims"`).HasNot("Foreign")
	with := fmt.Sprintf("&compare=%d", second.ID)
	for _, tab := range []string{"live", "reminders", "claims", "coupons", "history"} {
		b.Get(url+"?tab="+tab+with).Is(200).Has("Compared with Earlier", "41", `data-live="`+url+"?tab="+tab+fmt.Sprintf("&amp;compare=%d", second.ID)+`"`).HasNot("The one before")
	}
	b.Get(url+"?tab=claims"+with).Has(fmt.Sprintf(`data-live="%s/claims?compare=%d"`, url, second.ID), "Earlier · ")
	for _, refused := range []int64{other.ID, d.ID, 999} {
		b.Get(fmt.Sprintf("%s?tab=claims&compare=%d", url, refused)).Is(200).Has("The one before: Latest")
	}
	b.Get(shell.TemplateURL(999) + "/compare").Is(404)
	g.As(staff.Viewer, 11).Get(url + "/compare").Is(403)
	alone := g.Published(12, time.Hour)
	g.As(staff.Viewer, 12).Get(shell.TemplateURL(alone.ID) + "/compare").Is(200).Has("No drop of yours has opened yet")
}

// Each tab has its own address; only the shown tab's content is read.
func TestTabsOfADrop(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	url := shell.TemplateURL(d.ID)
	tabs := map[string]string{"live": "data-stream=", "reminders": "Reminders by time and channel", "claims": "Claims and stock", "coupons": "Validity after claiming", "history": "Whole history"}
	for tab, own := range tabs {
		page := b.Get(url+"?tab="+tab).Is(200).Has(own, fmt.Sprintf(`href="%s?tab=%s" aria-current="page"`, url, tab), `data-live="`+url+`?tab=`+tab+`"`)
		for other, text := range tabs {
			if other != tab && !(tab == "live" && other == "claims") { // claims are also live
				page.HasNot(text)
			}
		}
	}
	b.Get(url + "?tab=nonsense").Is(200).Has(tabs["reminders"]) // two hours ahead
	g.Wait(90 * time.Minute)
	b.Get(url).Is(200).Has(tabs["live"])
	g.Wait(2 * time.Hour)
	b.Get(url).Is(200).Has(tabs["claims"])
}

// How a slot went out is drawn from its batches, as long as they are kept.
func TestWaveOfASlot(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	live := shell.TemplateURL(d.ID) + "?tab=live"
	b.Get(live).Is(200).Has(`id="wave" hidden`).HasNot("Replay")
	g.Sending(d, 12, 1, 1000, 400)
	b.Get(live).Is(200).Has("Sending of the 60-minute reminders", `<path class="wave-area"`, "E-mail 400 of 1,000", "Channel Sent Most in one second E-mail 400").HasNot("Replay")
	g.Wait(2 * time.Minute) // what has gone by can be replayed
	b.Get(live).Is(200).Has("Sending of the 60-minute reminders", "Replay", `<path class="wave-area"`, "Channel Sent Most in one second E-mail 400")
	b.Get(live+"&slot=999&replay=1").Is(200).Has("Sending of the 60-minute reminders", "card wave is-replayed")
	b.Get(live + "&slot=x").Is(200).HasNot("is-replayed")
	b.Get(shell.TemplateURL(d.ID) + "/wave").To(live)
	g.As(staff.Viewer, 11).Get(shell.TemplateURL(d.ID) + "/wave").Is(403)
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	b.Get(shell.TemplateURL(d.ID) + "/wave").Is(200).Has("Sending of the 60-minute reminders").HasNot("<html")
}
