package console_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/web/console/consoletest"
	"dropbell/web/console/docs"
)

// The pages need no sign-in and have the reader's language. Every link between them leads to an
// existing place.
func TestDocsPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.Browser()
	for page, needed := range map[string][]string{
		docs.Path: {`<html lang="en"`, `name="description"`, `id="reserve"`, `id="code-already_due"`, "reminders[].minutes", "Idempotency-Key",
			"curl -X POST &#34;$DROPBELL/api/v1/reservations&#34;", "await fetch(", "requests.post(", "http.NewRequest(", "ndjson", "Choose reminders that are further"},
		docs.Path + "/start":    {"export KEY=dbk_", "First drop", "X-User-ID: 1001"},
		docs.Path + "/webhooks": {"webhook-signature", "createHmac", "hmac.compare_digest", "standardwebhooks"},
	} {
		a := b.Get(page).Is(200).Has(needed...)
		for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(a.Body, -1) {
			if n := strings.Count(a.Body, `id="`+m[1]+`"`); n != 1 {
				t.Errorf("%s: a link leads to #%s, which is there %d times", page, m[1], n)
			}
		}
		if strings.Contains(a.Body, ">docs.") {
			t.Errorf("%s shows the key of a text", page)
		}
	}
	b.Post("/preferences", url.Values{"locale": {"zh-CN"}, "return": {docs.Path}}).To(docs.Path)
	b.Get(docs.Path).Is(200).Has(`lang="zh-CN"`, "幂等", "请按 Retry-After 等待", "Reserve reminders of a drop")
}

// The map of the API for assistants needs no sign-in, and each of its links leads to a place of the
// reference.
func TestTheAPIForAssistants(t *testing.T) {
	b := consoletest.New(t).Browser()
	text := b.Get("/llms.txt").Is(200).Has("# Dropbell", "/openapi.json)", "POST /reservations", "`already_due` (", "dropbell mcp --server http").Body
	reference := b.Get(docs.Path).Is(200).Body
	links := regexp.MustCompile(`\]\(http://[^)]+`+docs.Path+`#([^)]+)\)`).FindAllStringSubmatch(text, -1)
	if len(links) < 50 {
		t.Errorf("only %d operations", len(links))
	}
	b.Get(docs.Path+"/fair.md").Is(200).Has("The protocol", "](fair/draw.json)")
	b.Get(docs.Path + "/fair/draw.json").Is(200).Has(`"protocol"`)
	b.Get(docs.Path + "/fair/unknown").Is(404)
	for _, m := range links {
		if !strings.Contains(reference, `id="`+m[1]+`"`) {
			t.Errorf("no operation %s in the reference", m[1])
		}
	}
}

// Searching and choosing a language ask no server.
func TestDocsSearchInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.Open(g.Server.URL + docs.Path)
	g.Server.CloseClientConnections()
	for text, want := range map[string]string{"reserve remind": "#reserve", "sold_out": "#code-sold_out", "reminders[].min": "#", "zzz": ""} {
		b.Fill("#docs-search", text)
		consoletest.Within(t, "what "+text+" finds", func() bool {
			found := consoletest.Evaluate[string](b, `document.querySelector("#docs-found a")?.getAttribute("href") ?? ""`)
			if want == "#" {
				return strings.HasPrefix(found, "#")
			}
			return found == want && consoletest.Evaluate[string](b, `document.querySelector("#docs-found").textContent`) != ""
		})
	}
	b.Click(`[data-languages] [data-language="Go"]`)
	consoletest.Within(t, "the examples in Go", func() bool {
		return consoletest.Evaluate[bool](b, `[...document.querySelectorAll(".docs-example")].every((e) => e.open === (e.dataset.language === "Go"))`)
	})
	// Operations that are not laid out have a height that is assumed, which their buttons may exceed.
	consoletest.Evaluate[chromedp.Void](b, `document.querySelectorAll(".docs-operation").forEach((e) => { e.style.contentVisibility = "visible" })`)
	b.Accessible("the reference")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelectorAll(".docs-operation").forEach((e) => { e.style.contentVisibility = "" })`)
	b.Do(chromedp.EmulateViewport(320, 700))
	b.Narrow("the reference")
}
