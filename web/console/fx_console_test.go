package console

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// file gets a CSV file and checks how many rows it has below its head.
func (b *browser) file(path string, want int) [][]string {
	b.Helper()
	a := b.get(path).is(200)
	rows := rowsOf(a)
	if len(rows)-1 != want {
		b.Fatalf("%s: %d rows, want %d", path, len(rows)-1, want)
	}
	return rows
}

// samplePath fills a route's pattern with an id that exists or does not; both
// must be refused to who may not know.
func samplePath(pattern, id string) string {
	step := "pause"
	if strings.Contains(pattern, "requeue") {
		step = "requeue"
	}
	if strings.Contains(pattern, "release") {
		step = "release"
	}
	if strings.Contains(pattern, "takeback") {
		step = "takeback"
	}
	i := strings.Index(pattern, "{step")
	if i >= 0 {
		pattern = pattern[:i] + step
	}
	return strings.NewReplacer("{id}", id, "{batch}", id, "{channel}", "email").Replace(pattern)
}

func formFor(method string) url.Values {
	if method == http.MethodPost {
		return url.Values{}
	}
	return nil
}

// maxTabs is how often somebody presses the key to come to a place of a page.
const maxTabs = 90

// tabTo presses the tab key until the element has the focus, and fails if that
// cannot be seen.
func (b *tab) tabTo(selector string) {
	b.Helper()
	for range maxTabs {
		b.do(chromedp.KeyEvent(kb.Tab))
		if !evaluate[bool](b, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector)) {
			continue
		}
		if !evaluate[bool](b, `(() => { const marked = (e) => { const s = getComputedStyle(e); return s.outlineStyle !== "none" || s.boxShadow !== "none"; };
			const e = document.activeElement; return marked(e) || !!e.closest("label, .choice") && marked(e.closest("label, .choice")); })()`) {
			b.Errorf("nobody sees that %s has the focus", selector)
		}
		return
	}
	b.Fatalf("the tab key does not lead to %s", selector)
}

// focused waits until the element has the focus without a key being pressed.
func (b *tab) focused(selector string) {
	b.Helper()
	within(b.T, "the focus on "+selector, func() bool {
		return evaluate[bool](b, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector))
	})
}

func (b *tab) types(keys string) { b.Helper(); b.do(chromedp.KeyEvent(keys)) }

// message is one server-sent event.
type message struct{ id, event, data string }

// listen opens the stream of a template's page, or of b.live, and returns what
// arrives.
func (b *browser) listen(id int64, lastEventID string) (<-chan message, *http.Response) {
	b.Helper()
	path := liveURL(shell.TemplateURL(id))
	if b.live != "" {
		path = b.live
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.server.URL+path, nil)
	b.must(err)
	req.Header = b.header.Clone()
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	client := *b.client
	client.Timeout = 0
	res, err := client.Do(req)
	b.must(err)
	b.Cleanup(func() { res.Body.Close() })
	out := make(chan message, 100)
	go func() {
		defer close(out)
		var m message
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.id = value
			case "event":
				m.event = value
			case "data":
				m.data += value
			case "":
				if m != (message{}) {
					out <- m
				}
				m = message{}
			}
		}
	}()
	return out, res
}

// liveURL is the stream of a page with these parts.
func liveURL(parts ...string) string { return "/live?" + url.Values{"of": parts}.Encode() }

// next returns the next event, or fails after some seconds.
func (g *rig) next(from <-chan message) message {
	g.Helper()
	select {
	case m, ok := <-from:
		if !ok {
			g.Fatal("the stream has ended")
		}
		return m
	case <-time.After(10 * time.Second):
		g.Fatal("nothing arrives")
	}
	return message{}
}

func (g *rig) ends(stream <-chan message) {
	g.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case _, ok := <-stream:
			if !ok {
				return
			}
		case <-deadline:
			g.Fatal("the stream does not end")
		}
	}
}

// A road is what lies between a browser and the console: it can lose the
// viewer's session, or answer itself.
type road struct {
	*httptest.Server
	signedOut, foreign atomic.Bool
}

func (g *rig) road() *road {
	way := &road{}
	way.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if way.foreign.Load() && r.Header.Get("HX-Request") != "" {
			http.Error(w, "<h1>502 Bad Gateway</h1>", http.StatusBadGateway)
			return
		}
		if way.signedOut.Load() {
			r.Header.Del("Cookie")
		}
		g.ServeHTTP(w, r)
	}))
	g.Cleanup(way.Close)
	return way
}

func (b *tab) path() string { return evaluate[string](b, `location.pathname + location.search`) }

// refusing returns a marketer's browser, and what looks whether a step of the
// page is refused, as a page and as a dialog, instead of asked about.
func (g *rig) refusing(page string) (*browser, func(step, title, why string)) {
	b, dialog := g.as(staff.Marketer), g.as(staff.Marketer).htmx()
	return b, func(step, title, why string) {
		g.Helper()
		dialog.header.Set("Accept-Language", b.header.Get("Accept-Language"))
		b.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot(`name="reason"`)
		dialog.get(page+"/"+step).is(http.StatusConflict).has(title, why).hasNot("<html", "<button")
	}
}

// state tells how the bar marks each step of a form: c for the current one, d
// for done, b for one that needs attention, - for one that cannot be opened
// yet, . for others.
func (b *tab) state() string {
	b.Helper()
	return evaluate[string](b, `[...document.querySelectorAll("[data-steps] button")].map(e =>
		(e.ariaCurrent === "step" ? "c" : "") + (e.dataset.state ? e.dataset.state[0] : e.disabled ? "-" : e.ariaCurrent ? "" : ".")).join(" ")`)
}

func (b *tab) barSays(want string) {
	b.Helper()
	within(b.T, "the bar to say "+want+", not "+b.state(), func() bool { return b.state() == want })
}

func (b *tab) value(selector string) string {
	b.Helper()
	return evaluate[string](b, fmt.Sprintf(`document.querySelector(%q).value`, selector))
}
