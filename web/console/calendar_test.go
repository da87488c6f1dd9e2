package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func TestCampaignCalendar(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	g.shop(10) // in Berlin; the console is in Shanghai
	b.get("/campaigns").is(200).has("view=month")
	b.get("/campaigns?view=month&month=2031-11").is(200).has("November 2031", "Nothing is planned.", "month=2031-10", "month=2031-12", `<caption class="sr-only">Campaigns and drops in November 2031`)
	g.plan("Morning in Berlin", 10, "2031-11-10 23:30Z") // the 11th there
	g.plan("Of no shop", 0, "2031-11-10 15:30Z")         // 23:30 in Shanghai
	for i := range 7 {
		g.plan(fmt.Sprint("crowd ", i), 0, "2031-11-20 04:00Z")
	}
	a := b.get("/campaigns?view=month&month=2031-11").is(200).has("Morning in Berlin", "00:30 CET", "Of no shop", "23:30", "3 more",
		"New campaign on Tue 11 Nov 2031", "/campaigns/new?day=2031-11-11")
	if day := dayCell(a.body, "2031-11-11"); !strings.Contains(day, "Morning in Berlin") || strings.Contains(day, "Of no shop") {
		t.Errorf("the 11th: %s", day)
	}
	if day := dayCell(a.body, "2031-11-10"); !strings.Contains(day, "Of no shop") || !strings.Contains(day, "Draft") {
		t.Errorf("the 10th: %s", day)
	}
	// Weeks begin on Sunday in English and on Monday in Chinese.
	if first := strings.Index(a.body, "Sunday"); first < 0 || first > strings.Index(a.body, "Monday") {
		t.Error("an English week does not begin on Sunday")
	}
	b.get("/campaigns?view=month&day=2031-11-20").is(200).has("crowd 6", "month=2031-11").hasNot("more than")
	b.get("/campaigns?view=month&month=2031-11&shop=10").is(200).has("Morning in Berlin", "00:30", "/campaigns/new?day=2031-11-11&amp;shop=10").hasNot("Of no shop", "CET")
	for _, odd := range []string{"month=nonsense", "month=0001-01", "month=99999-01", "day=2031-02-30", "shop=77", "shop=x", "day=9999-12-31"} {
		b.get("/campaigns?view=month&" + odd).is(200)
	}
	// A campaign of a day starts in its morning, in the shop's zone.
	b.get("/campaigns/new?day=2031-11-11").is(200).has(`value="2031-11-11T10:00"`, `value="2031-11-12T10:00"`)
	b.get("/campaigns/new?day=2031-11-11&shop=10").is(200).has(`value="2031-11-11T10:00"`, `value="10" selected`)
	b.get("/campaigns/new?day=2001-01-01&shop=zz").is(200).hasNot("2001-01-01T")
	// Days gone by offer none, nor does a viewer find any.
	b.get("/campaigns?view=month&month=2021-11").is(200).hasNot("/campaigns/new?day=")
	g.as(staff.Viewer).get("/campaigns?view=month&month=2031-11").is(200).has("Of no shop").hasNot("/campaigns/new?day=")
	g.as(staff.Marketer, 10).get("/campaigns?view=month&month=2031-11").is(200).has("Morning in Berlin").hasNot("Of no shop")
}

// A drop is on the calendar of campaigns, so that nobody plans one over it.
func TestDropsAreOnTheCalendar(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.as(staff.Viewer).get("/campaigns?view=month&month="+d.OpensAt.In(d.Zone()).Format("2006-01")).is(200).has(d.Name, "Drop opens:", shell.TemplateURL(d.ID), "Scheduled")
}

// dayCell is the inside of a day's cell.
func dayCell(body, date string) string {
	_, rest, _ := strings.Cut(body, `<time datetime="`+date+`"`)
	inside, _, _ := strings.Cut(rest, "</td>")
	return inside
}

