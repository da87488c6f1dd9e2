package shell

import (
	"strings"
	"testing"
)

// The mark | is where the cursor is to be.
func TestWhereTheCursorIs(t *testing.T) {
	const begin, end = `<body><form method="post" action="/theme"><input name="theme"></form><main><h1>New</h1>`, `</main></body>`
	for name, page := range map[string]string{
		"the first field":      `<form class="form narrow" method="post"><input type="hidden" name="key"><input disabled name="a"><input| name="b"><select name="c"></select></form>`,
		"the first wrong one":  `<form class="form" method="post"><input name="a"><div class="field has-error"><label>B</label><textarea| name="b"></textarea></div><div class="field has-error"><input name="c"></div></form>`,
		"a wrong choice":       `<form class="form" method="post"><input name="a"><fieldset class="field choices has-error"><input| type="radio" name="b"></fieldset></form>`,
		"a confirmation":       `<div class="card narrow"><form class="dialog-card" method="post"><input| name="reason"></form></div>`,
		"a form below a list":  `<table></table><form class="form" method="post"><input name="a"></form>`,
		"wrong, below a list":  `<table></table><form class="form" method="post"><input name="a"><div class="has-error"><input| name="b"></div></form>`,
		"behind a card":        `<section class="card">x</section><form class="form" method="post"><input name="a"></form>`,
		"a filter":             `<form class="filters" method="get"><input name="q"></form>`,
		"a form behind it":     `<form class="filters" method="get"><input name="q"></form><form class="form" method="post"><input name="a"></form>`,
		"chosen by the page":   `<form class="form" method="post"><input name="a"><input name="b" autofocus></form>`,
		"a page without forms": `<p>a &lt;form&gt; it is not</p>`,
	} {
		want := begin + strings.ReplaceAll(page, "|", " autofocus") + end
		if got := string(withFocus([]byte(begin + strings.ReplaceAll(page, "|", "") + end))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
