package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// fired stores batches of slot 1 of the template with users from 1 on, of
// whom every tenth was skipped, as firing and delivering would have.
func (g *rig) fired(t template.Template, batches, each int) {
	g.Helper()
	for b := range batches {
		due, sent := roaring64.New(), roaring64.New()
		skipped := 0
		for i := range each {
			id := uint64(b*each + i + 1)
			due.Add(id)
			if id%10 == 0 {
				skipped++
				continue
			}
			sent.Add(id)
		}
		dueRaw, err := due.ToBytes()
		g.must(err)
		sentRaw, err := sent.ToBytes()
		g.must(err)
		g.exec(`with b as (insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, skipped_count)
				select 'reminder', id, template_id, 0, $2, $3, 'done', due_at, opens_at, $4, $5, $6::int, $6::int - $7::int, $7::int from slots where template_id = $1 and slot = 1 returning id)
			insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, u, 0, 'skipped', 'opted_out' from b, generate_series($2::bigint, $3::bigint) u where u % 10 = 0`,
			t.ID, b*each+1, (b+1)*each, dueRaw, sentRaw, each, skipped)
	}
}

func rowsOf(a answer) [][]string {
	a.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.body, "\uFEFF"))).ReadAll()
	if err != nil {
		a.Fatal(err)
	}
	return rows
}

func TestDeliveryPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	b.get("/deliveries").is(200).has("Nothing was delivered yet")
	d := g.published(10, 2*time.Hour)
	g.fired(d, 2*shell.PageSize+3, 30)
	b.get("/deliveries").is(200).has("Reminder 5 min before", "Moon cake night", "27 of 30 delivered, 3 skipped", "Next page", "/deliveries.csv")
	seen, next := 0, "/deliveries?channel=app&slot=1&kind=reminder&state=done&outcome=skipped"
	for next != "" {
		a := b.get(next).is(200)
		seen, next = seen+strings.Count(a.body, "Reminder 5 min before"), nextPage(a)
	}
	if seen != 2*shell.PageSize+3 {
		t.Errorf("%d batches on all pages", seen)
	}
	b.get("/deliveries?outcome=dead").is(200).has("No matches")
	b.get("/deliveries?user=40").is(200).has("User 40", "skipped", `/deliveries/2"`).hasNot(`/deliveries/1"`)
	b.get("/deliveries?user=40&outcome=sent").is(200).has("No matches")
	b.get("/deliveries?user=ada&template=0&from=soon").is(200).has("The filter cannot be read", "must be a positive whole number", "is not a date and time", `value="ada"`)
	for _, odd := range []string{"slot=99", "channel=x", "state=x", "outcome=x", "kind=x", "outcome=sent&state=x"} {
		b.get("/deliveries?"+odd).is(200).has("The filter cannot be read", "choose one", `aria-invalid="true"`).hasNot("27 of 30 delivered", "/deliveries.csv")
		b.get("/deliveries.csv?" + odd).is(http.StatusUnprocessableEntity)
	}
	b.get("/deliveries?slot=&channel=&state=&outcome=&kind=&after=x").is(200).has("27 of 30 delivered")
	b.get("/deliveries/2?outcome=x").is(200).has("The filter cannot be read", "choose one").hasNot("User 40")
	b.get("/deliveries/2/recipients.csv?outcome=x").is(http.StatusUnprocessableEntity)
	b.get("/deliveries?user=%EF%BC%94%EF%BC%90").is(200).has(`/deliveries/2"`).hasNot(`/deliveries/1"`)
	// The rig's console shows Shanghai's time, where the slot is due at this hour.
	due := d.OpensAt.Add(-5 * time.Minute)
	shanghai := due.In(g.DefaultZone).Format("2006-01-02T15:04")
	b.get("/deliveries?from=" + shanghai).is(200).has("27 of 30")
	b.get("/deliveries?to=" + shanghai).is(200).has("No matches")
	g.as(staff.Viewer).htmx().get("/deliveries?user=40").is(200).has("skipped").hasNot("<html")

	b.get("/deliveries/2").is(200).has("Batch #2", "27 of 30 delivered", "31 – 60", fmt.Sprintf("/templates/%d/users/31", d.ID), "Next page")
	b.get("/deliveries/2?outcome=skipped").is(200).has("User 40", "User 50", "User 60", "opted out").hasNot("User 41", "Next page")
	b.get("/deliveries/2?user=40").is(200).has("User 40").hasNot("User 50")
	b.get("/deliveries/2?user=7").is(200).has("Nobody fits")
	b.get("/deliveries/2?user=x").is(200).has("must be a positive whole number")
	last := nextPage(b.get("/deliveries/2"))
	b.get(last).is(200).has("User 60", "First page").hasNot("User 31", "Next page")
	for _, path := range []string{"/deliveries/99", "/deliveries/0", "/deliveries/x", "/deliveries/99/recipients.csv"} {
		b.get(path).is(http.StatusNotFound)
	}
	limited := g.as(staff.Admin, 11)
	limited.get("/deliveries").is(200).has("Nothing was delivered yet")
	limited.get("/deliveries/2").is(http.StatusForbidden)
	limited.get("/deliveries/2/recipients.csv").is(http.StatusForbidden)
	if rows := rowsOf(limited.get("/deliveries.csv").is(200)); len(rows) != 1 {
		t.Errorf("%d rows of another shop", len(rows)-1)
	}

	rows := rowsOf(b.get("/deliveries/2/recipients.csv?outcome=skipped").is(200))
	if len(rows) != 4 || rows[1][0] != "40" || rows[1][1] != string(delivery.Skipped) || rows[1][2] != delivery.ReasonOptedOut {
		t.Errorf("%q", rows)
	}
	rows = rowsOf(b.get("/deliveries.csv?outcome=skipped&user=40").is(200))
	if len(rows) != 2 || rows[1][0] != "2" || rows[1][len(rows[1])-1] != "skipped" || rows[1][6] != "5" {
		t.Errorf("%q", rows)
	}
	b.get("/deliveries.csv?user=ada").is(http.StatusUnprocessableEntity)
}

