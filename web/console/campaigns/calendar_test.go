package campaigns_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestCampaignCalendar(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	g.Shop(10) // in Berlin; the console is in Shanghai
	b.Get("/campaigns").Is(200).Has("view=month")
	b.Get("/campaigns?view=month&month=2031-11").Is(200).Has("November 2031", "Nothing is planned.", "month=2031-10", "month=2031-12", `<caption class="sr-only">Campaigns and drops in November 2031`)
	g.Plan("Morning in Berlin", 10, "2031-11-10 23:30Z") // the 11th there
	g.Plan("Of no shop", 0, "2031-11-10 15:30Z")         // 23:30 in Shanghai
	for i := range 7 {
		g.Plan(fmt.Sprint("crowd ", i), 0, "2031-11-20 04:00Z")
	}
	a := b.Get("/campaigns?view=month&month=2031-11").Is(200).Has("Morning in Berlin", "00:30 Berlin time (UTC+1)", "Of no shop", "23:30", "3 more",
		"New campaign on Tue 11 Nov 2031", "/campaigns/new?day=2031-11-11")
	if day := dayCell(a.Body, "2031-11-11"); !strings.Contains(day, "Morning in Berlin") || strings.Contains(day, "Of no shop") {
		t.Errorf("the 11th: %s", day)
	}
	if day := dayCell(a.Body, "2031-11-10"); !strings.Contains(day, "Of no shop") || !strings.Contains(day, "Draft") {
		t.Errorf("the 10th: %s", day)
	}
	// Weeks begin on Sunday in English and on Monday in Chinese.
	if first := strings.Index(a.Body, "Sunday"); first < 0 || first > strings.Index(a.Body, "Monday") {
		t.Error("an English week does not begin on Sunday")
	}
	b.Get("/campaigns?view=month&day=2031-11-20").Is(200).Has("crowd 6", "month=2031-11").HasNot("more than")
	b.Get("/campaigns?view=month&month=2031-11&shop=10").Is(200).Has("Morning in Berlin", "00:30", "/campaigns/new?day=2031-11-11&amp;shop=10").HasNot("Of no shop", "CET")
	for _, odd := range []string{"month=nonsense", "month=0001-01", "month=99999-01", "day=2031-02-30", "shop=77", "shop=x", "day=9999-12-31"} {
		b.Get("/campaigns?view=month&" + odd).Is(200)
	}
	// A campaign of a day starts in its morning, in the shop's zone.
	b.Get("/campaigns/new?day=2031-11-11").Is(200).Has(`value="2031-11-11T10:00"`, `value="2031-11-12T10:00"`)
	b.Get("/campaigns/new?day=2031-11-11&shop=10").Is(200).Has(`value="2031-11-11T10:00"`, `value="10" selected`)
	b.Get("/campaigns/new?day=2001-01-01&shop=zz").Is(200).HasNot("2001-01-01T")
	// Days gone by offer none, nor does a viewer find any.
	b.Get("/campaigns?view=month&month=2021-11").Is(200).HasNot("/campaigns/new?day=")
	g.As(staff.Viewer).Get("/campaigns?view=month&month=2031-11").Is(200).Has("Of no shop").HasNot("/campaigns/new?day=")
	g.As(staff.Marketer, 10).Get("/campaigns?view=month&month=2031-11").Is(200).Has("Morning in Berlin").HasNot("Of no shop")
}

// Drops are on the calendar of campaigns, so that overlaps are visible.
func TestDropsAreOnTheCalendar(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.As(staff.Viewer).Get("/campaigns?view=month&month="+d.OpensAt.In(d.Zone()).Format("2006-01")).Is(200).Has(d.Name, "Drop opens:", shell.TemplateURL(d.ID), "Scheduled")
}

// dayCell is the inside of a day's cell.
func dayCell(body, date string) string {
	_, rest, _ := strings.Cut(body, `<time datetime="`+date+`"`)
	inside, _, _ := strings.Cut(rest, "</td>")
	return inside
}

