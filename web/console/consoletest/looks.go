package consoletest

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Hidden minimizes the tab's window, so that nothing is painted, and turns off the browser's
// reports of style sheets, elements and requests. That saves a quarter of the work. It is for tests
// that use a page by [Evaluate] only.
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

// Becomes replaces the tab's page by the page at this address, which must be the same page in
// another look, without the work of opening it. It does nothing and returns false if the page has
// more scripts than all pages have.
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

// wrong reports that a page is wrong.
func (b *Tab) wrong(format string, args ...any) {
	b.Helper()
	if b.Wrong != nil {
		b.Wrong(fmt.Sprintf(format, args...))
		return
	}
	b.Errorf(format, args...)
}

// Narrow fails if the page is wider than the screen.
func (b *Tab) Narrow(what string) {
	b.Helper()
	if wide := Evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		culprit := Evaluate[string](b, `[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table-wrap")).map(e => e.tagName + "." + e.className).slice(0, 4).join(" ")`)
		b.wrong("%s is %d pixels too wide: %s", what, wide, culprit)
	}
}

// Spaced fails if a card, a strip of figures or a notice touches the element below it.
func (b *Tab) Spaced(what string) {
	b.Helper()
	touching := Evaluate[string](b, `(() => {
		const boxes = [...document.querySelectorAll("main :is(.card, .stats, .notice)")].filter(e => e.checkVisibility()).map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.height > 8)
		return boxes.flatMap(([a, x]) => boxes.filter(([b, y]) => a !== b && !a.contains(b) && !b.contains(a) && y.top > x.top &&
			Math.min(x.right, y.right) - Math.max(x.left, y.left) > 40 && Math.abs(y.top - x.bottom) < 7).map(([b]) => a.className + " / " + b.className)).join(", ")
	})()`)
	if touching != "" {
		b.wrong("%s: boxes touch: %s", what, touching)
	}
}

// High fails if a link or a control is less than 24 pixels high. Links in a sentence, and controls whose label can be pressed
// too, may be smaller.
func (b *Tab) High(what string) {
	b.Helper()
	low := Evaluate[string](b, `[...document.querySelectorAll("main :is(a[href], button, summary, select, input:not([type=hidden]))")].filter(e => {
		const over = getComputedStyle(e, "::after"), inSentence = getComputedStyle(e).display === "inline" && e.parentElement.textContent.trim().length > e.textContent.trim().length;
		return e.checkVisibility() && !inSentence && !e.labels?.length && !e.closest(".sr-only") && !(over.position === "absolute" && over.inset === "0px") && e.getBoundingClientRect().height < 23.9;
	}).slice(0, 5).map(e => e.tagName + "." + e.className + " in " + e.parentElement.className + ": " + e.textContent.trim().slice(0, 30) + " " + e.getBoundingClientRect().height).join(", ")`)
	if low != "" {
		b.wrong("%s: targets are less than 24 pixels high: %s", what, low)
	}
}

// Accessible fails on violations of WCAG 2.2 A and AA.
func (b *Tab) Accessible(what string) {
	b.Helper()
	b.keeps(what, `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]`)
}

// dressed are the rules that a page can keep in one theme and language and break in another,
// although its elements are the same.
const dressed = `"color-contrast", "link-in-text-block", "label-content-name-mismatch", "label", "button-name", "link-name", "image-alt", ` +
	`"input-button-name", "svg-img-alt", "document-title", "html-has-lang", "html-lang-valid", "valid-lang"`

// Dressed fails on violations of the rules in dressed, which a page can keep in one theme and
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
