package campaigns_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

func TestResultsOnTheCampaignsPage(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	c := g.SentOut("Moon cakes", 10, 400)
	b, url := g.As(staff.Viewer), fmt.Sprintf("/campaigns/%d", c.ID)
	b.Get(url).Is(200).Has("The first figures appear here within half a minute of the campaign’s start", "not checked yet", "such mailbox")
	b.Get(url + "?account=now").Is(200).Has("No recipient missing")
	g.Count()
	page := b.Get(url).Is(200).Has("A, the first version", "B, the second version", "Control group", "Opened the link", "No recipient missing", "Recipients", "All recipients")
	page.HasNot("not checked yet", "<no>")
	b.Get(url + "/results").To(url) // without scripts
	b.Htmx().Get(url+"/results").Is(200).Has(`id="campaign-results"`, "Counted up to").HasNot("<html")

	// With a template, users' actions decide.
	tpl := g.Published(10, time.Hour)
	g.Exec(`update campaigns set audience = jsonb_build_object('kind', 'holds_template_id', 'id', $1::bigint::text)`, tpl.ID)
	for id := user.ID(1); id <= 400; id++ {
		if v := c.Content.Pick(c.ID, id); v == 1 && id%2 == 0 || v == 0 && id%20 == 0 {
			g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at, used_at)
				values ($1, $2, $2, 'claim', 'used', now(), now() + interval '1 day', clock_timestamp())`, tpl.ID, int64(id))
		}
	}
	g.Count()
	b.Header.Del("HX-Request")
	b.Get(url).Is(200).Has("B is better, by customers who", "because of the message:", "No customer opened the link yet, with A or B.", "Used the coupon")
	b.Get("/campaigns/999/results").Is(404)
	g.As(staff.Viewer, 11).Get(url + "/results").Is(http.StatusForbidden)
}

// A user in quiet hours is shown separately among the messages in flight, and as waiting in the
// list.
func TestSleepersOnTheCampaignsPage(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	c := g.SentOut("Moon cakes", 10, 400)
	url := fmt.Sprintf("/campaigns/%d", c.ID)
	b := g.As(staff.Viewer)
	b.Get(url).Is(200).HasNot("in quiet hours")
	// Three of the recipients are in quiet hours, two of them until half past.
	g.Exec(`update campaigns set state = 'running', settled_at = null, ended_at = null where id = $1`, c.ID)
	g.Exec(`with x as (select batch_id, user_id, row_number() over (order by user_id) as n from exceptions where outcome = 'dead' limit 3)
		update exceptions e set outcome = 'failed', reason = 'quiet_hours', detail = '', next_retry_at = date_trunc('hour', now()) + make_interval(hours => 9, mins => case x.n when 3 then 45 else 30 end)
		from x where e.batch_id = x.batch_id and e.user_id = x.user_id`)
	g.Exec(`update batches set state = 'ready', dead_count = dead_count - 3, failed_count = 3, next_run_at = now() + interval '9 hours'`)
	var first string
	g.Must(g.SQL.QueryRow(g.Context(), `select to_char(min(next_retry_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI') from exceptions where outcome = 'failed'`).Scan(&first))
	b.Get(url).Is(200).Has("3 recipients are in quiet hours", first, "3 of them waiting", "when quiet hours end", "Waiting</span>").HasNot("Will be retried</span>")
	b.Htmx().Get(url+"/progress").Is(200).Has("3 recipients are in quiet hours", first).HasNot("<html")
	b.Header.Del("HX-Request")
	for query, want := range map[string]int{"?outcome=waiting": 3, "?outcome=failed": 0, "?outcome=in_flight": 3, "?outcome=waiting&reason=opted_out": 3} {
		page := b.Get(url + "/recipients" + query).Is(200)
		if n := strings.Count(page.Body, "<tr data-row>"); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
		if want > 0 {
			page.Has("Waiting</span>").HasNot("Will be retried</span>")
		}
	}
	// Recipients who wait for the winner of a test have not failed either.
	waiter := user.ID(g.Number(`select min(user_id) from exceptions where outcome = 'failed'`))
	g.Exec(`update exceptions set reason = 'test_undecided' where outcome = 'failed' and user_id = $1`, waiter)
	b.Get(url+"/recipients?outcome=undecided").Is(200).Has("Waits for the winner</span>", waiter.String())
	b.Get(url + "/recipients?outcome=failed").Is(200).Has("No matches")
	b.Get("/users/" + waiter.String()).Is(200).Has("Waits for the winner</span>").HasNot("Will be retried</span>")
	g.Exec(`update exceptions set reason = 'quiet_hours' where outcome = 'failed'`)
	// A paused campaign shows no rate, but the recipients in quiet hours.
	g.Exec(`update campaigns set state = 'paused' where id = $1`, c.ID)
	b.Get(url).Is(200).Has("3 recipients are in quiet hours").HasNot("when quiet hours end")
}

func TestCampaignRecipients(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	c := g.SentOut("Moon cakes", 10, 400)
	held, out := 0, 0
	for id := user.ID(1); id <= 400; id++ {
		switch {
		case id%5 == 0:
			out++
		case c.Content.Pick(c.ID, id) == delivery.HeldOut:
			held++
		}
	}
	b, url := g.As(staff.Viewer), fmt.Sprintf("/campaigns/%d/recipients", c.ID)
	rows := func(query string) (n int) {
		for next := url + query; ; {
			page := b.Get(next).Is(200)
			n += strings.Count(page.Body, "<tr data-row>")
			i := strings.Index(page.Body, "Next page")
			if i < 0 {
				return n
			}
			links := strings.Split(page.Body[:i], `href="`)
			next = strings.ReplaceAll(links[len(links)-1][:strings.Index(links[len(links)-1], `"`)], "&amp;", "&")
		}
	}
	for query, want := range map[string]int{"": 400, "?outcome=held_out": held, "?reason=opted_out": out, "?outcome=skipped": held + out, "?outcome=expired": 0,
		"?outcome=held_out&reason=opted_out": held, "?user=7": 1, "?user=401": 0, "?after=nonsense": 400, "?user=10&outcome=sent": 0} {
		if got := rows(query); got != want {
			t.Errorf("%q shows %d rows, want %d", query, got, want)
		}
	}
	for _, odd := range []string{"outcome=nonsense", "reason=xyz", "outcome=held_out&reason=xyz", "variant=c"} {
		b.Get(url+"?"+odd).Is(200).Has("The filter cannot be read", "choose one").HasNot(url + ".csv")
		b.Get(url + ".csv?" + odd).Is(http.StatusUnprocessableEntity)
	}
	if a, b, h := rows("?variant=a"), rows("?variant=b"), rows("?variant=hold_out"); a+b+h != 400 || a < 100 || b < 100 || h < held {
		t.Errorf("%d, %d and %d", a, b, h)
	}
	b.Get(url+"?user=4").Is(200).Has("550 &lt;no&gt; such mailbox", "Failed")
	b.Get(url + "?user=ada").Is(200).Has("nothing has this name")
	b.Get(url + ".csv?user=ada").Is(http.StatusUnprocessableEntity)
	b.Get("/campaigns/999/recipients").Is(404)
	b.Get("/campaigns/999/recipients.csv").Is(404)
	g.As(staff.Viewer, 11).Get(url).Is(http.StatusForbidden)
	g.As(staff.Viewer, 11).Get(url + ".csv").Is(http.StatusForbidden)

	file := b.Get(url + ".csv?outcome=sent&variant=b").Is(200)
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.Body, "\uFEFF"))).ReadAll()
	g.Must(err)
	if len(lines)-1 != rows("?outcome=sent&variant=b") || lines[0][0] != "user_id" || lines[1][1] != "sent" || lines[1][3] != "b" || lines[1][4] != "email" || lines[1][5] != "" || lines[1][11] == "" || lines[1][12] == "" {
		t.Errorf("%d lines: %v …", len(lines), lines[:2])
	}
	if name := file.Header.Get("Content-Disposition"); !strings.Contains(name, fmt.Sprintf("campaign-%d-recipients.csv", c.ID)) {
		t.Errorf("the file is called %q", name)
	}

	// When its rows have gone, it says so.
	g.Exec(`delete from batches`)
	b.Get(url).Is(200).Has("Individual outcomes are kept for a limited time.")
	b.Get(fmt.Sprintf("/campaigns/%d", c.ID)).Is(200).Has("Individual outcomes are kept for a limited time.")
}

