package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
)

// Times that the form has planned itself are the same instants in whatever
// shop; typed ones are what the clock there shows.
func TestPlannedTimesFollowTheShop(t *testing.T) {
	g := newRig(t)
	g.shop(10) // Berlin; the console is in Shanghai
	b := g.as(staff.Marketer)
	page := b.get("/campaigns/new").is(200)
	from, err := time.ParseInLocation("2006-01-02T15:04", page.field("starts_at"), g.DefaultZone)
	g.must(err)
	form := campaignForm("shop", "10", "starts_at", page.field("starts_at"), "ends_at", page.field("ends_at"),
		"planned_shop", page.field("planned_shop"), "planned_starts_at", page.field("planned_starts_at"), "planned_ends_at", page.field("planned_ends_at"))
	there := from.In(berlin(t)).Format("2006-01-02T15:04")
	b.post("/campaigns/preview", form).is(200).has(`value="`+there+`"`, `name="planned_shop" value="10"`).hasNot("is in the past")
	b.post("/campaigns", form).is(303)
	var start time.Time
	g.must(g.sql.QueryRow(t.Context(), `select starts_at from campaigns`).Scan(&start))
	if !start.Equal(from) {
		t.Errorf("it starts at %v, not at %v", start, from)
	}

	typed := g.now().In(g.DefaultZone).Add(48 * time.Hour).Format("2006-01-02T15:04")
	form.Set("starts_at", typed)
	form.Set("name", "Typed")
	form.Del("request_key")
	b.post("/campaigns/preview", form).is(200).has(strings.ReplaceAll(typed[11:], "T", " "))
	b.post("/campaigns", form).is(422).has("ends_at") // the untouched end is before it
	form.Set("ends_at", g.now().In(g.DefaultZone).Add(72*time.Hour).Format("2006-01-02T15:04"))
	b.post("/campaigns", form).is(303)
	g.must(g.sql.QueryRow(t.Context(), `select starts_at from campaigns where name = 'Typed'`).Scan(&start))
	if got := start.In(berlin(t)).Format("2006-01-02T15:04"); got != typed {
		t.Errorf("it starts at %v in the shop, not at %v", got, typed)
	}

	form.Set("starts_at", g.now().In(berlin(t)).Add(-time.Hour).Format("2006-01-02T15:04"))
	b.post("/campaigns/preview", form).is(200).has("The start is in the past", "It starts immediately on publication.", "at once, when it is published", "has passed")
}

func TestPlannedTimesFollowTheShopInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/campaigns/new")
	b.step("1 · ")
	from, err := time.ParseInLocation("2006-01-02T15:04", b.value("#f-starts_at"), g.DefaultZone)
	g.must(err)
	b.fill("#f-shop", "10")
	within(t, "the time there", func() bool {
		return b.value("#f-starts_at") == from.In(berlin(t)).Format("2006-01-02T15:04")
	})
	b.fill("#f-shop", "")
	within(t, "the time here", func() bool { return b.value("#f-starts_at") == from.Format("2006-01-02T15:04") })
	b.accessible("a new campaign")
}

// A campaign that is published begins before the eyes of who looks at it.
func TestCampaignStartsInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.as(staff.Marketer).post("/campaigns", campaignForm()).is(303)
	g.exec(`update campaigns set state = 'scheduled', published_at = now()`)
	var id int64
	g.must(g.sql.QueryRow(t.Context(), `select id from campaigns`).Scan(&id))
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + fmt.Sprintf("/campaigns/%d", id))
	b.sees("#campaign-progress", "Not started.")
	// What somebody is typing stays, but not over what has changed under it.
	b.fill("#f-test-user", "1001")
	b.fill("#f-rate_per_second", "77")
	evaluate[chromedp.Void](b, `document.querySelector("#f-test-user").focus()`)
	g.exec(`update campaigns set rate_per_second = 55`)
	g.exec(`update campaigns set state = 'running', started_at = now()`)
	b.sees("main", "Running", "Pause")
	b.sees("#campaign-progress", "Running")
	if got := evaluate[string](b, `[document.querySelector("#f-test-user").value, document.activeElement.id, document.querySelector("#f-rate_per_second").value, sessionStorage.length].join(" ")`); got != "1001 f-test-user 55 0" {
		t.Errorf("after the reload: %s", got)
	}
}
