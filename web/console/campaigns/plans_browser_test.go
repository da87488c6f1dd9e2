package campaigns_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Times that the form has filled in stay the same instants when another shop is chosen; typed times
// are local times of the chosen shop.
func TestPlannedTimesFollowTheShop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10) // Berlin; the console is in Shanghai, and so is the other shop
	g.Shop(20)
	g.Exec(`update shops set timezone = 'Asia/Shanghai' where number = 20`)
	b := g.As(staff.Marketer)
	page := b.Get("/campaigns/new?shop=20").Is(200)
	from, err := time.ParseInLocation("2006-01-02T15:04", page.Field("starts_at"), g.DefaultZone)
	g.Must(err)
	form := consoletest.CampaignForm("shop", "10", "starts_at", page.Field("starts_at"), "ends_at", page.Field("ends_at"),
		"planned_shop", page.Field("planned_shop"), "planned_starts_at", page.Field("planned_starts_at"), "planned_ends_at", page.Field("planned_ends_at"))
	there := from.In(consoletest.Berlin(t)).Format("2006-01-02T15:04")
	b.Post("/campaigns/preview", form).Is(200).Has(`value="`+there+`"`, `name="planned_shop" value="10"`).HasNot("is in the past")
	b.Post("/campaigns", form).Is(303)
	var start time.Time
	g.Must(g.SQL.QueryRow(t.Context(), `select starts_at from campaigns`).Scan(&start))
	if !start.Equal(from) {
		t.Errorf("it starts at %v, not at %v", start, from)
	}

	typed := g.Now().In(g.DefaultZone).Add(48 * time.Hour).Format("2006-01-02T15:04")
	form.Set("starts_at", typed)
	form.Set("name", "Typed")
	form.Del("request_key")
	b.Post("/campaigns/preview", form).Is(200).Has(strings.ReplaceAll(typed[11:], "T", " "))
	b.Post("/campaigns", form).Is(422).Has("ends_at") // the untouched end is before it
	form.Set("ends_at", g.Now().In(g.DefaultZone).Add(72*time.Hour).Format("2006-01-02T15:04"))
	b.Post("/campaigns", form).Is(303)
	g.Must(g.SQL.QueryRow(t.Context(), `select starts_at from campaigns where name = 'Typed'`).Scan(&start))
	if got := start.In(consoletest.Berlin(t)).Format("2006-01-02T15:04"); got != typed {
		t.Errorf("it starts at %v in the shop, not at %v", got, typed)
	}

	form.Set("starts_at", g.Now().In(consoletest.Berlin(t)).Add(-time.Hour).Format("2006-01-02T15:04"))
	b.Post("/campaigns/preview", form).Is(200).Has("The start is in the past", "It starts immediately on publication.", "at once, when it is published", "has passed")
}

func TestPlannedTimesFollowTheShopInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Shop(20)
	g.Exec(`update shops set timezone = 'Asia/Shanghai' where number = 20`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/campaigns/new?shop=20")
	b.Step("1 · ")
	from, err := time.ParseInLocation("2006-01-02T15:04", b.Value("#f-starts_at"), g.DefaultZone)
	g.Must(err)
	b.Fill("#f-shop", "10")
	consoletest.Within(t, "the time there", func() bool {
		return b.Value("#f-starts_at") == from.In(consoletest.Berlin(t)).Format("2006-01-02T15:04")
	})
	b.Fill("#f-shop", "")
	consoletest.Within(t, "the time here", func() bool { return b.Value("#f-starts_at") == from.Format("2006-01-02T15:04") })
	b.Accessible("a new campaign")
}

// A campaign that is published begins before the eyes of its viewers.
func TestCampaignStartsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.As(staff.Marketer).Post("/campaigns", consoletest.CampaignForm()).Is(303)
	g.Exec(`update campaigns set state = 'scheduled', published_at = now()`)
	var id int64
	g.Must(g.SQL.QueryRow(t.Context(), `select id from campaigns`).Scan(&id))
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + fmt.Sprintf("/campaigns/%d", id))
	b.Sees("#campaign-progress", "Not started.")
	// A field that is being edited keeps its value, unless its stored value has
	// changed.
	b.Fill("#f-test-user", "1001")
	b.Fill("#f-rate_per_second", "77")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#f-test-user").focus()`)
	g.Exec(`update campaigns set rate_per_second = 55`)
	g.Exec(`update campaigns set state = 'running', started_at = now()`)
	b.Sees("main", "Running", "Pause")
	b.Sees("#campaign-progress", "Running")
	if got := consoletest.Evaluate[string](b, `[document.querySelector("#f-test-user").value, document.activeElement.id, document.querySelector("#f-rate_per_second").value, sessionStorage.length].join(" ")`); got != "1001 f-test-user 55 0" {
		t.Errorf("after the reload: %s", got)
	}
}
