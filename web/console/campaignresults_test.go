package console

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	events "dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// brings makes batches of what it carries at once.
type brings struct{ store postgres.Campaigns }

func (b brings) Publish(ctx context.Context, ms []campaign.Message) error {
	for _, m := range ms {
		var r events.CampaignRanges
		if err := json.Unmarshal(m.Payload, &r); err != nil {
			return err
		}
		if _, err := b.store.StoreBatches(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// sentOut is a campaign to n users in two versions and a hold-out that has
// gone out. Every fifth user wants no mail, the provider refuses some.
func (g *rig) sentOut(name string, shop int64, n int) campaign.Campaign {
	g.Helper()
	ctx, store := g.Context(), postgres.NewCampaigns(g.db)
	g.exec(`insert into users (id, email, opt_outs) select i, 'u' || i || '@example.com', case when i % 5 = 0 then 2 else 0 end from generate_series(1, $1::int) i on conflict do nothing`, n)
	texts := map[string]delivery.Text{"": {Title: "Hello", Body: "Come"}}
	spec := campaign.Spec{Shop: shop, Name: name, Channel: delivery.Email, Audience: campaign.Audience{Kind: campaign.Everybody},
		Content:  delivery.Copy{HoldOut: 20, Variants: []delivery.Variant{{Percent: 50, Texts: texts}, {Percent: 50, Texts: texts}}},
		StartsAt: g.now().Add(-time.Second), EndsAt: g.now().Add(time.Hour)}
	c, err := g.Campaigns.Create(ctx, staff.System(), spec, "")
	g.must(err)
	_, err = g.Campaigns.Do(ctx, staff.System(), c.ID, 0, campaign.Publishing, "")
	g.must(err)
	launcher := &campaign.Launcher{Store: store, Wire: brings{store}, Queue: idle{}, Now: g.now, LeaseFor: 10 * time.Second}
	g.must(launcher.Start(ctx, c.ID))
	g.must(launcher.Cut(ctx, c.ID))
	d := &delivery.Service{Store: postgres.NewBatches(g.db), Queue: idle{}, Admission: idle{}, Policy: delivery.DefaultPolicy(), LeaseFor: 10 * time.Second,
		Random: rand.Float64, Now: g.now, Guards: map[delivery.Kind]delivery.Guard{delivery.KindCampaign: &campaign.Guard{Store: store}},
		Senders: map[delivery.Channel]delivery.Sender{delivery.Email: provider{delivery.Email, func(m delivery.Message) delivery.Result {
			if m.To.ID%49 == 4 {
				return delivery.Result{Status: delivery.Permanent, Detail: "550 <no> such mailbox"}
			}
			return delivery.Result{Status: delivery.Delivered}
		}}}}
	g.must(d.Drain(ctx, delivery.Email))
	_, err = store.Settle(ctx)
	g.must(err)
	c, err = store.Campaign(ctx, c.ID)
	g.must(err)
	return c
}

// count has the results of every campaign counted.
func (g *rig) count() {
	g.Helper()
	g.exec(`update campaigns set count_due_at = '-infinity'`)
	for {
		more, err := postgres.NewCampaigns(g.db).CountNext(g.Context())
		g.must(err)
		if !more {
			return
		}
	}
}

func TestResultsOnTheCampaignsPage(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	c := g.sentOut("Moon cakes", 10, 400)
	b, url := g.as(staff.Viewer), fmt.Sprintf("/campaigns/%d", c.ID)
	b.get(url).is(200).has("The first figures appear here within half a minute of the campaign’s start", "not checked yet", "such mailbox")
	b.get(url + "?account=now").is(200).has("adds up")
	g.count()
	page := b.get(url).is(200).has("A, the first version", "B, the second version", "Held out", "about no template", "adds up", "Recipients", "All recipients")
	page.hasNot("not checked yet", "<no>")
	b.get(url + "/results").to(url) // without scripts
	b.htmx().get(url+"/results").is(200).has(`id="campaign-results"`, "Counted up to").hasNot("<html")

	// About a template, what people do decides.
	tpl := g.published(10, time.Hour)
	g.exec(`update campaigns set audience = jsonb_build_object('kind', 'holds_template_id', 'id', $1::bigint::text)`, tpl.ID)
	for id := user.ID(1); id <= 400; id++ {
		if v := c.Content.Pick(c.ID, id); v == 1 && id%2 == 0 || v == 0 && id%20 == 0 {
			g.exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at, used_at)
				values ($1, $2, $2, 'claim', 'used', now(), now() + interval '1 day', clock_timestamp())`, tpl.ID, int64(id))
		}
	}
	g.count()
	b.header.Del("HX-Request")
	b.get(url).is(200).has("B is better:", "The message worked:", "Nobody opened the link yet, with A or with B.", "Used the coupon")
	b.get("/campaigns/999/results").is(404)
	g.as(staff.Viewer, 11).get(url + "/results").is(http.StatusForbidden)
}

// Who sleeps is shown apart, within those in flight, and as waiting in the list.
func TestSleepersOnTheCampaignsPage(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	c := g.sentOut("Moon cakes", 10, 400)
	url := fmt.Sprintf("/campaigns/%d", c.ID)
	b := g.as(staff.Viewer)
	b.get(url).is(200).hasNot("in quiet hours")
	// Three of whom it was sent to sleep after all, two of them until half past.
	g.exec(`update campaigns set state = 'running', settled_at = null, ended_at = null where id = $1`, c.ID)
	g.exec(`with x as (select batch_id, user_id, row_number() over (order by user_id) as n from exceptions where outcome = 'dead' limit 3)
		update exceptions e set outcome = 'failed', reason = 'quiet_hours', detail = '', next_retry_at = date_trunc('hour', now()) + make_interval(hours => 9, mins => case x.n when 3 then 45 else 30 end)
		from x where e.batch_id = x.batch_id and e.user_id = x.user_id`)
	g.exec(`update batches set state = 'ready', dead_count = dead_count - 3, failed_count = 3, next_run_at = now() + interval '9 hours'`)
	var first string
	g.must(g.sql.QueryRow(g.Context(), `select to_char(date_trunc('hour', now()) at time zone 'UTC' + interval '9 hours 30 minutes', 'YYYY-MM-DD"T"HH24:MI')`).Scan(&first))
	b.get(url).is(200).has("3 recipients are in quiet hours", first, "3 of them waiting", "when quiet hours end", "waiting</span>").hasNot("will be retried</span>")
	b.htmx().get(url+"/progress").is(200).has("3 recipients are in quiet hours", first).hasNot("<html")
	b.header.Del("HX-Request")
	for query, want := range map[string]int{"?outcome=waiting": 3, "?outcome=failed": 0, "?outcome=in_flight": 3, "?outcome=waiting&reason=opted_out": 3} {
		page := b.get(url + "/recipients" + query).is(200)
		if n := strings.Count(page.body, "<tr data-row>"); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
		if want > 0 {
			page.has("waiting</span>").hasNot("will be retried</span>")
		}
	}
	// Once it is paused, nobody is told of a rate, but of who sleeps.
	g.exec(`update campaigns set state = 'paused' where id = $1`, c.ID)
	b.get(url).is(200).has("3 recipients are in quiet hours").hasNot("when quiet hours end")
}

func TestCampaignRecipients(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	c := g.sentOut("Moon cakes", 10, 400)
	held, out := 0, 0
	for id := user.ID(1); id <= 400; id++ {
		switch {
		case id%5 == 0:
			out++
		case c.Content.Pick(c.ID, id) == delivery.HeldOut:
			held++
		}
	}
	b, url := g.as(staff.Viewer), fmt.Sprintf("/campaigns/%d/recipients", c.ID)
	rows := func(query string) (n int) {
		for next := url + query; ; {
			page := b.get(next).is(200)
			n += strings.Count(page.body, "<tr data-row>")
			i := strings.Index(page.body, "Next page")
			if i < 0 {
				return n
			}
			links := strings.Split(page.body[:i], `href="`)
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
		b.get(url+"?"+odd).is(200).has("The filter cannot be read", "choose one").hasNot(url + ".csv")
		b.get(url + ".csv?" + odd).is(http.StatusUnprocessableEntity)
	}
	if a, b, h := rows("?variant=a"), rows("?variant=b"), rows("?variant=hold_out"); a+b+h != 400 || a < 100 || b < 100 || h < held {
		t.Errorf("%d, %d and %d", a, b, h)
	}
	b.get(url+"?user=4").is(200).has("550 &lt;no&gt; such mailbox", "failed")
	b.get(url + "?user=ada").is(200).has("must be a positive whole number")
	b.get(url + ".csv?user=ada").is(http.StatusUnprocessableEntity)
	b.get("/campaigns/999/recipients").is(404)
	b.get("/campaigns/999/recipients.csv").is(404)
	g.as(staff.Viewer, 11).get(url).is(http.StatusForbidden)
	g.as(staff.Viewer, 11).get(url + ".csv").is(http.StatusForbidden)

	file := b.get(url + ".csv?outcome=sent&variant=b").is(200)
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.body, "\uFEFF"))).ReadAll()
	g.must(err)
	if len(lines)-1 != rows("?outcome=sent&variant=b") || lines[0][0] != "user_id" || lines[1][1] != "sent" || lines[1][3] != "b" || lines[1][4] != "email" || lines[1][5] != "" || lines[1][11] == "" || lines[1][12] == "" {
		t.Errorf("%d lines: %v …", len(lines), lines[:2])
	}
	if name := file.header.Get("Content-Disposition"); !strings.Contains(name, fmt.Sprintf("campaign-%d-recipients.csv", c.ID)) {
		t.Errorf("the file is called %q", name)
	}

	// When its rows have gone, it says so.
	g.exec(`delete from batches`)
	b.get(url).is(200).has("Individual outcomes are kept for a limited time.")
	b.get(fmt.Sprintf("/campaigns/%d", c.ID)).is(200).has("Individual outcomes are kept for a limited time.")
}

