package consoletest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"dropbell/web/console/consoletest"
)

// planted is a page with one defect, and the beginning of the expected report.
var planted = []struct{ name, style, body, want string }{
	{"none", ``, `<p>Words</p>`, ``},
	{"contrast in the dark", `[data-theme=dark] .pale { color: #333 }`, `<p class="pale">Words</p>`, "dark zh-CN at 390 pixels: color-contrast"},
	{"contrast in the light", `[data-theme=light] .pale { color: #ccc }`, `<p class="pale">Words</p>`, "light en: color-contrast"},
	{"contrast in the dark on a desktop", `@media (min-width: 600px) { [data-theme=dark] .pale { color: #333 } }`, `<p class="pale">Words</p>`, "dark zh-CN: color-contrast"},
	{"contrast below a picture", `[data-theme=dark] .pale { color: #333 }`, `<p class="pale"><svg aria-hidden="true" width="9" height="9"><path d="M0 0h9v9z"/></svg> Words</p>`,
		"dark zh-CN at 390 pixels: color-contrast"},
	{"too wide at 320 pixels", `.wide { width: 350px }`, `<p class="wide">Words</p>`, "light en at 320 pixels is "},
	{"a label that is missing in Chinese", ``, `<button class="large">%LABEL</button>`, "dark zh-CN at 390 pixels: button-name"},
	{"a small target on a phone", `.small { display: inline-block; padding: 20px } @media (max-width: 600px) { .small { padding: 0; width: 10px; height: 10px; overflow: hidden } }`,
		`<div><a class="small" href="/1">1</a><a class="small" href="/2">2</a></div>`, "dark zh-CN at 390 pixels: target-size"},
	{"a low target on a phone", `.low { font-size: 12px; line-height: 16px }`, `<p class="low"><a href="/1">1</a></p>`, "dark zh-CN at 390 pixels: targets are less than 24 pixels high"},
	{"a low link in a sentence", `.low { font-size: 12px; line-height: 16px }`, `<p class="low">See <a href="/1">1</a></p>`, ""},
	{"boxes that touch", ``, `<div class="card">One<br>two</div><div class="card">Three<br>four</div>`, "dark zh-CN: boxes touch"},
	{"a field without a label", ``, `<input class="large">`, "light en: label"},
	{"a part that only a phone shows", `[data-theme=dark] .menu { color: #333 } .menu { display: none } @media (max-width: 600px) { .menu { display: block } }`,
		`<div class="menu"><p>Words</p></div>`, "dark zh-CN at 390 pixels: color-contrast"},
	{"a part that is shown on another page", ``, `<div class="part"><button class="large"></button></div>`, "light en: button-name"},
	{"a name in a part that is not shown", ``, `<div hidden><p id="name">Words</p></div><button class="large" aria-labelledby="name"></button>`, ""},
	{"a name in the same part, which was seen", ``, `<div hidden><p id="name">Words</p></div><button class="large" aria-labelledby="name"></button>`, ""},
	{"a name that the part no longer has", ``, `<div hidden><p id="name"></p></div><button class="large" aria-labelledby="name"></button>`, "light en: button-name"},
}

// Defects that only one theme, language or width has, and parts that are not rendered and were
// checked before: each page is inspected after a page with the same parts.
func TestInspectFindsPlantedDefects(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var at int
		_, _ = fmt.Sscan(r.FormValue("page"), &at) // else the first
		page, theme, lang, label := planted[at], "light", "en", "Go"
		if r.FormValue("dark") != "" {
			theme, lang, label = "dark", "zh-CN", ""
		}
		hidden := `<div hidden><div class="menu"><p>Words</p></div><div class="part"><button class="large"></button></div></div>`
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><html lang=%q data-theme=%q><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>t</title>
			<link rel="icon" href="data:,"><style nonce="n">body { margin: 0 } .large { min-width: 99px; min-height: 48px } [data-theme=dark] { background: #000; color: #fff } %s</style>
			<script nonce="n"></script><body><main><h1>Page</h1>%s</main>%s</body>`, lang, theme, page.style, strings.ReplaceAll(page.body, "%LABEL", label), hidden)
	}))
	t.Cleanup(s.Close)
	b := consoletest.NewTab(t)
	b.Hidden()
	for i, page := range planted {
		var found []string
		b.Wrong = func(what string) { found = append(found, strings.TrimPrefix(what, "page ")) }
		inspect(b, "page", fmt.Sprintf("%s/?page=%d", s.URL, i), fmt.Sprintf("%s/?page=%d&dark=1", s.URL, i), true)
		if page.want == "" && len(found) > 0 || page.want != "" && !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, page.want) }) {
			t.Errorf("%s: found %q, want %q", page.name, found, page.want)
		}
	}
}
