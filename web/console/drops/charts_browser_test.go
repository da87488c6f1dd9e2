package drops_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// maxWeight is the greatest size in bytes of a page with charts for an empty cache: the page and
// its files, compressed.
const maxWeight = 120 << 10

// Charts are drawn over the server's drawing, zoom to a part and back, follow the theme, and keep
// the page's security policy. The table of the numbers stays.
func TestChartsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 3*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Exec(`insert into booking_growth select $1, date_trunc('minute', now()) - n * interval '1 hour', 10 * n from generate_series(0, 40) n`, d.ID)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + shell.TemplateURL(d.ID) + "/report")
	drawn := func(what string) {
		t.Helper()
		consoletest.Within(t, what, func() bool {
			return consoletest.Evaluate[bool](b, `!!document.querySelector("#growth.is-drawn canvas") && document.querySelectorAll("#growth canvas").length === 1`)
		})
	}
	drawn("the chart")
	pressed := func(want string) {
		t.Helper()
		consoletest.Within(t, "the button "+want, func() bool {
			return consoletest.Evaluate[string](b, `document.querySelector("#growth [data-span][aria-pressed=true]")?.textContent ?? ""`) == want
		})
	}
	pressed("All")
	b.Click(`#growth [data-span]:nth-of-type(2)`)
	pressed("Last 24 h")
	b.Click(`#growth [data-span]:first-of-type`)
	pressed("All")
	consoletest.Evaluate[string](b, `document.documentElement.dataset.theme = "dark"`)
	drawn("the chart in the other theme")
	if consoletest.Evaluate[int](b, `document.querySelectorAll("#growth .as-table tbody tr").length`) < 20 {
		t.Error("the table behind the chart is missing")
	}
	b.Accessible("the report with charts")
}

func TestPagesWithChartsAreLight(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 3*time.Hour)
	g.Exec(`insert into booking_growth select $1, date_trunc('minute', now()) - n * interval '1 minute', n from generate_series(0, 2000) n`, d.ID)
	b := g.As(staff.Admin)
	for _, path := range []string{shell.TemplateURL(d.ID) + "/report", shell.TemplateURL(d.ID) + "?tab=reminders"} {
		page := b.Get(path).Is(200).Body
		weight := compressed(t, page)
		for _, m := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(page, -1) {
			weight += compressed(t, b.Get(m[1]).Is(200).Body)
		}
		if weight > maxWeight {
			t.Errorf("%s weighs %d bytes with its files, at most %d are wanted", path, weight, maxWeight)
		}
		t.Logf("%s weighs %d bytes", path, weight)
	}
}

func compressed(t *testing.T, text string) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// While coupons are claimed the chart, the stock and the headline change in their places, so that bars move and nothing flickers.
func TestALiveDropGrowsInItsPlace(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', stock = 100, issued = 7 where id = $1`, d.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id and t.id = $1`, d.ID)
	g.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '50 seconds', 5), ($1, date_trunc('second', now()) - interval '40 seconds', 2)`, d.ID)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Sees("#drop-head", "Coupons left", "93", "7 of 100 claimed", "Closes in")
	const parts = `["#sales.is-drawn canvas", "#claims .bar-sent", "#drop-head .hero-count strong"]`
	for i := range 3 {
		consoletest.Within(t, fmt.Sprint("part ", i, " of ", parts), func() bool {
			return consoletest.Evaluate[bool](b, fmt.Sprintf(parts+`.slice(%d, %d).every((part) => document.querySelector(part))`, i, i+1))
		})
	}
	consoletest.Evaluate[bool](b, parts+`.every((part) => document.querySelector(part).mark = true)`)
	g.Exec(`update templates set issued = 60 where id = $1`, d.ID)
	g.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '5 seconds', 53)`, d.ID)
	b.Sees("#drop-head", "40", "60 of 100 claimed")
	consoletest.Within(t, "the chart with the last claims", func() bool {
		return consoletest.Evaluate[bool](b, `document.querySelector("#sales").dataset.chart.includes(",60]")`)
	})
	if !consoletest.Evaluate[bool](b, parts+`.every((part) => document.querySelector(part)?.mark)`) {
		t.Error("a part of the page was made anew")
	}
	if count := consoletest.Evaluate[int](b, `document.querySelectorAll("#sales canvas").length`); count != 1 {
		t.Errorf("%d charts are drawn", count)
	}
	g.Exec(`update templates set issued = 100 where id = $1`, d.ID)
	b.Sees("#drop-head", "100 of 100 claimed", "Gone in ")
	if !consoletest.Evaluate[bool](b, `!!document.querySelector("#sales.is-drawn")`) {
		t.Error("the chart changed to the plain drawing")
	}
	b.Accessible("the live tab of a drop that is sold out")
}