func TestShopLimitsWithoutScripts(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	boss := g.as(staff.Admin)
	boss.get("/shops/10").is(200).has("What campaigns may do", "/shops/10/limits", `name="was_approval_above"`)
	g.as(staff.Operator).get("/shops/10").is(200).hasNot("What campaigns may do")
	form := func(above, day, week, wasAbove string) url.Values {
		return url.Values{"approval_above": {above}, "per_day": {day}, "per_week": {week}, "was_approval_above": {wasAbove}, "was_per_day": {"0"}, "was_per_week": {"0"}}
	}
	boss.post("/shops/10/limits", form("many", "1001", "-1", "0")).is(422).has("must be a whole number", `value="many"`)
	boss.post("/shops/10/limits", form("5", "1001", "2000", "0")).is(422).has("must be between 0 (no limit) and 1,000", `value="2000"`)
	boss.post("/shops/10/limits", form("500", "1", "", "0")).to("/shops/10")
	boss.get("/shops/10/limits").is(200).has(`value="500"`, "What campaigns may do")
	// Somebody else was faster: what they decided is shown, and nothing lost.
	boss.post("/shops/10/limits", form("900", "0", "0", "0")).is(409).has("somebody has changed this to 500", `value="900"`, `name="was_approval_above" value="500"`)
	l, err := g.Campaigns.Limits(t.Context(), staff.System(), 10)
	if g.must(err); l != (campaign.Limits{ApprovalAbove: 500, PerDay: 1}) {
		t.Errorf("limits %+v", l)
	}
	boss.get("/audit?kind=shop").is(200).has("changed what campaigns may do in", ">500<")
	boss.get("/shops/0/limits").is(200).has("Campaigns of no shop")
	boss.post("/shops/0/limits", form("7", "0", "0", "0")).to("/shops")
	boss.get("/shops/99/limits").is(http.StatusNotFound)
	for _, b := range []*browser{g.as(staff.Operator), g.as(staff.Admin, 11)} {
		if a := b.do("POST", "/shops/10/limits", form("0", "0", "0", "500")); a.status != http.StatusForbidden && a.status != http.StatusNotFound {
			t.Errorf("%d", a.status)
		}
	}
	g.as(staff.Admin, 10).get("/shops/10/limits").is(200)
	g.as(staff.Admin, 10).get("/shops/0/limits").is(http.StatusForbidden)
}

// From the first page, drops further ahead are one click from their cockpits.
func TestLaterDropsLeadToTheirCockpits(t *testing.T) {
	g := newRig(t)
	g.published(10, 2*time.Hour)
	later := g.published(10, 26*time.Hour)
	b := g.as(staff.Viewer)
	b.get("/").is(200).has(`class="drop-line" href="` + shell.TemplateURL(later.ID) + `/cockpit"`)
	b.get(shell.TemplateURL(later.ID) + "/cockpit").is(200)
}

// The list counts days as the calendar does: in each campaign's own zone.
func TestCampaignsOfADay(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.post("/campaigns", campaignForm("name", "At home")).is(http.StatusSeeOther)
	b.post("/campaigns", campaignForm("name", "Abroad")).is(http.StatusSeeOther)
	g.exec(`insert into shops (number, name, timezone) values (31, 'NY', 'America/New_York')`)
	g.exec(`update campaigns set starts_at = '2031-12-01T04:30:00Z', ends_at = '2031-12-05T00:00:00Z'`) // 23:30 the day before in New York, noon in Shanghai
	g.exec(`update campaigns set shop_number = 31 where name = 'Abroad'`)
	b.get("/campaigns").is(200) // and what has been saved is said
	for day, want := range map[string]string{"2031-11-30": "Abroad", "2031-12-01": "At home"} {
		other := map[string]string{"Abroad": "At home", "At home": "Abroad"}[want]
		b.get("/campaigns?from=" + day + "&to=" + day).is(200).has(want).hasNot(other)
	}
	b.get("/campaigns?from=2031-11-30").is(200).has("Abroad", "At home")
	b.get("/campaigns?to=2031-11-30").is(200).has("Abroad").hasNot("At home")
	b.get("/campaigns?from=2031-12-02").is(200).hasNot("Abroad", "At home")
}

func TestImpossibleStepsOfACampaign(t *testing.T) {
	g := newRig(t)
	page := g.as(staff.Marketer).post("/campaigns", campaignForm("name", "Spring")).is(http.StatusSeeOther).header.Get("Location")
	b, refused := g.refusing(page)
	refused("resume", "“Spring” cannot be resumed", "The campaign is a draft. It can be edited, published or cancelled.")
	refused("pause", "“Spring” cannot be paused", "The campaign is a draft.")
	b.post(page+"/publish", b.publishing(page)).to(page)
	refused("publish", "“Spring” cannot be published", "The campaign is published and has not begun yet. It can be cancelled.")
	b.post(page+"/resume", nil).is(http.StatusConflict).has("It can be cancelled.").hasNot(`name="reason"`)
	b.post(page+"/cancel", nil).to(page)
	for _, step := range []string{"publish", "pause", "resume", "cancel"} {
		refused(step, "cannot be", "The campaign was cancelled. Nothing of it can change any more.")
	}
	b.header.Set("Accept-Language", "zh-CN")
	refused("cancel", "「Spring」不能取消", "")
}
