package consoletest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe-4.14.1.min.js
var axe string

// Hidden minimizes the tab's window, so that nothing is painted, and ends what the
// browser reports of style sheets, elements and requests. That spares a
// quarter of the work. Tests call it that only ask a page by [Evaluate].
func (b *Tab) Hidden() {
	b.Helper()
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		window, err := chromedp.Call(ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
		if err != nil {
			return chromedp.Void{}, err
		}
		_, err = chromedp.Call(ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: window.WindowID,
			Bounds: &browser.Bounds{WindowState: browser.WindowStateMinimized}})
		return chromedp.Void{}, err
	})
	for _, end := range []cdp.Command[cdp.Empty, cdp.Empty]{css.Disable, dom.Disable, network.Disable} {
		b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, end, cdp.Empty{})
			return chromedp.Void{}, err
		})
	}
}

// Resize gives the tab's window another size.
func (b *Tab) Resize(width, height int64) {
	b.Helper()
	b.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
		return chromedp.Void{}, err
	})
}

// Becomes puts the page of this address, which is another look of the tab's, in
// the place of the tab's, without the work of opening it. It reports false, and
// does nothing, if the page has scripts besides those of all pages.
func (b *Tab) Becomes(url string) bool {
	b.Helper()
	return Evaluate[bool](b, fmt.Sprintf(`(async () => {
		const next = new DOMParser().parseFromString(await (await fetch(%q)).text(), "text/html");
		if (next.querySelector("body script")) return false;
		const root = document.documentElement;
		for (const {name, value} of next.documentElement.attributes) root.setAttribute(name, value);
		document.title = next.title;
		document.body.replaceWith(document.adoptNode(next.body));
		document.dispatchEvent(new Event("htmx:after:swap"));
		return true;
	})()`, url))
}

// Narrow fails if the page is wider than the screen.
func (b *Tab) Narrow(what string) {
	b.Helper()
	if wide := Evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		culprit := Evaluate[string](b, `[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table-wrap")).map(e => e.tagName + "." + e.className).slice(0, 4).join(" ")`)
		b.Errorf("%s is %d pixels too wide: %s", what, wide, culprit)
	}
}

// Spaced fails if a card, a strip of figures or a notice touches the one below.
func (b *Tab) Spaced(what string) {
	b.Helper()
	touching := Evaluate[string](b, `(() => {
		const boxes = [...document.querySelectorAll("main :is(.card, .stats, .notice)")].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.height > 8)
		return boxes.flatMap(([a, x]) => boxes.filter(([b, y]) => a !== b && !a.contains(b) && !b.contains(a) && y.top > x.top &&
			Math.min(x.right, y.right) - Math.max(x.left, y.left) > 40 && Math.abs(y.top - x.bottom) < 7).map(([b]) => a.className + " / " + b.className)).join(", ")
	})()`)
	if touching != "" {
		b.Errorf("%s: boxes touch: %s", what, touching)
	}
}

// Accessible fails on violations of WCAG 2.2 A and AA.
func (b *Tab) Accessible(what string) {
	b.Helper()
	b.keeps(what, `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`)
}

// dressed are the rules that a page can keep in one theme and language and break in
// another, where its elements are the same.
const dressed = `"color-contrast", "link-in-text-block", "label-content-name-mismatch", "label", "button-name", "link-name", "image-alt", ` +
	`"input-button-name", "svg-img-alt", "document-title", "html-has-lang", "html-lang-valid", "valid-lang"`

// Dressed fails on violations of the rules that a page can keep in one theme and
// language and break in another.
func (b *Tab) Dressed(what string) {
	b.Helper()
	b.keeps(what, `{type: "rule", values: [`+dressed+`]}`)
}

// DressedOnAPhone is [Tab.Dressed] that fails also on targets that are too small or
// too close to one another.
func (b *Tab) DressedOnAPhone(what string) {
	b.Helper()
	b.keeps(what, `{type: "rule", values: ["target-size", `+dressed+`]}`)
}

// Tappable fails on targets that are too small or too close to one another.
func (b *Tab) Tappable(what string) {
	b.Helper()
	b.keeps(what, `{type: "rule", values: ["target-size"]}`)
}

// axeServer serves axe to the pages of this process's browser, which keeps the
// compiled script. Sending its 650 KB with each page costs four times as much.
var axeServer = sync.OnceValue(func() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=86400, immutable")
		_, _ = io.WriteString(w, axe) // an error means that the page has gone
	}))
})

// loadAxe loads axe into the page as one of the page's own scripts, by their
// nonce. A page that admits no script is given the text.
func (b *Tab) loadAxe() {
	b.Helper()
	if loaded := Evaluate[bool](b, fmt.Sprintf(`typeof axe === "object" || new Promise((loaded) => {
		const own = document.querySelector("script[nonce]");
		if (!own) { loaded(false); return; }
		const script = Object.assign(document.createElement("script"), {nonce: own.nonce, src: %q});
		script.onload = () => { script.remove(); loaded(true); };
		script.onerror = () => { script.remove(); loaded(false); };
		document.head.append(script);
	})`, axeServer().URL)); !loaded {
		Evaluate[chromedp.Void](b, axe+"; undefined")
	}
}

func (b *Tab) keeps(what, rules string) {
	b.Helper()
	b.loadAxe()
	// Colours in a transition are not checked, nor are those of a button that
	// waits for its answer. No page has media, for whose rules alone axe would
	// load each style sheet once more (preload).
	var raw string
	Within(b.T, "requests to end", func() bool {
		raw = Evaluate[string](b, `(async () => {
			if (document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")) return "";
			await Promise.all(document.getAnimations().filter(a => a.effect.getTiming().iterations !== Infinity).map(a => a.finished.catch(() => {})));
			const found = await axe.run(document, {iframes: false, runOnly: `+rules+`, rules: {"landmark-unique": {enabled: true}}, resultTypes: ["violations"], preload: false});
			return JSON.stringify(found.violations.map(v => ({rule: v.id, why: v.help, where: v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary)})));
		})()`)
		return raw != ""
	})
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
