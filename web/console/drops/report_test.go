package drops_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The report shows the results of the drop next to earlier drops of its shop, and of no other shop,
// unless the member chooses a drop of another shop to compare with.
func TestReportPage(t *testing.T) {
	g := consoletest.New(t)
	before, d, other := g.Published(10, 3*time.Hour), g.Published(10, 4*time.Hour), g.Published(11, 2*time.Hour)
	g.Exec(`update templates set name = 'The week before', opens_at = opens_at - interval '7 days', closes_at = closes_at - interval '7 days' where id = $1`, before.ID)
	g.Exec(`update templates set name = 'Of another shop', opens_at = opens_at - interval '7 days', closes_at = closes_at - interval '7 days' where id = $1`, other.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id`)
	g.Exec(`insert into bookings select id, 11, 0, 80 from templates where id = any($1)`, []int64{before.ID, other.ID})
	g.Book(d, 1001, delivery.App, 60)
	g.Fire(d, 12, consoletest.Takes)
	page := shell.TemplateURL(d.ID) + "/report"
	b := g.As(staff.Viewer)
	b.Get(page).Is(200).Has("Report: Moon cake night", "none was sent after the opening", "No recipient is missing, and none is counted twice", "Print or save as PDF").
		HasNot("Of another shop", "The week before", "Upright line", "Compare with", "Make a link") // a drop that goes on is not compared
	g.As(staff.Marketer).Get(page).Is(200).Has("Make a link", "30 days")
	g.As(staff.Viewer, 11).Get(page).Is(http.StatusForbidden)
	b.Get("/templates/999/report").Is(http.StatusNotFound)
	draft := g.Draft(10, time.Hour)
	b.Get(shell.TemplateURL(draft.ID) + "/report").Is(http.StatusConflict).Has("A draft has no report")
	b.Get("/results").Is(200).Has("The week before", "Of another shop")
	b.Get("/results?shop=11").Is(200).HasNot("The week before").Has("Of another shop")
	b.Get("/results?shop=nonsense").Is(200).Has("The week before")
	g.As(staff.Viewer, 10).Get("/results").Is(200).HasNot("Of another shop")
	g.As(staff.Viewer, 10).Get("/results?shop=11").Is(http.StatusForbidden)
}

// A report can be compared with any drop that the member may see. Other drops leave the drop before.
func TestReportIsComparedWithAnyDrop(t *testing.T) {
	g := consoletest.New(t)
	before, d, other := g.Published(10, 3*time.Hour), g.Published(10, 4*time.Hour), g.Published(11, 2*time.Hour)
	for i, p := range []template.Template{before, other} {
		g.Exec(`update templates set name = $2, opens_at = opens_at - interval '7 days', closes_at = closes_at - interval '7 days' where id = $1`, p.ID, []string{"The week before", "Of another shop"}[i])
		g.Exec(`insert into reservations (template_id, user_id, slots) values ($1, 1001, 1)`, p.ID)
		g.Exec(`insert into bookings values ($1, 11, 0, 80)`, p.ID)
	}
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, d.ID)
	g.Exec(`insert into reservations (template_id, user_id, slots) values ($1, 1001, 1)`, d.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id`)
	page := shell.TemplateURL(d.ID) + "/report"
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has("Compare with", "Upright line: The week before")
	b.Get(page + "?compare=" + strconv.FormatInt(other.ID, 10)).Is(200).Has("Upright line: Of another shop")
	for _, bad := range []string{"x", "-1", "999", strconv.FormatInt(d.ID, 10), strconv.FormatInt(g.Draft(10, time.Hour).ID, 10)} {
		b.Get(page + "?compare=" + bad).Is(200).Has("Upright line: The week before")
	}
	g.As(staff.Viewer, 10).Get(page + "?compare=" + strconv.FormatInt(other.ID, 10)).Is(200).Has("Upright line: The week before").HasNot("Of another shop")
}