func TestCompareCampaigns(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	g.shop(11)
	var all []campaign.Campaign
	for i := range 24 {
		all = append(all, g.sentOut(fmt.Sprintf("Sale no. %02d", i), 10, 20))
	}
	theirs := g.sentOut("Of another shop", 11, 20)
	last := g.sentOut("The last one", 10, 20)
	g.count()
	b, url := g.as(staff.Viewer), fmt.Sprintf("/campaigns/%d", last.ID)
	b.get(url).is(200).has("Sale no. 23", "Sale no. 21", url+"/compare").hasNot("Sale no. 20", "Of another shop")
	page := b.get(url+"/compare").is(200).has("Sale no. 23", "Sale no. 04", "This campaign").hasNot("Sale no. 03", "Of another shop")
	if n := strings.Count(page.body, "<tr data-row>"); n != 4 {
		t.Errorf("%d campaigns side by side, want 4", n)
	}
	page = b.get(fmt.Sprintf("%s/compare?with=%d&with=%d&with=%d&with=999&with=x&before=%d", url, all[1].ID, all[20].ID, theirs.ID, all[4].ID)).is(200)
	page.has("3 campaigns are left out", "Sale no. 01", "Sale no. 20", "Sale no. 00").hasNot("Sale no. 04", "Of another shop", "Sale no. 23")
	if n := strings.Count(page.body, "<tr data-row>"); n != 3 || !strings.Contains(page.body, fmt.Sprintf(`type="hidden" name="with" value="%d"`, all[20].ID)) {
		t.Errorf("%d campaigns side by side, want 3, and the one chosen before", n)
	}
	b.get(fmt.Sprintf("/campaigns/%d/compare", all[0].ID)).is(200).has("No earlier campaigns")
	b.get("/campaigns/999/compare").is(404)
	g.as(staff.Viewer, 11).get(url + "/compare").is(http.StatusForbidden)
}

