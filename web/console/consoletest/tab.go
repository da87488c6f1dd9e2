package consoletest

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
)

// Tab is one tab of a real browser.
type Tab struct {
	*testing.T
	ctx     context.Context
	browser *chromium
	// Expected begins the complaints that the test provokes.
	Expected string
	// Wrong, if set, is called with each defect of a page's look; otherwise the test fails.
	Wrong func(string)
	// marks counts the scripts that may be executed only once.
	marks atomic.Int64
}

// The browsers of this test process, in which every test has a profile of its own.
var (
	headless = &chromium{find: localstack.FindHeadless}
	whole    = &chromium{find: localstack.FindChromium}
)

// A chromium is started by the first test that needs it.
type chromium struct {
	find func(context.Context, io.Writer) (string, error)
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
	// looked has the unrendered parts of pages that axe has checked.
	looked sync.Map
}

func (c *chromium) start() (context.Context, error) {
	c.once.Do(func() {
		path, err := c.find(context.Background(), os.Stderr)
		if err != nil {
			c.err = fmt.Errorf("no browser for tests: %w", err)
			return
		}
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
		// Animations are off: a contrast measured half-way between two colours is no finding.
		opts = append(opts, chromedp.Flag("force-prefers-reduced-motion", true))
		opts = append(opts, chromedp.DisableGPU)
		// On a busy machine a browser sometimes crashes before it reports its address.
		for range 3 {
			alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
			ctx, closeFirstTab := chromedp.NewContext(alloc)
			c.ctx, c.end, c.err = ctx, func() { closeFirstTab(); stop() }, chromedp.Do(ctx)
			if c.err == nil {
				return
			}
			c.end()
			fmt.Fprintln(os.Stderr, "the browser did not start:", c.err)
		}
	})
	return c.ctx, c.err
}

// Main is the main function of a test package: it ends the browsers that the tests share.
func Main(m *testing.M) {
	status := m.Run()
	for _, c := range []*chromium{headless, whole} {
		if c.end != nil {
			c.end()
		}
	}
	os.Exit(status)
}

// NewTab opens a tab with cookies of its own. Until the test ends the page must not report a
// problem: a blocked script or style, an exception, an error of ours.
func NewTab(t *testing.T) *Tab {
	t.Helper()
	return headless.tab(t)
}

// NewTabWithPush opens a tab of a full browser. A headless browser supports no push messages, but
// takes a third less processor time.
func NewTabWithPush(t *testing.T) *Tab {
	t.Helper()
	return whole.tab(t)
}

func (c *chromium) tab(t *testing.T) *Tab {
	t.Helper()
	browser, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	messages := chromedp.Console(ctx)
	b := &Tab{T: t, ctx: ctx, browser: c, Expected: "(none)"}
	b.Do(chromedp.EmulateViewport(1280, 800))
	var mu sync.Mutex
	var complaints []string
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// The browser itself reports answers of 4xx, which htmx shows.
			if m.Type == "debug" || m.Type == "log" || m.Type == "info" || strings.HasPrefix(m.Text, "Failed to load resource") {
				continue
			}
			mu.Lock()
			complaints = append(complaints, m.Text)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range complaints {
			if !strings.HasPrefix(c, b.Expected) {
				t.Errorf("the browser complains: %s", c)
			}
		}
	})
	return b
}

// patient returns the tab's context, which ends when the test has waited for long enough.
func (b *Tab) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, localstack.Patience(b.T))
}

// Do executes the actions one after the other, and ends the test if an action fails. An action
// whose element belongs to a page that was then replaced is repeated on the next page. An action
// that may have had an effect is not repeated.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := b.patient()
	defer cancel()
	for _, do := range actions {
		_, err := chromedp.Run(ctx, do)
		for err != nil && elementGone(err) && ctx.Err() == nil {
			<-time.After(time.Millisecond)
			_, err = chromedp.Run(ctx, do)
		}
		if err != nil {
			b.Fatalf("%v; the page says:\n%s", err, b.Text("body"))
		}
	}
}

// elementGone reports whether the browser refused to use an element, or to call a function of it,
// because its page or its part of the page was replaced.
func elementGone(err error) bool {
	return contains(err, "No node with given id found", "Could not find node with given id", "Node with given id does not belong to the document",
		"Node is detached from document", "Could not find object with given id", "Cannot find context with specified id")
}

func contains(err error, messages ...string) bool {
	return slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(err.Error(), m) })
}

// Open returns when the page is completely loaded and the previous page is gone.
func (b *Tab) Open(url string) {
	b.Helper()
	Evaluate[chromedp.Void](b, `window.wasHereBefore = true`)
	b.Do(chromedp.Navigate(url))
	Within(b.T, "the page "+url, func() bool {
		return Evaluate[bool](b, `!window.wasHereBefore && document.readyState === "complete"`)
	})
}

// Evaluate runs a script on the page. If the page is replaced before it has answered, the script
// runs on the next page. A script without an answer (Void) is executed once, even if it causes the
// replacement.
func Evaluate[T any](b *Tab, js string) T {
	b.Helper()
	if _, void := any(*new(T)).(chromedp.Void); void {
		v, _ := Once[T](b, func(mark string) string { return mark + js })
		return v
	}
	ctx, cancel := b.patient()
	defer cancel()
	for ; ; <-time.After(time.Millisecond) {
		v, err := evaluate[T](ctx, js)
		if err == nil {
			return v
		}
		if !notExecuted(err) && !interrupted(err) || ctx.Err() != nil {
			b.Fatalf("%v in %.200s", err, js)
		}
	}
}

