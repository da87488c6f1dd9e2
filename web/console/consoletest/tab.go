package consoletest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
)

//go:embed testdata/axe-4.14.1.min.js
var axe string

// Tab is one tab of a real browser.
type Tab struct {
	*testing.T
	ctx context.Context
	// Expected begins the complaints that the test provokes.
	Expected string
	// axe is set once later pages of the tab get axe by themselves.
	axe bool
}

// shared is the one browser of this test process, in which every test has a
// profile of its own.
var shared = sync.OnceValue(func() *chromium { return &chromium{} })

// A chromium is started by the first test that needs it.
type chromium struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

func (c *chromium) start() (context.Context, error) {
	c.once.Do(func() {
		path, err := localstack.FindChromium(context.Background(), os.Stderr)
		if err != nil {
			c.err = fmt.Errorf("no browser for tests: %w", err)
			return
		}
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
		// Animations are off: a contrast measured half-way between two colours is no finding.
		opts = append(opts, chromedp.Flag("force-prefers-reduced-motion", true))
		opts = append(opts, chromedp.DisableGPU)
		alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, closeFirstTab := chromedp.NewContext(alloc)
		c.ctx, c.end, c.err = ctx, func() { closeFirstTab(); stop() }, chromedp.Do(ctx)
	})
	return c.ctx, c.err
}

// Main is the main function of a package of tests: it ends the browser that
// they share.
func Main(m *testing.M) {
	status := m.Run()
	if end := shared().end; end != nil {
		end()
	}
	os.Exit(status)
}

// NewTab opens a tab with cookies of its own. The page must not report anything
// until the test ends: a blocked script or style, an exception, an error of ours.
func NewTab(t *testing.T) *Tab {
	t.Helper()
	browser, err := shared().start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	messages := chromedp.Console(ctx)
	b := &Tab{T: t, ctx: ctx, Expected: "(none)"}
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

// Do executes the actions, and ends the test if one fails.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatalf("%v; the page says:\n%s", err, b.Text("body"))
	}
}

// Open returns when the page is there as a whole, and the one before is gone.
func (b *Tab) Open(url string) {
	b.Helper()
	Evaluate[chromedp.Void](b, `window.wasHereBefore = true`)
	b.Do(chromedp.Navigate(url))
	Within(b.T, "the page "+url, func() bool {
		return Evaluate[bool](b, `!window.wasHereBefore && document.readyState === "complete"`)
	})
}

// Evaluate evaluates js in the page. If the page is left before it has answered,
// js is evaluated again in the next; a Void is not, since it may well be why the
// page was left.
func Evaluate[T any](b *Tab, js string) T {
	b.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; <-time.After(time.Millisecond) {
		v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
		_, done := any(v).(chromedp.Void)
		switch {
		case err == nil, done && pageLeft(err):
			return v
		case !pageLeft(err), time.Now().After(deadline):
			b.Fatalf("%v in %.200s", err, js)
		}
	}
}

// pageLeft says whether the browser gave up a script because its page went away.
func pageLeft(err error) bool {
	for _, words := range []string{"Inspected target navigated or closed", "Execution context was destroyed", "Cannot find default execution context"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// Text returns the visible text of the element.
func (b *Tab) Text(selector string) string {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)))
	if err != nil {
		return err.Error()
	}
	return v
}

// Sees waits until the visible text of the page contains the words.
func (b *Tab) Sees(selector string, words ...string) {
	b.Helper()
	var text string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		text = b.Text(selector)
		missing := 0
		for _, w := range words {
			if !strings.Contains(text, w) {
				missing++
			}
		}
		if missing == 0 && Evaluate[string](b, `document.readyState`) == "complete" {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	b.Fatalf("%s does not show %q but:\n%s", selector, words, text)
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

func (b *Tab) clickOn(what, js string) {
	b.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if Evaluate[bool](b, `document.readyState === "complete" && !!(`+js+`)`) {
			Evaluate[chromedp.Void](b, `(`+js+`).click()`)
			return
		}
	}
	b.Fatalf("there is no %q to click:\n%s", what, b.Text("body"))
}

// Fill types a value into a field.
func (b *Tab) Fill(selector, value string) {
	b.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS(selector)))
	Evaluate[chromedp.Void](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q;
		e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); })()`, selector, value))
}

// Replaced waits, after do, until another element has taken this one's place:
// what an answer says may have stood there before.
func (b *Tab) Replaced(selector string, do func()) {
	b.Helper()
	Evaluate[chromedp.Void](b, fmt.Sprintf(`document.querySelector(%q).dataset.old = "1"`, selector))
	do()
	Within(b.T, "another "+selector, func() bool {
		return Evaluate[bool](b, fmt.Sprintf(`!!document.querySelector(%q) && document.readyState === "complete"`, selector+":not([data-old])"))
	})
}

// Step waits until the form shows this step.
func (b *Tab) Step(title string) { b.Helper(); b.Sees("[data-step]:not([hidden]) h2", title) }

// Next leaves a step of a form for the one with this title.
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

// Narrow fails if the page is wider than the screen.
func (b *Tab) Narrow(what string) {
	b.Helper()
	if wide := Evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		culprit := Evaluate[string](b, `[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table-wrap")).map(e => e.tagName + "." + e.className).slice(0, 4).join(" ")`)
		b.Errorf("%s is %d pixels too wide: %s", what, wide, culprit)
	}
}

// Accessible fails on violations of WCAG 2.2 A and AA.
func (b *Tab) Accessible(what string) {
	b.Helper()
	b.keeps(what, `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`)
}

// Dressed fails on violations of the rules that a page can keep in one theme
// and language and break in another, where its elements are the same.
func (b *Tab) Dressed(what string) {
	b.Helper()
	b.keeps(what, `{type: "rule", values: ["color-contrast", "link-in-text-block", "label-content-name-mismatch", "label", "button-name",
		"link-name", "image-alt", "input-button-name", "svg-img-alt", "document-title", "html-has-lang", "html-lang-valid", "valid-lang"]}`)
}

// carryAxe loads axe into the page of the tab and into every later one. Sending
// its 650 KB for each page costs more than the rules do.
func (b *Tab) carryAxe() {
	b.Helper()
	if !b.axe {
		b.axe = true
		b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: axe})
			return chromedp.Void{}, err
		})
	}
	if !Evaluate[bool](b, `typeof axe === "object"`) {
		Evaluate[chromedp.Void](b, axe+"; undefined")
	}
}

func (b *Tab) keeps(what, rules string) {
	b.Helper()
	b.carryAxe()
	// Colours in a transition are not checked, nor are those of a button that
	// waits for its answer.
	Within(b.T, "requests to end", func() bool {
		return Evaluate[bool](b, `!document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")`)
	})
	Evaluate[chromedp.Void](b, `Promise.all(document.getAnimations().filter(a => a.effect.getTiming().iterations !== Infinity).map(a => a.finished.catch(() => {}))).then(() => undefined)`)
	raw := Evaluate[string](b, `axe.run(document, {runOnly: `+rules+`, rules: {"landmark-unique": {enabled: true}}, resultTypes: ["violations"]})
		.then(r => JSON.stringify(r.violations.map(v => ({rule: v.id, why: v.help, where: v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary)}))))`)
	var violations []struct {
		Rule, Why string
		Where     []string
	}
	if err := json.Unmarshal([]byte(raw), &violations); err != nil {
		b.Fatal(err)
	}
	for _, v := range violations {
		b.Errorf("%s: %s (%s)\n  %s", what, v.Rule, v.Why, strings.Join(v.Where, "\n  "))
	}
}