func TestCompareCampaigns(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Shop(11)
	var all []campaign.Campaign
	for i := range 24 {
		all = append(all, g.SentOut(fmt.Sprintf("Sale no. %02d", i), 10, 20))
	}
	theirs := g.SentOut("Of another shop", 11, 20)
	last := g.SentOut("The last one", 10, 20)
	g.Count()
	b, url := g.As(staff.Viewer), fmt.Sprintf("/campaigns/%d", last.ID)
	b.Get(url).Is(200).Has("Sale no. 23", "Sale no. 21", url+"/compare").HasNot("Sale no. 20", "Of another shop")
	page := b.Get(url+"/compare").Is(200).Has("Sale no. 23", "Sale no. 04", "This campaign").HasNot("Sale no. 03", "Of another shop")
	if n := strings.Count(page.Body, "<tr data-row>"); n != 4 {
		t.Errorf("%d campaigns side by side, want 4", n)
	}
	page = b.Get(fmt.Sprintf("%s/compare?with=%d&with=%d&with=%d&with=999&with=x&before=%d", url, all[1].ID, all[20].ID, theirs.ID, all[4].ID)).Is(200)
	page.Has("3 campaigns are left out", "Sale no. 01", "Sale no. 20", "Sale no. 00").HasNot("Sale no. 04", "Of another shop", "Sale no. 23")
	if n := strings.Count(page.Body, "<tr data-row>"); n != 3 || !strings.Contains(page.Body, fmt.Sprintf(`type="hidden" name="with" value="%d"`, all[20].ID)) {
		t.Errorf("%d campaigns side by side, want 3, and the one chosen before", n)
	}
	b.Get(fmt.Sprintf("/campaigns/%d/compare", all[0].ID)).Is(200).Has("No earlier campaigns")
	b.Get("/campaigns/999/compare").Is(404)
	g.As(staff.Viewer, 11).Get(url + "/compare").Is(http.StatusForbidden)
}

