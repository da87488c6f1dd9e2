package consoletest

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// File gets a CSV file and checks how many rows it has below its head.
func (b *Browser) File(path string, want int) [][]string {
	b.Helper()
	a := b.Get(path).Is(200)
	rows := RowsOf(a)
	if len(rows)-1 != want {
		b.Fatalf("%s: %d rows, want %d", path, len(rows)-1, want)
	}
	return rows
}

// parameter is a parameter of a route's pattern, with the first of its allowed values.
var parameter = regexp.MustCompile(`\{(\w+)(?::(\w+)[^}]*)?\}`)

// SamplePath fills a route's pattern with an id that exists or does not exist; both must be refused
// to members who may not know.
func SamplePath(pattern, id string) string {
	return parameter.ReplaceAllStringFunc(pattern, func(p string) string {
		switch of := parameter.FindStringSubmatch(p); {
		case of[2] != "":
			return of[2]
		case of[1] == "channel":
			return "email"
		case of[1] == "name":
			return "timers"
		}
		return id
	})
}

// FormFor is an empty form for methods that need one.
func FormFor(method string) url.Values {
	if method == http.MethodPost {
		return url.Values{}
	}
	return nil
}

// maxTabs is the largest number of key presses to reach an element of a page.
const maxTabs = 90

// TabTo presses the tab key until the element has the focus, and fails if the focus is not visible.
func (b *Tab) TabTo(selector string) {
	b.Helper()
	for range maxTabs {
		b.Do(chromedp.KeyEvent(kb.Tab))
		if !Evaluate[bool](b, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector)) {
			continue
		}
		if !Evaluate[bool](b, `(() => { const marked = (e) => { const s = getComputedStyle(e); return s.outlineStyle !== "none" || s.boxShadow !== "none"; };
			const e = document.activeElement; return marked(e) || !!e.closest("label, .choice") && marked(e.closest("label, .choice")); })()`) {
			b.Errorf("nobody sees that %s has the focus", selector)
		}
		return
	}
	b.Fatalf("the tab key does not lead to %s", selector)
}

// Focused waits until the element has the focus without a key being pressed.
func (b *Tab) Focused(selector string) {
	b.Helper()
	Within(b.T, "the focus on "+selector, func() bool {
		return Evaluate[bool](b, fmt.Sprintf(`!!document.activeElement?.matches(%q)`, selector))
	})
}

// Types presses keys.
func (b *Tab) Types(keys string) {
	b.Helper()
	Within(b.T, "the page to be at rest", func() bool { return Evaluate[bool](b, atRest) })
	b.Do(chromedp.KeyEvent(keys))
}

// Message is one server-sent event.
type Message struct{ ID, Event, Data string }

// Listen opens the stream of a template's page, or of b.live, and returns its events.
func (b *Browser) Listen(id int64, lastEventID string) (<-chan Message, *http.Response) {
	b.Helper()
	path := LiveURL(shell.TemplateURL(id))
	if b.Live != "" {
		path = b.Live
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.Server.URL+path, nil)
	b.Must(err)
	req.Header = b.Header.Clone()
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	client := *b.Client
	client.Timeout = 0
	res, err := client.Do(req)
	b.Must(err)
	b.Cleanup(func() { res.Body.Close() })
	out := make(chan Message, 100)
	go func() {
		defer close(out)
		var m Message
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.ID = value
			case "event":
				m.Event = value
			case "data":
				m.Data += value
			case "":
				if m != (Message{}) {
					out <- m
				}
				m = Message{}
			}
		}
	}()
	return out, res
}

// LiveURL is the stream of a page with these parts.
func LiveURL(parts ...string) string { return "/live?" + url.Values{"of": parts}.Encode() }

// Next returns the next event, or fails if none comes.
func (g *Fixture) Next(from <-chan Message) Message {
	g.Helper()
	select {
	case m, ok := <-from:
		if !ok {
			g.Fatal("the stream has ended")
		}
		return m
	case <-time.After(localstack.Patience(g.T)):
		g.Fatal("nothing arrives")
	}
	return Message{}
}

// Ends waits until the stream ends.
func (g *Fixture) Ends(stream <-chan Message) {
	g.Helper()
	for deadline := time.After(localstack.Patience(g.T)); ; {
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

// A faultyTransport is between a browser and the console: it can drop the viewer's session, or
// answer itself.
type faultyTransport struct {
	*httptest.Server
	SignedOut, Foreign atomic.Bool
}

// Road returns the transport between the browser and the console, and uses it from now on.
func (g *Fixture) Road() *faultyTransport {
	way := &faultyTransport{}
	way.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if way.Foreign.Load() && r.Header.Get("HX-Request") != "" {
			http.Error(w, "<h1>502 Bad Gateway</h1>", http.StatusBadGateway)
			return
		}
		if way.SignedOut.Load() {
			r.Header.Del("Cookie")
		}
		g.ServeHTTP(w, r)
	}))
	g.Cleanup(way.Close)
	return way
}

// Path is the address that the tab shows, without its host.
func (b *Tab) Path() string { return Evaluate[string](b, `location.pathname + location.search`) }

// Refusing returns a marketer's browser, and a function that checks that a step of the page is
// refused, as a page and as a dialog, without a confirmation.
func (g *Fixture) Refusing(page string) (*Browser, func(step, title, why string)) {
	b, dialog := g.As(staff.Marketer), g.As(staff.Marketer).Htmx()
	return b, func(step, title, why string) {
		g.Helper()
		dialog.Header.Set("Accept-Language", b.Header.Get("Accept-Language"))
		b.Get(page+"/"+step).Is(http.StatusConflict).Has(title, why).HasNot(`name="reason"`)
		dialog.Get(page+"/"+step).Is(http.StatusConflict).Has(title, why).HasNot("<html", "<button")
	}
}

// state returns the mark of each step of a form: c for the current step, d for a finished step, b
// for a step with an error, - for a step that cannot be opened yet, . for other steps.
func (b *Tab) state() string {
	b.Helper()
	return Evaluate[string](b, `[...document.querySelectorAll("[data-steps] button")].map(e =>
		(e.ariaCurrent === "step" ? "c" : "") + (e.dataset.state ? e.dataset.state[0] : e.disabled ? "-" : e.ariaCurrent ? "" : ".")).join(" ")`)
}

// BarSays waits until the bar of the steps shows want.
func (b *Tab) BarSays(want string) {
	b.Helper()
	Within(b.T, "the bar to say "+want+", not "+b.state(), func() bool { return b.state() == want })
}

// Value returns the value of a field.
func (b *Tab) Value(selector string) string {
	b.Helper()
	return Evaluate[string](b, fmt.Sprintf(`document.querySelector(%q).value`, selector))
}
