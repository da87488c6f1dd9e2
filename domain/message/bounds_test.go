package message

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark/text"

	"dropbell/domain/fault"
)

// hostile are texts of n bytes whose rendering took time that grew faster than n.
func hostile(n int) map[string]string {
	repeat := func(s string) string { return strings.Repeat(s, n/len(s)) }
	half := func(a, b string) string {
		return strings.Repeat(a, n/2/len(a)) + strings.Repeat(b, n/2/len(b))
	}
	var ladder strings.Builder
	for i := 0; ladder.Len() < n; i++ {
		ladder.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return map[string]string{"quotations": repeat(">"), "quotations apart": repeat("> "), "a paragraph in quotations": half(">", "b\n"), "lists": repeat("- ")[:n-1] + "x",
		"a paragraph in lists": half("- ", "b\n"), "numbered lists": repeat("1. "), "indented lists": ladder.String()[:n], "both": repeat("> - "), "emphasis": half("*a ", " b*"),
		"both emphases": half("*a **b ", "c* d** "), "brackets": half("[", "]"), "links": repeat("[a]("), "nested links": half("[", "](a)"), "images": repeat("![")}
}

// TestHostileTextsAreRefused: texts of the permitted length that are deeply nested, or have many
// brackets, are refused by every check. If they are compiled nevertheless, the result is as deep
// and as large as the text itself.
func TestHostileTextsAreRefused(t *testing.T) {
	for name, s := range hostile(MaxBody) {
		refused := func(where string, err error) {
			t.Helper()
			if f, ok := err.(*fault.Fields); !ok || f.List[0].Key != "rule.tangled" {
				t.Errorf("%s, %s: %v", name, where, err)
			}
		}
		refused("a block", Text{Title: "x", Blocks: []Block{{Type: Words, Text: s}}}.Check(Key{Reminder, Email, "en"}))
		refused("a draft", Draft{Kind: Reminder, Text: Text{Blocks: []Block{{Type: Footer, Text: s}}}}.Bounded())
		refused("a campaign's draft", Draft{Kind: Campaign, Text: Text{Title: "x", Body: s}}.Bounded())
		e := &fault.Fields{}
		CheckFormatted(e, "body", s)
		refused("a campaign", e.Err())

		c := CompileCampaign(Email, "en", Text{Title: "x", Body: s}, Shop{}).Bind(Facts{}, "", nil, false).Content("", "")
		if len(c.Text) > MaxBody || len(c.HTML) > 40_000+6*MaxBody {
			t.Errorf("%s: a text of %d bytes became %d, and a page of %d", name, MaxBody, len(c.Text), len(c.HTML))
		}
	}
}

// TestDeepTextsAreNotParsed: containers are counted in the source, because the time to parse them
// grows with the square of their depth.
func TestDeepTextsAreNotParsed(t *testing.T) {
	for name, s := range hostile(MaxBody) {
		if tree := markdown.Parser().Parse(text.NewReader([]byte(s))); deeper(tree, 500) && !tangled(s) && !strings.Contains(name, "emphas") {
			t.Errorf("%s: a tree of more than 500 levels is parsed", name)
		}
	}
}

func TestUsualTextsAreNotTangled(t *testing.T) {
	for _, s := range []string{"", "* * * * * * * * * * * * * * *", "- - - - - - - - - - - -", "____________________", "> a\n> > b\n> > > c", "- a\n  - b\n    - c\n      1. d *e **f***",
		strings.Repeat("[a](https://shop.example) *b* **c**\n\n- d\n- e\n\n", 60), "2024-05-20 12:00", "1) a\n2) b"} {
		if tooNested(s) {
			t.Errorf("%q is refused", s[:min(len(s), 60)])
		}
	}
}

// TestBoundsOfDrafts: the facts, blocks, variables and bytes of a draft are bounded before
// anything is rendered.
func TestBoundsOfDrafts(t *testing.T) {
	words := func(n int, s string) Text {
		blocks := make([]Block, n)
		for i := range blocks {
			blocks[i] = Block{Type: Words, Text: s}
		}
		return Text{Blocks: blocks}
	}
	for name, c := range map[string]struct {
		draft Draft
		key   string
	}{
		"as usual":          {Draft{Text: words(MaxBlocks, strings.Repeat("word ", 200))}, ""},
		"a long block":      {Draft{Text: words(1, strings.Repeat("x", MaxBody+1))}, "rule.too_long"},
		"a long body":       {Draft{Text: Text{Body: strings.Repeat("x", 1<<20)}}, "rule.too_long"},
		"a long title":      {Draft{Text: Text{Title: strings.Repeat("[[", 1<<19)}}, "rule.too_long"},
		"many blocks":       {Draft{Text: words(MaxBlocks+1, "x")}, "rule.blocks"},
		"long together":     {Draft{Text: words(MaxBlocks, strings.Repeat("word ", 700))}, "rule.mail_size"},
		"many variables":    {Draft{Text: words(1, strings.Repeat("{{user}}", 201))}, "rule.tangled"},
		"many in blocks":    {Draft{Text: words(3, strings.Repeat("{{user}}", 67))}, "rule.tangled"},
		"a long link":       {Draft{About: &Facts{Link: "https://" + strings.Repeat("x", maxLink)}}, "rule.too_long"},
		"an image's source": {Draft{Text: Text{Blocks: []Block{{Type: Image, URL: strings.Repeat("x", MaxURL+1)}}}}, "rule.image_url"},
	} {
		err := c.draft.Bounded()
		if f, ok := err.(*fault.Fields); ok != (c.key != "") || ok && f.List[0].Key != c.key {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c := Compile(Key{Reminder, Email, "en"}, words(10*MaxBlocks, "paragraph"), Shop{}); strings.Count(c.Bind(Facts{}, "", nil, false).Content("", "").Text, "paragraph") != MaxBlocks {
		t.Error("more blocks are compiled than may be saved")
	}
}
