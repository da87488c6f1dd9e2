package work_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/adapters/asynq"
	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/work"
)

// The dashboard is there, inside a page that leads elsewhere, also on a phone.
func TestQueuesInTheBrowser(t *testing.T) {
	monitor, err := asynq.NewMonitor(localstack.RedisServer(t).URL(), work.MonitorPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = monitor.Close() }) // nothing is lost by then
	g := consoletest.New(t, func(d *console.Deps) { d.Work.Monitor = monitor.Handler })
	b := consoletest.NewTab(t)
	b.Expected = "Error: <rect> attribute" // the dashboard draws its charts before it has room
	b.SignIn(g, g.Hire(staff.Operator))
	inside := func(js string) string {
		return consoletest.Evaluate[string](b, `(() => { const d = document.querySelector("iframe")?.contentDocument; return d?.body ? String(`+js+`) : ""; })()`)
	}
	for _, width := range []int64{1280, 390} {
		b.Do(chromedp.EmulateViewport(width, 844))
		b.Open(g.Server.URL + "/queues/dashboard")
		b.Sees("h1", "asynqmon")
		consoletest.Within(t, "the dashboard", func() bool { return strings.Contains(inside(`d.body.innerText`), "Tasks Processed") })
		b.Narrow("the queues")
		if tall := consoletest.Evaluate[int](b, `document.querySelector("iframe").clientHeight`); tall < 500 {
			t.Errorf("the dashboard is %d pixels tall", tall)
		}
	}
	b.Do(chromedp.EmulateViewport(1280, 800))
	b.Open(g.Server.URL + work.MonitorPath) // an old bookmark
	b.Sees("h1", "asynqmon")
	b.Press(".sidebar", "Drops")
	b.Sees("h1", "Drops")
}