// A tile chooses the figure of the chart, links and days its period; two ticked rows stand side by
// side with their difference.
func TestResultsByPeriod(t *testing.T) {
	g := consoletest.New(t)
	first, second, old := g.Published(10, 3*time.Hour), g.Published(10, 4*time.Hour), g.Published(10, 5*time.Hour)
	for i, p := range []template.Template{first, second, old} {
		g.Exec(`update templates set name = $2, opens_at = opens_at - make_interval(days => $3), closes_at = closes_at - make_interval(days => $3), issued = $4 where id = $1`,
			p.ID, []string{"First", "Second", "Of last month"}[i], []int{7, 6, 40}[i], []int{50, 80, 65}[i])
	}
	g.Exec(`update templates set valid_hours = 240 where id = $1`, second.ID)
	b := g.As(staff.Viewer)
	b.Get("/results").Is(200).Has("Revenue over the period", "2 drops from", "Dashed: the period before, with one drop.", "Issued 130 100% more than before +0% per drop").HasNot("Side by side")
	b.Get("/results?series=issued").Is(200).Has("“Second” issued most coupons: 80", "of the sum of all drops.", "The best drop of the period before was “Of last month” with 65. 23.1% more than before", "Issued by drop Second 80 First 50",
		"orders of the 2 drops that opened in this period")
	b.Get("/results?series=discount").Is(200).Has("Discount given over the period")
	b.Get("/results?sort=issued").Is(200).Has(`aria-sort="descending"`, "Total")
	b.Get("/results?series=nonsense&beside=x&period=nonsense").Is(200).Has("Revenue over the period", "2 drops from").HasNot("Side by side")
	b.Get("/results?period=12m").Is(200).Has("3 drops from", "Of last month", "No drop opened in the period before.").HasNot("Dashed:")
	g.Exec(`update templates set opens_at = opens_at - interval '1 year', closes_at = closes_at - interval '1 year' where id = $1`, old.ID)
	b.Get("/results?period=12m&series=issued").Is(200).Has("2 drops from", "Dashed: the period before, with one drop.", `class="barchart-column is-before"`)
	g.Exec(`update templates set opens_at = opens_at + interval '1 year', closes_at = closes_at + interval '1 year' where id = $1`, old.ID)
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	b.Get("/results?from="+day(50)+"&to="+day(30)).Is(200).Has("One drop from", "Of last month", `value="`+day(50)+`"`).HasNot("Second")
	b.Get("/results?to=" + day(30)).Is(200).Has("One drop from")
	b.Get("/results?from=" + day(20)).Is(200).Has("2 drops from")
	b.Get("/results?from=" + day(300) + "&to=" + day(280)).Is(200).Has("No drop opened in this period")
	for query, want := range map[string]string{"from=" + day(1) + "&to=" + day(3): "must not be before the first day", "from=x": "must be a date", "from=1990-01-01&to=" + day(0): "at most two years"} {
		b.Get("/results?"+query).Is(200).Has(want, "Check the first and the last day").HasNot("drops from")
	}
	b.Get(shell.TemplateURL(first.ID)+"/report").Is(200).Has("From stock to use", "No reminders were reserved.", "Coupons in stock").HasNot("Reserved a reminder")
	two := "beside=" + strconv.FormatInt(first.ID, 10) + "&beside=" + strconv.FormatInt(second.ID, 10)
	b.Get("/results?period=90d&series=issued&"+two).Is(200).Has("Side by side", "Difference", "Issued 80 50 +30 (+60%)", "Use rate 0% 0%", "Coupons of “Second", `name="period" value="90d"`)
	if rows := b.File("/results.csv?period=12m", 3); rows[1][1] != "Second" {
		t.Errorf("%v", rows)
	}
}

