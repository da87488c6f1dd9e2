package drops_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A marketer rehearses a drop with one click, sees its progress, and reads its report in both languages.
func TestRehearsalOfADrop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	drop := g.Published(10, 48*time.Hour)
	page := shell.TemplateURL(drop.ID)
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has(page + "/rehearsal")
	b.Get(page+"/rehearsal").Is(200).Has("Rehearse now", "No customer gets a message")
	b.Post(page+"/rehearsal", nil).To(page + "/rehearsal")
	b.Get(page+"/rehearsal").Is(200).Has("The rehearsal runs", "Customers are copied").HasNot("Rehearse now")
	b.Post(page+"/rehearsal", nil).Is(409).Has("Another rehearsal runs")
	list, err := g.Stores.Rehearsals.Of(t.Context(), drop.ID, 1)
	g.Must(err)
	_, ok, err := g.Stores.Rehearsals.Take(t.Context(), "test", time.Minute)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	g.Must(g.Stores.Rehearsals.Began(t.Context(), list[0].ID, "test", 100, g.Now().Add(time.Minute)))
	g.Must(g.Stores.Rehearsals.Note(t.Context(), list[0].ID, "test", rehearsal.Progress{Step: rehearsal.Reminding, Fired: 3, Slots: 12, Sent: 40, Due: 60}, time.Minute))
	b.Get(page+"/rehearsal").Is(200).Has("3 of 12 waves, 40 of 60 reminders", "The copy opens at")
	g.Must(g.Stores.Rehearsals.End(t.Context(), list[0].ID, "test", &rehearsal.Report{Users: 500, SharePermille: 100, Reminders: 6000, Sent: 5900, Dead: 100, LateP50: 150, LateP99: 900, Wave: 64_000, Forecast: 61_000, Claims: 5000, Rate: 700,
		Issued: 100, Stock: 100, SoldOut: 3000, ExpectedSoldOut: 2339, ClaimP50: 3, ClaimP99: 60, Bottleneck: rehearsal.NoBottleneck}, ""))
	b.Get(page+"/rehearsal").Is(200).Has("All went well", "500 customers took part as copies, 10%", "5,900 of 6,000 reminders", "61.0 s", "64.0 s", "last coupon 3 s 3 s –", "Rehearse now")
	g.Chinese().Get(page+"/rehearsal").Is(200).Has("彩排报告", "一切顺利")
	g.As(staff.Viewer).Get(page + "/rehearsal").Is(200).HasNot("Rehearse now")
	if n := g.Number(`select count(*) from audit where action = 'template.rehearse'`); n != 1 {
		t.Errorf("%d entries of the audit log", n)
	}
}

// A dress rehearsal adds a door for a hundredth of the customers to a draft, ten minutes early, with a hundredth of the stock and test
// persons. The drop can be published as it is.
func TestDressRehearsalOfADraft(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	draft := g.Draft(10, 48*time.Hour)
	page := shell.TemplateURL(draft.ID)
	b := g.As(staff.Marketer)
	b.Get(page + "/dress").Is(200)
	b.Post(page+"/dress", nil).Is(409).Has("too few customers")
	g.Exec(`insert into users (id) select n from generate_series(1, 2000) n`)
	b.Get(page+"/dress").Is(200).Has("A hundredth of the customers", "10 minutes before")
	b.Post(page+"/dress", nil).To(page + "/doors")
	now, err := g.Templates.Template(t.Context(), staff.System(), draft.ID)
	g.Must(err)
	if len(now.Doors) != 2 || now.Doors[0].LeadMinutes != rehearsal.DressLead || now.Doors[0].Share != max(1, draft.Stock/100) || now.Doors[1].Who != "all" {
		t.Fatalf("%+v", now.Doors)
	}
	if n := g.Number(`select members from segments where id = $1`, now.Doors[0].SegmentID); n < 5 || n > 60 {
		t.Errorf("%d of 2,000 customers are guests", n)
	}
	b.Post(page+"/dress", nil).Is(409).Has("has a dress rehearsal already")
	publish := fmt.Sprint(now.Version)
	b.Post(page+"/publish", map[string][]string{"version": {publish}}).To(page)
	b.Post(page+"/dress", nil).Is(409).Has("before you publish")
}