// TestRecipientsInTheBrowser filters without reloading the page, and follows the link from the
// campaign's page to the whole list.
func TestRecipientsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	c := g.SentOut("Moon cakes", 10, 120)
	g.Count()
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(fmt.Sprintf("%s/campaigns/%d", g.Server.URL, c.ID))
	b.Sees("#campaign-results", "A, the first version", "Control group")
	b.Accessible("the campaign")
	b.Click(".drawer:has(.recipients-card) > summary")
	b.Press(".recipients-card", "All recipients")
	b.Sees("main", "All customers of the audience", "550 <no> such mailbox")
	b.Fill("#f-outcome", "held_out")
	consoletest.Within(t, "the address with the filter", func() bool { return strings.Contains(b.Path(), "outcome=held_out") })
	consoletest.Within(t, "those held out, and nobody else", func() bool {
		got := b.Text("#results")
		return strings.Contains(got, "Control group") && !strings.Contains(got, "Sent")
	})
	b.Fill("#f-user", "4")
	b.Sees("#results", "No matches")
	b.Press("#results", "Clear filters")
	b.Sees("#results", "550 <no> such mailbox")
	b.Accessible("recipients")
	b.Open(fmt.Sprintf("%s/campaigns/%d/compare", g.Server.URL, c.ID))
	b.Sees("main", "No earlier campaigns")
	b.Accessible("a comparison")
}
