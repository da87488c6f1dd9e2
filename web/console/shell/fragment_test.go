package shell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"
)

func mustRead(t interface{ Fatalf(string, ...any) }, raw string) fragment {
	f, ok := readFragment([]byte(raw))
	if !ok {
		t.Fatalf("no fragment: %q", raw)
	}
	return f
}

func idsOf(list []*html.Node) (ids string) {
	for _, n := range list {
		ids += " #" + attribute(n, "id")
	}
	return strings.TrimSpace(ids)
}

func TestFragmentSince(t *testing.T) {
	for _, c := range []struct{ name, before, now, want string }{
		{"the same", `<div id="a"><p>1</p></div>`, `<div id="a"><p>1</p></div>`, ""},
		{"another text", `<div id="a"><p>1</p></div>`, `<div id="a"><p>2</p></div>`, "#a"},
		{"the smallest element with an id", `<div id="a"><p id="b">1</p><p id="c">1</p></div>`, `<div id="a"><p id="b">1</p><p id="c">2</p></div>`, "#c"},
		{"two of them", `<div id="a"><p id="b">1</p>-<p id="c">1</p></div>`, `<div id="a"><p id="b">2</p>-<p id="c">2</p></div>`, "#b #c"},
		{"one more", `<div id="a"><ul id="l"><li>1</li></ul><p id="c">1</p></div>`, `<div id="a"><ul id="l"><li>1</li><li>2</li></ul><p id="c">1</p></div>`, "#l"},
		{"one in place of another", `<div id="a"><p id="b">1</p></div>`, `<div id="a"><p id="c">1</p></div>`, "#a"},
		{"an attribute", `<div id="a"><p id="b" class="x">1</p></div>`, `<div id="a"><p id="b" class="y">1</p></div>`, "#b"},
		{"a countdown goes on", `<div id="a"><b data-countdown="2030">1:02</b></div>`, `<div id="a"><b data-countdown="2030">1:01</b></div>`, ""},
		{"a countdown to something else", `<div id="a"><b data-countdown="2030">1:02</b></div>`, `<div id="a"><b data-countdown="2031">1:02</b></div>`, "#a"},
		{"a row of a table", `<div id="a"><table><tbody><tr id="r"><td>1</td></tr><tr id="s"><td>1</td></tr></tbody></table></div>`,
			`<div id="a"><table><tbody><tr id="r"><td>1</td></tr><tr id="s"><td>2</td></tr></tbody></table></div>`, "#s"},
		{"in a drawing", `<div id="a"><p id="b"><svg><g id="g"><path d="1"></path></g></svg></p></div>`, `<div id="a"><p id="b"><svg><g id="g"><path d="2"></path></g></svg></p></div>`, "#b"},
		{"an id that no selector can name", `<div id="a"><p id="1.2">1</p></div>`, `<div id="a"><p id="1.2">2</p></div>`, "#a"},
	} {
		list, ok := mustRead(t, c.now).since(mustRead(t, c.before))
		if got := idsOf(list); !ok || got != c.want {
			t.Errorf("%s: %q %v, want %q", c.name, got, ok, c.want)
		}
	}
	if _, ok := mustRead(t, `<div id="a"></div>`).since(mustRead(t, `<div id="b"></div>`)); ok {
		t.Error("another element is no later state")
	}
	for _, bad := range []string{"", "text", "<p>no id</p>", `<p id="a"></p><p id="b"></p>`} {
		if _, ok := readFragment([]byte(bad)); ok {
			t.Errorf("%q is read", bad)
		}
	}
}

// tree is an element of a page that is made up.
type tree struct {
	tag, id, class, text string
	children             []tree
}

func (n tree) String() string {
	id, inside := "", n.text
	if n.id != "" {
		id = fmt.Sprintf(` id=%q`, n.id)
	}
	for _, c := range n.children {
		inside += c.String()
	}
	return "<" + n.tag + id + fmt.Sprintf(` class=%q`, n.class) + ">" + inside + "</" + n.tag + ">"
}

// drawTree makes up a page.
func drawTree(t *rapid.T, depth int, next *int) (n tree) {
	n.tag = rapid.SampledFrom([]string{"div", "section", "span"}).Draw(t, "tag")
	*next++
	if depth == 0 || rapid.Bool().Draw(t, "named") {
		n.id = fmt.Sprintf("n%d", *next)
	}
	n.text = rapid.SampledFrom([]string{"", "x", "y &amp; z"}).Draw(t, "text")
	n.class = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class")
	if depth < 4 {
		for range rapid.IntRange(0, 3).Draw(t, "children") {
			n.children = append(n.children, drawTree(t, depth+1, next))
		}
	}
	return n
}

// drawLater draws a random later state of a page, with some elements changed.
func drawLater(t *rapid.T, n tree, depth int, next *int) tree {
	n.children = slices.Clone(n.children)
	switch rapid.IntRange(0, 11).Draw(t, "change") {
	case 0:
		n.text += "!"
	case 1:
		n.class = "c"
	case 2:
		n.children = append(n.children, drawTree(t, max(depth, 3)+1, next))
	case 3:
		n.children = n.children[:len(n.children)/2]
	}
	for i, c := range n.children {
		n.children[i] = drawLater(t, c, depth+1, next)
	}
	return n
}

// Replacing the elements returned by since turns every former page into the new page.
func TestFragmentsLeadToThePage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, two int
		was := drawTree(t, 0, &one)
		before, now := mustRead(t, was.String()), mustRead(t, drawLater(t, was, 0, &one).String())
		if rapid.IntRange(0, 9).Draw(t, "another page") == 0 {
			now = mustRead(t, drawTree(t, 0, &two).String())
		}
		list, ok := now.since(before)
		if !ok {
			if before.root.Data == now.root.Data {
				t.Fatalf("the root has an id and cannot be replaced")
			}
			return
		}
		for _, n := range list {
			replaceByID(before.root, n)
		}
		root := before.root
		if len(list) == 1 && list[0] == now.root {
			root = now.root
		}
		if got, want := mustRender(root), mustRender(now.root); got != want {
			t.Fatalf("\n%s\n%s", got, want)
		}
	})
}

func replaceByID(in, by *html.Node) {
	for c := in.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && attribute(c, "id") == attribute(by, "id") {
			clone, _ := html.ParseFragment(strings.NewReader(mustRender(by)), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
			in.InsertBefore(clone[0], c)
			in.RemoveChild(c)
			return
		}
		replaceByID(c, by)
	}
}

func mustRender(n *html.Node) string {
	var b bytes.Buffer
	if err := html.Render(&b, n); err != nil {
		panic(err)
	}
	return b.String()
}