func TestShopLimitsWithoutScripts(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	boss := g.As(staff.Admin)
	boss.Get("/shops/10").Is(200).Has("Campaign limits", "/shops/10/limits", `name="was_approval_above"`)
	g.As(staff.Operator).Get("/shops/10").Is(200).HasNot("Campaign limits")
	form := func(above, day, week, wasAbove string) url.Values {
		return url.Values{"approval_above": {above}, "per_day": {day}, "per_week": {week}, "was_approval_above": {wasAbove}, "was_per_day": {"0"}, "was_per_week": {"0"}}
	}
	boss.Post("/shops/10/limits", form("many", "1001", "-1", "0")).Is(422).Has("must be a whole number", `value="many"`)
	boss.Post("/shops/10/limits", form("5", "1001", "2000", "0")).Is(422).Has("must be between 0 (no limit) and 1,000", `value="2000"`)
	boss.Post("/shops/10/limits", form("500", "1", "", "0")).To("/shops/10")
	boss.Get("/shops/10/limits").Is(200).Has(`value="500"`, "Campaign limits")
	// After a concurrent change the stored values are shown, and the typed values are kept.
	boss.Post("/shops/10/limits", form("900", "0", "0", "0")).Is(409).Has("was changed to 500", `value="900"`, `name="was_approval_above" value="500"`)
	l, err := g.Campaigns.Limits(t.Context(), staff.System(), 10)
	if g.Must(err); l != (campaign.Limits{ApprovalAbove: 500, PerDay: 1}) {
		t.Errorf("limits %+v", l)
	}
	boss.Get("/audit?kind=shop").Is(200).Has("changed the campaign limits of", ">500<")
	boss.Get("/shops/0/limits").Is(200).Has("Campaigns without a shop")
	boss.Post("/shops/0/limits", form("7", "0", "0", "0")).To("/shops")
	boss.Get("/shops/99/limits").Is(http.StatusNotFound)
	for _, b := range []*consoletest.Browser{g.As(staff.Operator), g.As(staff.Admin, 11)} {
		if a := b.Do("POST", "/shops/10/limits", form("0", "0", "0", "500")); a.Status != http.StatusForbidden && a.Status != http.StatusNotFound {
			t.Errorf("%d", a.Status)
		}
	}
	g.As(staff.Admin, 10).Get("/shops/10/limits").Is(200)
	g.As(staff.Admin, 10).Get("/shops/0/limits").Is(http.StatusForbidden)
}

// From the first page, drops further ahead are one click from their cockpits.
func TestLaterDropsLeadToTheirCockpits(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	later := g.Published(10, 26*time.Hour)
	b := g.As(staff.Viewer)
	b.Get("/").Is(200).Has(`class="drop-line" href="` + shell.TemplateURL(later.ID) + `?tab=live"`)
	b.Get(shell.TemplateURL(later.ID) + "?tab=live").Is(200)
}

// The list counts days as the calendar does: in each campaign's own zone.
func TestCampaignsOfADay(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Post("/campaigns", consoletest.CampaignForm("name", "At home")).Is(http.StatusSeeOther)
	b.Post("/campaigns", consoletest.CampaignForm("name", "Abroad")).Is(http.StatusSeeOther)
	g.Exec(`insert into shops (number, name, timezone) values (31, 'NY', 'America/New_York')`)
	g.Exec(`update campaigns set starts_at = '2031-12-01T04:30:00Z', ends_at = '2031-12-05T00:00:00Z'`) // 23:30 the day before in New York, noon in Shanghai
	g.Exec(`update campaigns set shop_number = 31 where name = 'Abroad'`)
	b.Get("/campaigns").Is(200) // and what has been saved is said
	for day, want := range map[string]string{"2031-11-30": "Abroad", "2031-12-01": "At home"} {
		other := map[string]string{"Abroad": "At home", "At home": "Abroad"}[want]
		b.Get("/campaigns?from=" + day + "&to=" + day).Is(200).Has(want).HasNot(other)
	}
	b.Get("/campaigns?from=2031-11-30").Is(200).Has("Abroad", "At home")
	b.Get("/campaigns?to=2031-11-30").Is(200).Has("Abroad").HasNot("At home")
	b.Get("/campaigns?from=2031-12-02").Is(200).HasNot("Abroad", "At home")
}

func TestImpossibleStepsOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	page := g.As(staff.Marketer).Post("/campaigns", consoletest.CampaignForm("name", "Spring")).Is(http.StatusSeeOther).Header.Get("Location")
	b, refused := g.Refusing(page)
	refused("resume", "“Spring” cannot be resumed", "The campaign is a draft. It can be edited, published or cancelled.")
	refused("pause", "“Spring” cannot be paused", "The campaign is a draft.")
	b.Post(page+"/publish", b.Publishing(page)).To(page)
	refused("publish", "“Spring” cannot be published", "The campaign is published and has not begun yet. It can be cancelled.")
	b.Post(page+"/resume", nil).Is(http.StatusConflict).Has("It can be cancelled.").HasNot(`name="reason"`)
	b.Post(page+"/cancel", nil).To(page)
	for _, step := range []string{"publish", "pause", "resume", "cancel"} {
		refused(step, "cannot be", "The campaign was cancelled and can no longer be changed.")
	}
	b.Header.Set("Accept-Language", "zh-CN")
	refused("cancel", "「Spring」不能取消", "")
}