// Marketers make links to the report and revoke them.
func TestReportLinks(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 3*time.Hour)
	g.Published(11, 3*time.Hour)
	page := shell.TemplateURL(d.ID) + "/report"
	b := g.As(staff.Marketer)
	b.Post(page+"/links", url.Values{"days": {"30"}}).Is(http.StatusSeeOther)
	shown := b.Get(page).Is(200).Has("The link is ready to copy.", "Valid").Body
	token := consoletest.Between(shown, "http://127.0.0.1"+report.LinkPath, "<")
	links := report.Links{Links: user.NewLinks(consoletest.LinkSecret)}
	id, err := links.Parse(token)
	if err != nil || g.Number(`select count(*) from report_links where id = $1 and expires_at > now() + interval '29 days'`, id) != 1 {
		t.Fatalf("token %q: %v", token, err)
	}
	for _, days := range []string{"", "0", "-7", "8", "9999999999", "x"} {
		b.Post(page+"/links", url.Values{"days": {days}}).Is(http.StatusUnprocessableEntity).Has("Valid for")
	}
	revoke := page + "/links/1/revoke"
	g.As(staff.Viewer).Post(revoke, nil).Is(http.StatusForbidden)
	g.As(staff.Viewer).Post(page+"/links", url.Values{"days": {"7"}}).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Post(revoke, nil).Is(http.StatusForbidden)
	b.Post("/templates/2/report/links/1/revoke", nil).Is(http.StatusNotFound)
	b.Post(page+"/links/x/revoke", nil).Is(http.StatusNotFound)
	b.Post(revoke, nil).Is(http.StatusSeeOther)
	b.Post(revoke, nil).Is(http.StatusSeeOther)
	b.Get(page).Is(200).Has("Revoked").HasNot(token)
	b.Get("/audit").Is(200).Has("shared the report of", "revoked a link to the report of")
	for range report.MaxLinks {
		b.Post(page+"/links", url.Values{"days": {"7"}}).Is(http.StatusSeeOther)
	}
	b.Post(page+"/links", url.Values{"days": {"7"}}).Is(http.StatusConflict).Has("as many valid links as it may have")
}

func TestReportLinksNeedASecret(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Drops.Reports.Signed = report.Links{} })
	d := g.Published(10, 3*time.Hour)
	page := shell.TemplateURL(d.ID) + "/report"
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has("LINK_SECRET").HasNot("Make a link")
	b.Post(page+"/links", url.Values{"days": {"7"}}).Is(http.StatusConflict).Has("LINK_SECRET")
}

// A move says beforehand and afterwards how many reminder times are lost.
func TestMoveSaysWhichReminderTimesFallAway(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 3*time.Hour)
	page := shell.TemplateURL(d.ID)
	b := g.As(staff.Marketer)
	to := g.Now().Add(48 * time.Minute).Truncate(time.Minute) // two minutes from either time between which the reminders are lost
	form := url.Values{"opens_at": {to.In(consoletest.Berlin(t)).Format("2006-01-02T15:04:05")}, "version": {b.Get(page + "/move").Is(200).Field("version")}}
	b.Get(page + "/move?" + form.Encode()).Is(200).Has("3 reminder times are lost")
	b.Post(page+"/move", form).Is(http.StatusSeeOther)
	if shown := b.Get(page + "?tab=reminders").Is(200).Text(); !strings.Contains(shown, "3 reminder times were lost with the move.") || !strings.Contains(shown, "3 reminder times were lost when the opening was moved") {
		t.Error(shown)
	}
}

// The line of a drop whose coupons are drawn goes from the entries to the winners.
func TestEntriesOfADrawOnTheOverview(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 3*time.Hour)
	g.Exec(`update templates set opening_mode = 'draw' where id = $1`, d.ID)
	b := g.As(staff.Viewer)
	b.Get("/").Is(200).Has("Entries 0 Won 0 of 100") // the card is not published yet
	g.Exec(`insert into draws (template_id, template_version, state, key, source, cards, opens_at, closes_at) values ($1, 1, 'open', 'k', 'drand', '{c}', now() - interval '1 hour', now() + interval '3 hours')`, d.ID)
	g.Exec(`insert into draw_counts (template_id, shard, entered, departed) values ($1, 0, 40, 3), ($1, 1, 5, 0)`, d.ID)
	b.Get("/").Is(200).Has("Entries 42 Won 0 of 100").HasNot(">Claimed<", ">Reserved<")
}
