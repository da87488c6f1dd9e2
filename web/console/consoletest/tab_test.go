package consoletest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"

	"dropbell/web/console/consoletest"
)

// twoPages serves a first and a next page, each with a field and a button, and
// counts the requests for /acted.
func twoPages(t *testing.T) (url string, acted *atomic.Int64) {
	acted = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/acted" {
			acted.Add(1)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		fmt.Fprintf(w, `<title>t</title><link rel="icon" href="data:,"><h1>%s</h1><input id="field"><button onclick="navigator.sendBeacon('/acted'); location = '/next'">Go</button>`, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s.URL, acted
}

// An action finds its element, the page is replaced, and the action then uses the element.
func TestAnActionWhosePageIsReplacedIsRepeated(t *testing.T) {
	url, _ := twoPages(t)
	b := consoletest.NewTab(t)
	b.Open(url + "/first")
	tries := 0
	b.Do(chromedp.QueryAfter(chromedp.CSS("#field"), func(ctx context.Context, target *chromedp.Target, nodes []*chromedp.Node) (chromedp.Void, error) {
		if tries++; tries == 1 {
			if _, err := chromedp.Navigate(url+"/next")(ctx, target); err != nil {
				return chromedp.Void{}, err
			}
		}
		_, err := chromedp.Call(ctx, dom.Focus, dom.FocusParams{NodeID: nodes[0].NodeID})
		return chromedp.Void{}, err
	}))
	if tries != 2 || b.Path() != "/next" {
		t.Errorf("%d tries, at %s", tries, b.Path())
	}
	b.Focused("#field")
}

// Scripts that are the reason why their page is replaced, and get no answer.
func TestAScriptIsExecutedOnceThoughItsPageIsReplaced(t *testing.T) {
	url, acted := twoPages(t)
	b := consoletest.NewTab(t)
	b.Open(url + "/first")
	leave := func(to string) string {
		return fmt.Sprintf(`fetch("/acted", {method: "POST"}).then(() => { location = %q; return new Promise(() => {}); })`, to)
	}
	consoletest.Evaluate[chromedp.Void](b, leave("/next"))
	b.Sees("h1", "/next")
	if n := acted.Load(); n != 1 {
		t.Errorf("executed %d times", n)
	}
	// A script that had not reached its mark is executed on the next page.
	answer, left := consoletest.Once[int](b, func(mark string) string {
		return fmt.Sprintf(`if (location.pathname === "/third") { %s 3 } else { location = "/third"; new Promise(() => {}) }`, mark)
	})
	if answer != 3 || left {
		t.Errorf("answer %d, left %v", answer, left)
	}
	if got := consoletest.Evaluate[int](b, `location.pathname === "/next" ? 7 : (location = "/next", new Promise(() => {}))`); got != 7 {
		t.Errorf("asked again: %d", got)
	}
}

func TestAClickThatLeavesThePageIsOne(t *testing.T) {
	url, acted := twoPages(t)
	b := consoletest.NewTab(t)
	for range 5 {
		b.Open(url + "/first")
		acted.Store(0)
		b.Click("button")
		b.Sees("h1", "/next")
		b.Fill("#field", "words")
		if b.Value("#field") != "words" {
			t.Error("the field of the next page is empty")
		}
		consoletest.Within(t, "the click to be seen", func() bool { return acted.Load() > 0 })
		if n := acted.Load(); n != 1 {
			t.Errorf("clicked %d times", n)
		}
	}
}