// Files have every row, however many pages that is, and only those that the
// viewer may see.
func TestExports(t *testing.T) {
	g := newRig(t)
	const many = shell.ExportPage + 7
	d := g.published(10, 2*time.Hour)
	g.shop(11)
	g.exec(`insert into templates (shop_number, name, kind, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10 + n % 2, '=Drop ' || n, 'amount_off', 'CNY', 'shop', 1, 1, date_trunc('second', now()) + (n / 3) * interval '1 minute', now() + interval '1 day', 1, 'claim', 'durable', 'draft'
		from generate_series(1, $1) n`, 2*many)
	g.exec(`insert into users (id, name, email, opt_outs) select n, '@user ' || n, 'user' || n || '@example.com', 5 from generate_series(1, $1) n`, many)
	g.exec(`insert into audit (actor, action, object_kind, object_id, shop_number, reason) select 'staff:9 Zoë', 'template.move', 'template', n, 10 + n % 2, 'because of rain ' || n from generate_series(1, $1) n`, 2*many)
	g.fired(d, 1, 1000)
	g.exec(`update exceptions set outcome = 'dead', detail = '-2+3' `)
	b, limited := g.as(staff.Marketer), g.as(staff.Viewer, 11)
	count := func(b *browser, path string, want int) [][]string {
		t.Helper()
		rows := rowsOf(b.get(path).is(200))
		if len(rows)-1 != want {
			t.Errorf("%s: %d rows, want %d", path, len(rows)-1, want)
		}
		return rows
	}
	rows := count(b, "/templates.csv", 2*many+1)
	if !strings.HasPrefix(rows[1][3], "'=Drop") {
		t.Errorf("a formula: %q", rows[1])
	}
	count(b, "/templates.csv?state=draft&shop=10&sort=latest&after=1_1", many)
	count(limited, "/templates.csv", many)
	rows = count(b, "/users.csv?q=%40user", many)
	if rows[1][1] != "'@user 1" || rows[1][6] != "' app sms" && rows[1][6] != " app sms" {
		t.Errorf("%q", rows[1])
	}
	if n := len(rowsOf(b.get("/audit.csv?action=user.export").is(200))); n != 2 {
		t.Errorf("%d records of one export of contacts", n-1)
	}
	b.get("/users.csv").to("/users")
	limited.get("/users.csv?q=a").is(http.StatusForbidden)
	limited.get("/users?q=%40user").is(200).hasNot("/users.csv")
	b.get("/users?q=%40user").is(200).has("/users.csv?q=%40user")
	count(b, "/audit.csv?action=template.move", 2*many)
	count(b, "/audit.csv?q=RAIN+101", 6) // 101, and 1010 to 1014
	count(limited, "/audit.csv?action=template.move", many)
	rows = count(b, "/dead-letters.csv?channel=app", 100)
	if rows[1][6] != "'-2+3" {
		t.Errorf("%q", rows[1])
	}
	count(limited, "/dead-letters.csv", 0)
	count(b, "/dead-letters.csv?user=20", 1)
	b.get("/dead-letters.csv?user=x").is(http.StatusUnprocessableEntity)
}

func TestAuditFilters(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Marketer)
	g.exec(`update staff set name = 'Zoë Okafor' where id = $1`, m.ID)
	d := g.published(10, 2*time.Hour)
	g.published(11, 2*time.Hour)
	b := g.browser()
	b.signIn(m.Email)
	b.post(templateURL(d.ID)+"/pause", map[string][]string{"reason": {"Heavy 100% rain"}}).to(templateURL(d.ID))
	b.get("/audit").is(200).has("Heavy 100% rain", "template.publish", "staff.create", "/audit.csv")
	b.get("/audit?actor=okafor").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?actor=" + m.Email[:12]).is(200).has("Heavy 100% rain")
	b.get("/audit?actor=nobody").is(200).has("Clear filters")
	b.get("/audit?q=100%25+RAIN").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?q=100_").is(200).hasNot("Heavy 100% rain")
	b.get("/audit?action=template.pause").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?shop=11").is(200).has("published").hasNot("Heavy 100% rain")
	b.get("/audit?kind=template&id="+fmt.Sprint(d.ID)).is(200).has("Heavy 100% rain", ">Paused<", ">Published<")
	g.as(staff.Viewer, 11).get("/audit").is(200).hasNot("Heavy 100% rain")
}
