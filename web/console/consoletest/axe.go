package consoletest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe-4.14.1.min.js
var axe string

// without makes axe skip the parts of a page that were checked before. Axe reads about twenty
// styles of each element, even of elements that are not rendered.
//
//go:embed testdata/without.js
var without string

// axeServer serves axe to the pages of this process's browser, which caches the compiled script.
// Sending its 650 KB with each page costs four times as much.
var axeServer = sync.OnceValue(func() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=86400, immutable")
		_, _ = io.WriteString(w, axe+without) // an error means that the page has gone
	}))
})

// loadAxe loads axe into the page as one of the page's own scripts, using their nonce. On a page
// that allows no script, the text of axe is evaluated.
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
		Evaluate[chromedp.Void](b, axe+without+"; undefined")
	}
}

func (b *Tab) keeps(what, rules string) {
	b.Helper()
	b.loadAxe()
	parts := b.unrendered(rules)
	// Colours in a transition are not checked, nor the colours of a button that waits for its
	// answer. preload is off: it would load each style sheet again for rules about media, which no
	// page has.
	var raw string
	Within(b.T, "requests to end", func() bool {
		raw = Evaluate[string](b, `(async () => {
			if (document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")) return "";
			await Promise.all(document.getAnimations().filter(a => a.effect.getTiming().iterations !== Infinity).map(a => a.finished.catch(() => {})));
			const found = await axe.runWithout(`+parts.known()+`, document, {iframes: false, runOnly: `+rules+`, rules: {"landmark-unique": {enabled: true}}, resultTypes: ["violations"], preload: false});
			return JSON.stringify(found.violations.map(v => ({rule: v.id, why: v.help, where: v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary)})));
		})()`)
		return raw != ""
	})
	parts.checked()
	var violations []struct {
		Rule, Why string
		Where     []string
	}
	if err := json.Unmarshal([]byte(raw), &violations); err != nil {
		b.Fatal(err)
	}
	for _, v := range violations {
		b.wrong("%s: %s (%s)\n  %s", what, v.Rule, v.Why, strings.Join(v.Where, "\n  "))
	}
}

// unrendered are the parts of a page that are not rendered, such as dialogs, and the navigation for
// the other kind of screen.
type unrendered struct {
	keys   []string
	looked *sync.Map
}

// unrendered returns the parts of the page that are not rendered and to which no element outside of
// them refers by an id. The result of a rule for such a part does not depend on other parts of the
// page.
func (b *Tab) unrendered(rules string) unrendered {
	b.Helper()
	parts := unrendered{Evaluate[[]string](b, `axe.unrendered()`), &b.browser.looked}
	for i := range parts.keys {
		parts.keys[i] = rules + parts.keys[i]
	}
	return parts
}

// known returns the indexes of the parts that were checked before with the same rules and markup,
// as a JavaScript array.
func (u unrendered) known() string {
	numbers := []int{}
	for i, key := range u.keys {
		if _, ok := u.looked.Load(key); ok {
			numbers = append(numbers, i)
		}
	}
	return strings.ReplaceAll(fmt.Sprint(numbers), " ", ", ")
}

// checked keeps that the parts are checked.
func (u unrendered) checked() {
	for _, key := range u.keys {
		u.looked.Store(key, true)
	}
}