// TestRecipientsInTheBrowser filters without loading the page anew, and leads
// from the campaign's page to the whole list.
func TestRecipientsInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	c := g.sentOut("Moon cakes", 10, 120)
	g.count()
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(fmt.Sprintf("%s/campaigns/%d", g.server.URL, c.ID))
	b.sees("#campaign-results", "A, the first version", "Held out")
	b.accessible("the campaign")
	b.press(".recipients-card", "All recipients")
	b.sees("main", "Everybody in the audience", "550 <no> such mailbox")
	b.fill("#f-outcome", "held_out")
	for deadline := time.Now().Add(15 * time.Second); !strings.Contains(evaluate[string](b, `location.search`), "outcome=held_out"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the address says %q", evaluate[string](b, `location.search`))
		}
	}
	if got := b.text("#results"); !strings.Contains(got, "Held out") || strings.Contains(got, "delivered") {
		t.Errorf("held out are\n%s", got)
	}
	b.fill("#f-user", "4")
	b.sees("#results", "No matches")
	b.press("#results", "Clear filters")
	b.sees("#results", "550 <no> such mailbox")
	b.accessible("recipients")
	b.open(fmt.Sprintf("%s/campaigns/%d/compare", g.server.URL, c.ID))
	b.sees("main", "No earlier campaigns")
	b.accessible("a comparison")
}
