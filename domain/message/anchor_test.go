package message

import (
	"strings"
	"testing"
)

// No page has an anchor without an address, whatever text it is made of: without a link the words of
// an anchor remain. With a link the anchor leads there, also if every reader has a separate one.
func TestNoAnchorIsEmpty(t *testing.T) {
	for body, want := range map[string]string{ // the page with a link, its anchors in full
		"[Claim]({{link}}) it":                 `<a href="https://x.example/1">Claim</a> it`,
		"See {{link}} now":                     `See <a href="https://x.example/1">https://x.example/1</a> now`,
		"**[Claim]({{link}})** [b]({{link}})":  `<strong><a href="https://x.example/1">Claim</a></strong> <a href="https://x.example/1">b</a>`,
		"[Claim]({{link}} \"a title\")":        `<a href="https://x.example/1" title="a title">Claim</a>`,
		"[{{user|you}}]({{link}}): {{link|}}":  `<a href="https://x.example/1">Ann</a>: <a href="https://x.example/1">https://x.example/1</a>`,
		"[a]({{link}})[[ [b]({{link}})]] done": `<a href="https://x.example/1">a</a> <a href="https://x.example/1">b</a> done`,
		"[a](https://a.example) [b]({{link}})": `<a href="https://a.example">a</a> <a href="https://x.example/1">b</a>`,
	} {
		for _, kind := range []Kind{Reminder, Campaign} {
			for _, own := range []bool{false, true} {
				for _, link := range []string{"https://x.example/1", ""} {
					f := facts(kind)
					f.Link = link
					k := Key{kind, Email, "en"}
					text := Text{Title: "x", Blocks: []Block{{Type: Words, Text: body}}}
					c := Compile(k, text, Shop{})
					if kind == Campaign {
						c = CompileCampaign(Email, "en", text, Shop{})
					}
					page := c.Bind(f, f.Drop, nil, own).Content("Ann", link).HTML
					if strings.Contains(page, `href=""`) || strings.Count(page, "<a ") != strings.Count(page, "</a>") {
						t.Errorf("%s of %q, link %q, own %t: %s", kind, body, link, own, page)
					}
					if link != "" && !strings.Contains(page, want) {
						t.Errorf("%s of %q, own %t: %q is missing in %s", kind, body, own, want, page)
					}
				}
			}
		}
	}
}

// A book names the texts that show a link where there may be none.
func TestGapsOfABook(t *testing.T) {
	if got := NewBook(nil).Gaps(); len(got) != 0 {
		t.Errorf("built-in texts have gaps: %v", got)
	}
	gap := Key{Reminder, Email, "de"}
	b := NewBook([]Version{{ID: 1, Shop: 1, Key: gap, Text: &Text{Title: "x", Blocks: []Block{{Type: Words, Text: "[Hier]({{link}})"}}}},
		{ID: 2, Shop: 1, Template: 3, Key: Key{Correction, SMS, "en"}, Text: &Text{Body: "Now[[: {{link}}]]"}}})
	if got := b.Gaps(); len(got) != 1 || got[0] != gap {
		t.Errorf("gaps %v", got)
	}
}
