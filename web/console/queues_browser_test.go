package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/adapters/asynq"
	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	"dropbell/web/console/work"
)

// The dashboard is there, inside a page that leads elsewhere, also on a phone.
func TestQueuesInTheBrowser(t *testing.T) {
	monitor, err := asynq.NewMonitor(localstack.RedisServer(t).URL(), work.MonitorPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = monitor.Close() }) // nothing is lost by then
	g := newRig(t, func(d *Deps) { d.Work.Monitor = monitor.Handler })
	b := newTab(t)
	b.expected = "Error: <rect> attribute" // the dashboard draws its charts before it has room
	b.signIn(g, g.hire(staff.Operator))
	inside := func(js string) string {
		return evaluate[string](b, `(() => { const d = document.querySelector("iframe")?.contentDocument; return d?.body ? String(`+js+`) : ""; })()`)
	}
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 844))
		b.open(g.server.URL + "/queues")
		b.sees("h1", "Queues")
		within(t, "the dashboard", func() bool { return strings.Contains(inside(`d.body.innerText`), "Tasks Processed") })
		b.narrow("the queues")
		if tall := evaluate[int](b, `document.querySelector("iframe").clientHeight`); tall < 500 {
			t.Errorf("the dashboard is %d pixels tall", tall)
		}
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open(g.server.URL + work.MonitorPath) // an old bookmark
	b.sees("h1", "Queues")
	b.press(".sidebar", "Templates")
	b.sees("h1", "Templates")
}
