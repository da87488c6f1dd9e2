package console_test

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// reports stores a report about each of the first messages that the batches of one owner have sent.
func reports(g *consoletest.Fixture, kind delivery.Kind, owners string, args ...any) map[feedback.Status]int64 {
	g.Helper()
	var all []feedback.Report
	rows, err := g.SQL.Query(g.Context(), `select b.id, u.id from batches b join users u on u.id between b.from_user and b.to_user
		where b.kind = '`+string(kind)+`' and b.channel = 1 and `+owners+` and not exists (select from exceptions e where e.batch_id = b.id and e.user_id = u.id) order by 1, 2 limit 6`, args...)
	g.Must(err)
	count := map[feedback.Status]int64{}
	statuses := []feedback.Status{feedback.Delivered, feedback.Bounced, feedback.Complained, feedback.SoftBounced, feedback.Delivered, feedback.Delivered}
	for rows.Next() {
		r := feedback.Report{Provider: "ses", Cause: "said by the provider"}
		g.Must(rows.Scan(&r.Ref.Batch, &r.Ref.User))
		r.Status = statuses[int(count[""])%len(statuses)]
		count[""]++
		count[r.Status]++
		all = append(all, r)
	}
	g.Must(rows.Err())
	count[feedback.Delivered] += count[feedback.Complained] // a user who complained has the message
	count[feedback.Bounced] += count[feedback.SoftBounced]  // not delivered, for a reason that may pass
	store := deliverydb.NewFeedback(g.DB, nil)
	defer store.Close()
	g.Must(store.Take(g.Context(), all))
	return count
}

// The number of provider reports on a drop's and a campaign's messages is the same in the figures
// next to the bar, in the balance sheet, in the files of recipients, and in a slot's receipt.
func TestReportedFiguresAreWhatTheRowsSay(t *testing.T) {
	g := consoletest.New(t)
	drop := g.Published(10, 3*time.Hour)
	for id := user.ID(1001); id <= 1009; id++ {
		g.Book(drop, id, delivery.Email, 60)
	}
	g.Exec(`insert into users (id, email) select i, 'p' || i || '@example.com' from generate_series(1001, 1040) i`)
	g.Fire(drop, 12, func(m delivery.Message) delivery.Result {
		if m.To.ID == 1003 {
			return delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox"}
		}
		return delivery.Result{Status: delivery.Delivered}
	})
	c := g.SentOut("Spring", 10, 400)
	g.Count()
	b := g.As(staff.Admin)
	page := shell.TemplateURL(drop.ID) + "?tab=reminders"
	b.Get(page).Is(200).HasNot(`data-figure="reminders:bounced"`) // nothing is reported yet
	ofDrop := reports(g, delivery.KindReminder, `b.owner_id in (select id from slots where template_id = $1)`, drop.ID)
	ofCampaign := reports(g, delivery.KindCampaign, `b.owner_id = $1`, c.ID)

	figuresOf := func(path, prefix string, sent int64, want map[feedback.Status]int64) {
		t.Helper()
		seen := map[string]int64{}
		for _, m := range figure.FindAllStringSubmatch(b.Get(path).Is(200).Body, -1) {
			if name, ok := strings.CutPrefix(m[1], prefix+":"); ok {
				seen[name], _ = strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(m[2]), ",", ""), 10, 64)
			}
		}
		if seen["sent"] != sent || seen["delivered"] != want[feedback.Delivered] || seen["bounced"] != want[feedback.Bounced] ||
			seen["complained"] != want[feedback.Complained] || seen["unconfirmed"] != sent-want[feedback.Delivered]-want[feedback.Bounced] || want[feedback.Delivered] == 0 {
			t.Errorf("%s shows %v of %d, reported were %v", path, seen, sent, want)
		}
	}
	figuresOf(page, "reminders", g.Number(`select sum(sent_count) from batches where kind = 'reminder'`), ofDrop)
	figuresOf(fmt.Sprintf("/campaigns/%d", c.ID), "campaign", g.Number(`select sum(sent_count) from batches where kind = 'campaign'`), ofCampaign)
	b.Get(shell.TemplateURL(drop.ID) + "/balance").Is(200).Has(fmt.Sprintf("Reported: %d arrived, %d bounced, %d marked as spam", ofDrop[feedback.Delivered], ofDrop[feedback.Bounced], ofDrop[feedback.Complained]))

	b.Get(fmt.Sprintf("/campaigns/%d/recipients", c.ID)).Is(200).Has("Arrived", "Bounced", "Marked as spam", "Refused for now", "said by the provider")
	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.Get(fmt.Sprintf("/campaigns/%d/recipients.csv", c.ID)).Is(200).Body, "\uFEFF"))).ReadAll()
	g.Must(err)
	var file feedback.Tally
	last := len(lines[0]) - 1
	for _, l := range lines[1:] {
		file.Count(feedback.Status(l[last-1]))
		if said := l[last] == "said by the provider"; said != (l[last-1] != "" && l[last-1] != "delivered") {
			t.Errorf("%v", l)
		}
	}
	if file != (feedback.Tally{Delivered: ofCampaign[feedback.Delivered], Bounced: ofCampaign[feedback.Bounced], Complained: ofCampaign[feedback.Complained]}) || lines[0][last-1] != "reported" {
		t.Errorf("the file counts %+v, reported were %v", file, ofCampaign)
	}
	var receipt strings.Builder
	g.Must((&reminder.Receipts{Store: g.Stores.Boards}).Write(t.Context(), staff.Actor{Role: staff.Admin}, g.Number(`select id from slots where template_id = $1 and slot = 12`, drop.ID), &receipt))
	if want := fmt.Sprintf("# reported,email,delivered=%d,bounced=%d,complained=%d\n", ofDrop[feedback.Delivered], ofDrop[feedback.Bounced], ofDrop[feedback.Complained]); !strings.Contains(receipt.String(), want) {
		t.Errorf("%s is missing in\n%s", want, receipt.String())
	}
}
