package console_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

var writeTasks = flag.String("tasks", "", "the file to which the table of clicks and seconds is written")

// member does tasks like a member who knows the console, and counts clicks and seconds.
type member struct {
	*consoletest.Tab
	g              *consoletest.Fixture
	clicks, fields int
}

func (m *member) press(within, label string) { m.Helper(); m.clicks++; m.Press(within, label) }

func (m *member) click(selector string) { m.Helper(); m.clicks++; m.Click(selector) }

func (m *member) fill(selector, value string) { m.Helper(); m.fields++; m.Fill(selector, value) }

// Eight staff tasks, each from the overview to the console's confirmation. The number of clicks is
// fixed, so that a change that makes a task longer fails. The seconds are seconds of the test,
// without reading time.
func TestClicksOfTasks(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	g.Exec(`insert into users (id, name, email) values (1001, 'Lin Mei', 'lin@example.com')`)
	d := g.Published(10, 4*time.Hour)
	g.Book(d, 1001, delivery.Email, 60)
	opened := g.Published(10, 2*time.Hour)
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, opened.ID)
	byCode := g.ByCode(g.Published(10, 30*time.Hour))
	file := filepath.Join(t.TempDir(), "users.csv")
	g.Must(os.WriteFile(file, []byte("id,name\n2001,Ann\n2002,Bea\n"), 0o600))
	b.SignIn(g, g.Hire(staff.Admin))
	head := shell.TemplateURL(d.ID)

	var table strings.Builder
	for _, task := range []struct {
		name           string
		clicks, fields int
		do             func(m *member)
	}{
		{"create and publish a drop from a model", 5, 0, func(m *member) {
			m.press(".sidebar", "Drops")
			m.Sees("h1", "Drops")
			m.press(".page-head", "Templates")
			m.Sees("h1", "Start from a template")
			m.press(".models", "Lunch rush")
			m.Sees("h1", "New drop")
			m.press("form", "Save and publish")
			m.press("main", "Publish without looking")
			m.Sees("#drop-head", "Lunch rush", "Scheduled")
		}},
		{"pause the reminders of a channel", 3, 1, func(m *member) {
			m.press(".sidebar", "Channels")
			m.Sees("h1", "Channels")
			m.click(`a[href="/channels/email/pause"]`)
			m.Sees("#dialog", "Pause E-mail?")
			m.fill("#dialog #f-reason", "the provider sends twice")
			m.press("#dialog", "Pause")
			m.Sees("main", "E-mail is paused.")
		}},
		{"find why a user got nothing", 3, 1, func(m *member) {
			m.press(".sidebar", "Customers")
			m.Sees("h1", "Customers")
			m.fill("#q", "Lin")
			m.Sees("#results", "Lin Mei")
			m.click(`#results a[href="/users/1001"]`)
			m.Sees("h1", "Lin Mei")
			m.press("main", "Why?")
			m.Sees("h1", "Delivery history of Lin Mei")
		}},
		// With the audience, and with the number of customers that sending to everybody asks for.
		{"write, publish and send a campaign", 9, 5, func(m *member) {
			m.press(".sidebar", "Campaigns")
			m.Sees("h1", "Campaigns")
			m.press(".page-head", "New campaign")
			m.Step("1 · Audience")
			m.fill("#f-name", "Autumn")
			m.fill("#f-audience", "all")
			m.click("[data-next]")
			m.Step("2 · Message and coupon")
			m.fill("#f-title", "Tea")
			m.fill("#f-body", "Come by")
			for _, step := range []string{"3 · Compare two versions", "4 · When", "5 · Review"} {
				m.click("[data-next]")
				m.Step(step)
			}
			m.press("form", "Save draft")
			m.Sees("main", "Autumn", "Draft")
			m.press(".page-head", "Publish")
			m.Sees("#dialog", "Publish “Autumn”?")
			m.fill("#dialog #f-reach_typed", consoletest.Evaluate[string](m.Tab, `document.querySelector("#dialog [name=reach_shown]").value`))
			m.press("#dialog", "Publish")
			m.Sees("main", "“Autumn” is published.")
		}},
		{"change the text of a message", 4, 1, func(m *member) {
			m.press(".sidebar", "Drops")
			m.Sees("h1", "Drops")
			m.click(fmt.Sprintf(`#results a[href=%q]`, head))
			m.Sees("#drop-head", d.Name)
			m.press("main", "Message")
			m.Sees("h1", "Message")
			m.fill("#f-email_title", "Tea for you")
			m.press("main", "Save changes")
			m.Sees("main", "The text is saved.")
		}},
		{"import users from a file", 6, 1, func(m *member) {
			m.press(".sidebar", "Customers")
			m.Sees("h1", "Customers")
			m.press("main", "Import customers")
			m.Sees("h1", "Import customers")
			m.fields++
			m.Do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
			m.press("main", "Upload")
			m.Sees("main", "Contents of the columns")
			m.press("main", "Check file")
			m.Sees("main", "Not begun yet.")
			g.WorkPeople()
			m.press("#job", "Import")
			m.Sees("#dialog", "2 customers are new.")
			m.press("#dialog", "Import")
			m.Sees("main", "The import has begun.")
		}},
		{"generate redeem codes", 5, 1, func(m *member) {
			m.press(".sidebar", "Drops")
			m.Sees("h1", "Drops")
			m.click(fmt.Sprintf(`#results a[href=%q]`, shell.TemplateURL(byCode.ID)))
			m.Sees("#drop-head", "Scheduled")
			m.click("details.more > summary")
			m.press("details.more", "Redeem codes")
			m.Sees("h1", "Redeem codes")
			m.fill("#f-count", "50")
			m.press("main", "Generate")
			m.Sees("main", "50 codes are being generated.")
		}},
		{"share the report of a drop", 5, 0, func(m *member) {
			m.press(".sidebar", "Drops")
			m.Sees("h1", "Drops")
			m.click(fmt.Sprintf(`#results a[href=%q]`, shell.TemplateURL(opened.ID)))
			m.Sees("#drop-head", opened.Name)
			m.click("details.more > summary")
			m.press("details.more", "Report")
			m.Sees("h1", "Report")
			m.press("#links", "Make a link")
			m.Sees("#links", "/r/")
		}},
	} {
		m := &member{Tab: b, g: g}
		b.Open(g.Server.URL + "/")
		began := time.Now()
		task.do(m)
		took := time.Since(began)
		t.Logf("%s: %d clicks, %d fields, %.1f s", task.name, m.clicks, m.fields, took.Seconds())
		if m.clicks != task.clicks || m.fields != task.fields {
			t.Errorf("%s takes %d clicks and %d fields; it was %d and %d", task.name, m.clicks, m.fields, task.clicks, task.fields)
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %.1f s |\n", task.name, m.clicks, m.fields, took.Seconds())
	}
	if *writeTasks != "" {
		g.Must(os.WriteFile(*writeTasks, []byte(table.String()), 0o600))
	}
}
