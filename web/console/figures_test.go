package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/money"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// batchesSQL selects the batches of the present opening of drop $1. Each recipient's outcome comes
// from the batch and its exception rows alone, not from counters of slots, drops or campaigns.
const batchesSQL = `with b as (
	select b.id, b.channel, b.owner_id, b.due_count as due, b.sent_count as sent,
		(select count(*) from exceptions e where e.batch_id = b.id and e.outcome = 'skipped') as skipped,
		(select count(*) from exceptions e where e.batch_id = b.id and e.outcome = 'expired') as expired,
		(select count(*) from exceptions e where e.batch_id = b.id and e.outcome in ('dead', 'discarded')) as dead
	from slots s join templates t on t.id = s.template_id and t.opens_at = s.opens_at
		join batches b on b.kind = 'reminder' and b.owner_id = s.id where t.id = $1)
select coalesce(sum(%s), 0) from b where %s`

// outcomes are the numbers of a balance sheet, over [batchesSQL].
var outcomes = map[string]string{"reserved": "due", "sent": "sent", "skipped": "skipped", "expired": "expired", "dead": "dead", "inflight": "due - sent - skipped - expired - dead"}

// worthSQL counts what customer $1 brought.
var worthSQL = map[string]string{
	"used":    `select count(*) from coupons where user_id = $1 and state = 'used'`,
	"orders":  `select count(*) ` + usedBy,
	"revenue": `select sum(l.order_amount - l.discount)::bigint ` + usedBy,
	"basket":  `select round(sum(l.order_amount - l.discount) / count(*))::bigint ` + usedBy,
}

const usedBy = `from coupons c join coupon_operations l on l.coupon_id = c.id and l.step = 'lock' and l.outcome = 'done' where c.user_id = $1 and c.state = 'used'`

// rowsSQL counts each figure of a drop's pages from rows.
var rowsSQL = map[string]string{
	"reminders:booked": `select (select count(*) from reservations r join slots s on s.template_id = r.template_id and s.state <> 'finished'
			join templates t on t.id = s.template_id and t.opens_at = s.opens_at, generate_series(0, 4) c
			where r.template_id = $1 and r.slots & (1::bigint << (12 * c + s.slot - 1)) <> 0)
		+ (select coalesce(sum(b.due_count), 0) from slots s join batches b on b.kind = 'reminder' and b.owner_id = s.id where s.template_id = $1)`,
	"reminders:sent":     fmt.Sprintf(batchesSQL, "sent", "true"),
	"reminders:skipped":  fmt.Sprintf(batchesSQL, "skipped", "true"),
	"reminders:lost":     fmt.Sprintf(batchesSQL, "expired + dead", "true"),
	"reminders:inflight": fmt.Sprintf(batchesSQL, outcomes["inflight"], "true"),
	"reminders:after":    `select count(*) from slots s join batches b on b.owner_id = s.id and b.kind = 'reminder' where s.template_id = $1 and b.finished_at > s.opens_at`,
	"coupons:total":      `select stock from templates where id = $1`,
	"coupons:issued":     `select count(*) from coupons where template_id = $1 and not returned`,
	"coupons:left":       `select stock - (select count(*) from coupons where template_id = $1 and not returned) from templates where id = $1`,
	"customers:used":     `select count(*) from coupons where state = 'used' and $1::bigint > 0`,
	"tally:unused":       `select count(*) from coupons where template_id = $1 and state = 'unused'`,
	"tally:locked":       `select count(*) from coupons where template_id = $1 and state = 'locked'`,
	"tally:used":         `select count(*) from coupons where template_id = $1 and state = 'used'`,
	"tally:expired":      `select count(*) from coupons where template_id = $1 and state = 'expired'`,
	"tally:revoked":      `select count(*) from coupons where template_id = $1 and state = 'revoked' and not returned`,
	"tally:returned":     `select count(*) from coupons where template_id = $1 and returned`,
	"tally:suspended":    `select count(*) from coupons where template_id = $1 and state = 'suspended'`,
	"people:booked":      `select count(*) from reservations where template_id = $1`,
	"people:reminded":    `select count(*) from reservations r where r.template_id = $1 and r.user_id not in (1002, 1003, 1009)`, // an opt-out, a refused address, a reminder that waits
	"links:opened":       `select count(*) from drop_openings where template_id = $1`,
	"people:opened":      `select count(*) from drop_openings o join reservations r using (template_id, user_id) where o.template_id = $1`,
	"people:claimed":     `select count(distinct c.user_id) from coupons c join reservations r using (template_id, user_id) where c.template_id = $1`,
	"people:used":        `select count(distinct c.user_id) from coupons c join reservations r using (template_id, user_id) where c.template_id = $1 and c.state = 'used'`,
	"people:others":      `select count(distinct c.user_id) from coupons c where c.template_id = $1 and not exists (select from reservations r where r.template_id = c.template_id and r.user_id = c.user_id)`,
}