// Once evaluates a script that must not be executed twice. The script executes the mark, a
// statement, when it acts. Once returns the script's answer, or left if the page was replaced after
// the mark. The mark is in the name of the tab, which the next page can read. If the next page
// belongs to another site, the browser may clear the name, which counts as marked.
func Once[T any](b *Tab, script func(mark string) string) (v T, left bool) {
	b.Helper()
	ctx, cancel := b.patient()
	defer cancel()
	mark := fmt.Sprintf("act %d", b.marks.Add(1))
	js := script(fmt.Sprintf("window.name = %q; ", mark))
	for ; ; <-time.After(time.Millisecond) {
		v, err := evaluate[T](ctx, js)
		switch {
		case err == nil:
			return v, false
		case ctx.Err() != nil || !notExecuted(err) && !interrupted(err):
			b.Fatalf("%v in %.200s", err, js)
		case interrupted(err):
			if name := Evaluate[string](b, `window.name`); name == "" || name == mark {
				return v, true
			}
		}
	}
}

func evaluate[T any](ctx context.Context, js string) (T, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// notExecuted reports whether a script was refused because one page was gone and the next page was
// not there yet.
func notExecuted(err error) bool { return contains(err, "Cannot find default execution context") }

// interrupted reports whether the browser abandoned a script, before or during its execution,
// because its page was replaced.
func interrupted(err error) bool {
	return contains(err, "Inspected target navigated or closed", "Execution context was destroyed")
}

// Text returns the visible text of the element.
func (b *Tab) Text(selector string) string {
	b.Helper()
	ctx, cancel := b.patient()
	defer cancel()
	v, err := evaluate[string](ctx, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
	if err != nil {
		return err.Error()
	}
	return v
}

// Sees waits until the visible text of the page contains the words.
func (b *Tab) Sees(selector string, words ...string) {
	b.Helper()
	for end := time.Now().Add(localstack.Patience(b.T)); ; <-time.After(20 * time.Millisecond) {
		text := b.Text(selector)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) && Evaluate[string](b, `document.readyState`) == "complete" {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s does not show %q but:\n%s", selector, words, text)
		}
	}
}

// Click clicks the first visible element that the selector finds.
func (b *Tab) Click(selector string) {
	b.Helper()
	b.clickOn(selector, fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => e.checkVisibility())`, selector))
}

// Press clicks the visible button or link with this text.
func (b *Tab) Press(within, label string) {
	b.Helper()
	b.clickOn(label, fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => e.innerText.trim() === %q && e.checkVisibility())`, within+" a, "+within+" button", label))
}

func (b *Tab) clickOn(what, element string) {
	b.Helper()
	b.act("an element to click: "+what, element, `!!e`, `e.click()`)
}

// atRest is a JavaScript condition: the page is completely loaded, and htmx has processed its
// elements and the elements that it has inserted, which it does a moment after loading. Before that
// a button acts as without scripts, and htmx may still change the attributes of new elements.
const atRest = `(document.readyState === "complete" && !document.querySelector(".htmx-swapping, .htmx-settling, .htmx-added") &&
	!(window.htmx && document.querySelector(":is([hx-get], [hx-post]):not([data-htmx-powered])")))`

// act waits until the page is at rest and the condition holds for the element e, and then executes
// do with e once. Between the check and do, the element and its page cannot change.
func (b *Tab) act(what, element, condition, do string) {
	b.Helper()
	Within(b.T, what, func() bool {
		done, left := Once[bool](b, func(mark string) string {
			return fmt.Sprintf(`(() => { const e = %s; if (!(%s && (%s))) return false; %s%s; return true; })()`, element, atRest, condition, mark, do)
		})
		return done || left
	})
}

// Fill types a value into a field.
func (b *Tab) Fill(selector, value string) {
	b.Helper()
	b.act("a field to fill: "+selector, fmt.Sprintf(`document.querySelector(%q)`, selector), `e?.checkVisibility({visibilityProperty: true})`,
		fmt.Sprintf(`e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true}))`, value))
}

// Replaced waits, after do, until a new element has replaced the element at selector: the text of
// the answer may have been there before.
func (b *Tab) Replaced(selector string, do func()) {
	b.Helper()
	b.act(selector, fmt.Sprintf(`document.querySelector(%q)`, selector), `!!e`, `e.dataset.old = "1"`)
	do()
	Within(b.T, "another "+selector, func() bool {
		return Evaluate[bool](b, fmt.Sprintf(`%s && !!document.querySelector(%q)`, atRest, selector+":not([data-old])"))
	})
}

// Step waits until the form shows this step.
func (b *Tab) Step(title string) { b.Helper(); b.Sees("[data-step]:not([hidden]) h2", title) }

// Next goes from the current step of a form to the step with this title.
func (b *Tab) Next(title string) {
	b.Helper()
	b.Click("[data-next]")
	b.Step(title)
}

// SignIn signs the member in.
func (b *Tab) SignIn(g *Fixture, m staff.Member) {
	b.Helper()
	b.Open(g.Server.URL + "/signin")
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-email"), m.Email), chromedp.SendKeys(chromedp.CSS("#f-password"), Password))
	b.Click(`button.is-wide`)
	b.Sees("h1", "Overview")
}