// campaignSQL counts each figure of campaign $1 from its batches.
var campaignSQL = map[string]string{
	"people":   `select sum(due_count) from batches where kind = 'campaign' and owner_id = $1`,
	"sent":     `select sum(due_count) - (select count(*) from exceptions e join batches b on b.id = e.batch_id where b.kind = 'campaign' and b.owner_id = $1 and e.outcome <> 'recovered') from batches where kind = 'campaign' and owner_id = $1`,
	"skipped":  `select count(*) from exceptions e join batches b on b.id = e.batch_id where b.kind = 'campaign' and b.owner_id = $1 and e.outcome = 'skipped'`,
	"expired":  `select count(*) from exceptions e join batches b on b.id = e.batch_id where b.kind = 'campaign' and b.owner_id = $1 and e.outcome = 'expired'`,
	"dead":     `select count(*) from exceptions e join batches b on b.id = e.batch_id where b.kind = 'campaign' and b.owner_id = $1 and e.outcome = 'dead'`,
	"inflight": `select count(*) from batches where kind = 'campaign' and owner_id = $1 and state <> 'done'`,
}

// courseSQL counts what campaign $1 brought about.
var courseSQL = map[string]string{
	"sent":      campaignSQL["sent"],
	"delivered": `select coalesce(sum(f.delivered_count), 0) from batch_feedback f join batches b on b.id = f.batch_id where b.kind = 'campaign' and b.owner_id = $1`,
	"opened":    `select count(*) from campaign_openings where campaign_id = $1`,
	"claimed":   `select coalesce(sum(claimed), 0) from campaign_results where campaign_id = $1 and variant >= 0`,
	"earned":    `select coalesce(sum(ordered - discount), 0) from campaign_results where campaign_id = $1 and variant >= 0`,
}

// paidSQL computes the amounts of drop $1 from the log of its coupons, in minor units. Each order is
// one coupon's.
const paidSQL = `with o as (select o.order_id, o.step, o.discount, l.order_amount as amount from coupon_operations o
	join coupon_operations l on l.coupon_id = o.coupon_id and l.order_id = o.order_id and l.step = 'lock' and l.outcome = 'done'
	join coupons c on c.id = o.coupon_id where c.template_id = $1 and o.outcome = 'done' and o.step in ('confirm', 'refund')),
	s as (select coalesce(sum(case step when 'confirm' then 1 else -1 end), 0) as orders, coalesce(sum(case step when 'confirm' then amount else -amount end), 0) as ordered,
		coalesce(sum(case step when 'confirm' then discount else -discount end), 0) as discount, coalesce(sum(amount - discount) filter (where step = 'refund'), 0) as refunded from o) `

var moneySQL = map[string]string{
	"orders":   paidSQL + `select orders from s`,
	"revenue":  paidSQL + `select ordered - discount from s`,
	"basket":   paidSQL + `select case when orders = 0 then 0 else round((ordered - discount)::numeric / orders)::bigint end from s`,
	"discount": paidSQL + `select discount from s`,
	"refunded": paidSQL + `select refunded from s`,
	"sms":      `select ceil(sum(micros) / 10000)::bigint from sms_drop_costs where template_id = $1`,
}

// smsSQL is what text messages about drops and of campaign $1, of all shops, cost in minor units.
const smsSQL = `select ceil(sum(micros) / 10000)::bigint from (select micros from sms_drop_costs union all select micros from sms_campaign_costs where campaign_id = $1) c`

// figures compares the figures of pages with rows.
type figures struct {
	*consoletest.Fixture
	drop, before template.Template
	campaign     campaign.Campaign
	seen         map[string]bool
}

var (
	figure = regexp.MustCompile(`data-figure="([^"]+)"[^>]*>(?:\s*<strong>)?\s*([^<]+)`)
	share  = regexp.MustCompile(`<td class="number">([<>]?[0-9.]+)%</td>`)
)

// want returns the number that the rows give for a figure.
func (f *figures) want(name string) int64 {
	f.Helper()
	if sql, ok := rowsSQL[name]; ok {
		return f.Number(sql, f.drop.ID)
	}
	parts := strings.Split(name, ":")
	last := parts[len(parts)-1]
	number := func(i int) int64 {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		f.Must(err)
		return n
	}
	switch {
	case parts[0] == "balance", parts[0] == "sheet" && len(parts) == 2:
		return f.Number(fmt.Sprintf(batchesSQL, outcomes[last], "true"), f.drop.ID)
	case parts[0] == "sheet":
		c, err := delivery.ParseChannel(parts[1])
		f.Must(err)
		return f.Number(fmt.Sprintf(batchesSQL, outcomes[last], fmt.Sprintf("channel = %d", c)), f.drop.ID)
	case parts[0] == "slot":
		c, err := delivery.ParseChannel(parts[2])
		f.Must(err)
		return f.Number(fmt.Sprintf(batchesSQL, outcomes[last], fmt.Sprintf("channel = %d and owner_id = %d", c, number(1))), f.drop.ID)
	case parts[0] == "drop":
		return f.Number(map[string]string{"sent": rowsSQL["reminders:sent"], "opened": rowsSQL["links:opened"], "issued": rowsSQL["coupons:issued"], "used": rowsSQL["tally:used"],
			"orders": moneySQL["orders"], "revenue": moneySQL["revenue"]}[last], number(1))
	case parts[0] == "listed":
		return f.Number(map[string]string{"booked": rowsSQL["reminders:booked"], "left": rowsSQL["coupons:left"]}[last], number(1))
	case name == "campaign:held_out":
		return f.group(delivery.HeldOut, "assigned")
	case name == "campaign:skipped":
		return f.Number(campaignSQL[last], f.campaign.ID) - f.group(delivery.HeldOut, "assigned")
	case parts[0] == "campaign" && len(parts) == 2:
		return f.Number(campaignSQL[last], f.campaign.ID)
	case parts[0] == "campaign":
		return f.Number(campaignSQL[last], number(1))
	case parts[0] == "course":
		return f.Number(courseSQL[last], f.campaign.ID)
	case parts[0] == "earned" && last == "sms":
		return f.Number(smsSQL, f.campaign.ID)
	case parts[0] == "spent" && last == "sms":
		return f.Number(`select ceil(sum(micros) / 10000)::bigint from sms_campaign_costs where campaign_id = $1`, f.campaign.ID)
	case parts[0] == "money", parts[0] == "earned": // one drop has orders
		return f.Number(moneySQL[last], f.drop.ID)
	case parts[0] == "worth":
		return f.Number(worthSQL[last], 1001)
	case parts[0] == "increment":
		return f.increment(parts[1], last)
	case parts[0] == "brought":
		return f.brought(parts[1], last)
	case parts[0] == "spent":
		return f.Number(`select count(distinct c.order_id) from coupons c where c.template_id = $1 and c.state = 'used'`, f.campaign.TemplateID())
	case parts[0] == "results" && last == "opened":
		return f.Number(`select count(*) from campaign_openings where campaign_id = $1 and variant = $2`, f.campaign.ID, number(1))
	case parts[0] == "results":
		return f.group(int(number(1)), last)
	}
	f.Fatalf("the test does not know the figure %q", name)
	return 0
}

// group counts one group of the campaign, user by user.
func (f *figures) group(variant int, what string) (n int64) {
	f.Helper()
	rows, err := f.SQL.Query(f.Context(), `select u.id, exists (select from exceptions e join batches b on b.id = e.batch_id
		where b.kind = 'campaign' and b.owner_id = $1 and e.user_id = u.id and e.outcome <> 'recovered') from users u`, f.campaign.ID)
	f.Must(err)
	defer rows.Close()
	for rows.Next() {
		var id user.ID
		var not bool
		f.Must(rows.Scan(&id, &not))
		if f.campaign.Content.Pick(f.campaign.ID, id) == variant && (what == "assigned" || !not) {
			n++
		}
	}
	f.Must(rows.Err())
	return n
}

// pages are the drop's pages that show figures.
func (f *figures) pages() []string {
	page := shell.TemplateURL(f.drop.ID)
	list := []string{page + "/balance", page + "/report"}
	for _, tab := range droppages.Tabs() {
		list = append(list, page+"?tab="+string(tab))
	}
	return list
}

// check compares every figure of the page, of which there are some.
func (f *figures) check(b *consoletest.Browser, path string) {
	f.Helper()
	page := b.Get(path).Is(200).Body
	found := figure.FindAllStringSubmatch(page, -1)
	if len(found) == 0 {
		f.Errorf("%s shows no figures", path)
	}
	for _, m := range found {
		got, err := number(m[2])
		if err != nil {
			f.Errorf("%s: %s is %q", path, m[1], m[2])
		} else if want := f.want(m[1]); got != want {
			f.Errorf("%s: %s is %d, the rows say %d", path, m[1], got, want)
		}
		f.seen[m[1]] = true
	}
	if _, table, ok := strings.Cut(page, `class="table is-tight tally"`); ok {
		f.addsUp(path, table)
	}
}

// number reads a number, or an amount in yuan as minor units.
func number(text string) (int64, error) {
	text = strings.ReplaceAll(strings.TrimSpace(html.UnescapeString(text)), ",", "")
	if text == "–" { // an average of nothing
		return 0, nil
	}
	amount, isMoney := strings.CutPrefix(text, "¥")
	if !isMoney {
		return strconv.ParseInt(text, 10, 64)
	}
	if whole, cents, ok := strings.Cut(amount, "."); ok {
		return strconv.ParseInt(whole+cents, 10, 64)
	}
	return strconv.ParseInt(amount+"00", 10, 64)
}

// paid pays an order with each of n unused coupons of the drop, and refunds the last order.
func (f *figures) paid(n int) {
	f.Helper()
	steps := &coupon.Service{Store: pgtest.Payments(f.T, f.DB), LockFor: time.Hour}
	for i := range n {
		id := f.Number(`select min(id) from coupons where template_id = $1 and state = 'unused' and version = 0`, f.drop.ID)
		order := coupon.Order{ID: fmt.Sprint("paid-", i), Amount: money.Amount(6000 + 77*i)}
		_, err := steps.Lock(f.Context(), "key:1", id, order)
		f.Must(err)
		_, err = steps.Confirm(f.Context(), "key:1", id, order.ID)
		f.Must(err)
		if i == n-1 {
			_, err = steps.Refund(f.Context(), "key:1", id, order.ID)
			f.Must(err)
		}
	}
	counted := couponsdb.NewTallyEvents(f.DB)
	defer counted.Close()
	for _, a := range pgtest.Relay(f.T, f.DB, event.CouponsChanged) {
		var e event.CouponChanges
		f.Must(json.Unmarshal(a.Payload, &e))
		f.Must(counted.Changed(f.Context(), a.ID, e.Changes))
	}
}

// addsUp checks that the shares of a tally are 100 % together, apart from the rounding of each.
func (f *figures) addsUp(path, table string) {
	f.Helper()
	table, _, _ = strings.Cut(table, "</table>")
	sum := 0.0
	for _, m := range share.FindAllStringSubmatch(html.UnescapeString(table), -1) {
		n, err := strconv.ParseFloat(strings.Trim(m[1], "<>"), 64)
		f.Must(err)
		sum += n
	}
	if sum < 99.6 || sum > 100.4 {
		f.Errorf("%s: the shares are %.1f %% together", path, sum)
	}
}

// sold gives coupons as a rush does: rows, counts per user, stock and curve agree.
func (f *figures) sold(t template.Template, users ...int64) {
	f.Helper()
	for _, id := range users {
		f.Gives(t, id)
		f.Exec(`insert into claim_counts values ($1, $2, 1)`, t.ID, id)
		f.Exec(`insert into claim_seconds values ($1, date_trunc('second', clock_timestamp()), 1) on conflict (template_id, second) do update set issued = claim_seconds.issued + 1`, t.ID)
	}
	f.Exec(`update templates set issued = issued + $2 where id = $1`, t.ID, len(users))
}

// opened records users as having opened the link in a message.
func (f *figures) opened(t template.Template, users ...user.ID) {
	f.Helper()
	var readers []reminder.Reader
	for _, id := range users {
		readers = append(readers, reminder.Reader{TemplateID: t.ID, UserID: id, Slot: 12, Channel: delivery.Email})
	}
	f.Must(f.Stores.Openings.Open(f.Context(), readers))
}

// become changes the state of n unused coupons of the drop.
func (f *figures) become(state string, n int) {
	f.Helper()
	f.Exec(`update coupons set state = $2, order_id = 'o' || id, used_at = now(), locked_at = now(), locked_until = now() + interval '1 hour'
		where id in (select id from coupons where template_id = $1 and state = 'unused' order by id limit $3)`, f.drop.ID, state, n)
	f.Exec(`insert into coupon_tallies (template_id) values ($1) on conflict do nothing`, f.drop.ID)
	f.Exec(`update coupon_tallies set `+state+` = `+state+` + $2 where template_id = $1`, f.drop.ID, n)
}

// Every named figure, on every page that shows it, equals the sum of the database rows. The test
// uses a drop with an earlier drop and reminders in every state, some of them waiting, and a
// campaign that has been sent.
func TestFiguresAreWhatTheRowsSay(t *testing.T) {
	g := consoletest.New(t)
	f := &figures{Fixture: g, seen: map[string]bool{}}
	f.before, f.drop = g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour)
	g.Exec(`update templates set stock = 1000`)
	for id := user.ID(1001); id <= 1009; id++ {
		if id < 1009 {
			g.Book(f.drop, id, delivery.Email, 60, 10)
		}
		g.Book(f.drop, id, delivery.App, 5)
	}
	g.Exec(`insert into users (id, email, opt_outs) select i, 'p' || i || '@example.com', case when i = 1002 then 2 else 0 end from generate_series(1001, 1040) i`)
	refuse := func(m delivery.Message) delivery.Result {
		if m.To.ID == 1003 {
			return delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	g.Exec(`insert into sms_drop_costs (template_id, hour, currency, parts, micros) select $1, date_trunc('hour', now()) - k * interval '1 hour', 'CNY', 1, 45001 from generate_series(1, 3) k`, f.drop.ID)
	b := g.As(staff.Admin)
	g.Fire(f.drop, 12, refuse) // the others wait
	for _, page := range f.pages() {
		f.check(b, page)
	}
	g.Fire(f.drop, 11, refuse) // which no user has booked
	g.Fire(f.drop, 2, refuse)
	b.Get(shell.TemplateURL(f.drop.ID)+"?tab=reminders").Is(200).Has("No reminders", "Partly sent").HasNot("Finished")
	f.sold(f.drop, 1001, 1002, 1003, 1004, 1021, 1022, 1023, 1024, 1025, 1026, 1027)
	f.paid(4)
	f.become("locked", 2)
	f.become("revoked", 1)
	g.Book(f.before, 1002, delivery.App, 5)
	f.sold(f.before, 1001, 1030)
	f.opened(f.drop, 1001, 1004, 1004, 1021)
	f.opened(f.before, 1001)
	g.Exec(`update templates set hold_out_percent = $2 where id = $1`, f.drop.ID, heldOut)
	g.Exec(`update slots set opens_at = opens_at - interval '1 day' where template_id = $1`, f.before.ID)
	g.Exec(`update templates set opens_at = opens_at - interval '1 day', closes_at = closes_at - interval '1 day' where id = $1`, f.before.ID)
	f.campaign = g.SentOut("Spring", 10, 400)
	g.Exec(`insert into sms_campaign_costs (campaign_id, hour, currency, parts, micros) values ($1, date_trunc('hour', now()), 'CNY', 3, 135001)`, f.campaign.ID)
	page := fmt.Sprintf("/campaigns/%d", f.campaign.ID)
	consoletest.Within(t, "the card about claims to be read again", func() bool {
		return strings.Contains(b.Get(shell.TemplateURL(f.drop.ID)+"?tab=claims").Body, `data-figure="coupons:issued">11<`)
	})
	consoletest.Within(t, "the card about money to be read again", func() bool {
		return strings.Contains(b.Get(shell.TemplateURL(f.drop.ID)+"?tab=claims").Body, `data-figure="money:orders">3<`)
	})
	b.Get(page).Is(200).HasNot(`data-figure="results:`) // nothing is counted yet
	g.Count()
	for _, path := range append(f.pages(), "/results", "/campaigns", page, "/", "/templates", "/users", "/users/1001") {
		f.check(b, path)
	}
	if rows := b.File(shell.TemplateURL(f.drop.ID)+"/money.csv", 1); rows[1][1] != "CNY" || rows[1][2] != "4" || rows[1][5] != "1" {
		t.Errorf("the file of the drop's orders: %v", rows)
	}
	totals := b.File(fmt.Sprintf("/results.csv?drop=%d", f.drop.ID), 1)
	hours, orders := b.Get(shell.TemplateURL(f.drop.ID)+"/money.csv").Is(200), 0
	for _, row := range consoletest.RowsOf(hours)[1:] {
		paid, err := strconv.Atoi(row[2])
		g.Must(err)
		refunds, err := strconv.Atoi(row[5])
		g.Must(err)
		orders += paid - refunds
	}
	if totals[1][0] != strconv.FormatInt(f.drop.ID, 10) || totals[1][10] != strconv.Itoa(orders) {
		t.Errorf("the file of the drop's totals is %v; the hours have %d orders", totals, orders)
	}
	f.file(b, fmt.Sprintf("/results.csv?drop=%d", f.drop.ID), f.drop.ID, f.increment)
	b.Get("/results.csv?drop=x").Is(404)
	b.Get("/results.csv?drop=999999").Is(404)
	b.File("/money.csv", 1)
	f.file(b, "/templates.csv", f.drop.ID, f.increment)
	g.Exec(`update templates set opens_at = opens_at - interval '1 day', closes_at = closes_at - interval '1 day' where id = $1`, f.drop.ID)
	f.check(b, "/results") // now it has opened
	f.file(b, "/results.csv", f.drop.ID, f.increment)
	g.Exec(`update campaign_results set currency = 'CNY', orders = variant + 2, ordered = 1000 * (variant + 3), discount = 100 where campaign_id = $1`, f.campaign.ID)
	f.file(b, "/campaigns.csv", f.campaign.ID, f.brought)
	for path, want := range map[string][]string{"/campaigns.csv": {"3", "135001", "CNY"}, fmt.Sprintf("/results.csv?drop=%d", f.drop.ID): {"3", "135003", "CNY"}} {
		rows := consoletest.RowsOf(b.Get(path).Is(200))
		if at := slices.Index(rows[0], "sms_parts"); at < 0 || !slices.Equal(rows[1][at:at+3], want) {
			t.Errorf("%s: text messages cost %v, want %v", path, rows, want)
		}
	}
	for name := range moneySQL {
		if !f.seen["money:"+name] {
			t.Errorf("no page shows the drop's %s", name)
		}
	}
	for name := range rowsSQL {
		if !f.seen[name] && (name != "tally:returned" || f.Number(rowsSQL[name], f.drop.ID) > 0) { // a row that is shown if there are any
			t.Errorf("no page shows %s", name)
		}
	}
	for _, name := range []string{"campaign:sent", "results:0:sent", "results:1:assigned", "results:-1:sent", "sheet:email:sent", "balance:reserved", "earned:CNY:revenue", "earned:CNY:orders", "earned:CNY:sms", "spent:sms", "worth:CNY:revenue", "worth:CNY:basket", "worth:used",
		"increment:reached:users", "increment:held:orders", "increment:reached:revenue",
		fmt.Sprintf("drop:%d:issued", f.before.ID), fmt.Sprintf("drop:%d:orders", f.drop.ID), fmt.Sprintf("drop:%d:revenue", f.drop.ID), fmt.Sprintf("listed:%d:booked", f.drop.ID), fmt.Sprintf("listed:%d:left", f.drop.ID),
		fmt.Sprintf("listed:%d:left", f.before.ID), fmt.Sprintf("campaign:%d:sent", f.campaign.ID)} {
		if !f.seen[name] {
			t.Errorf("no page shows %s", name)
		}
	}
}
