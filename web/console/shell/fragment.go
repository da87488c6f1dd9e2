package shell

import (
	"bytes"
	"regexp"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A fragment is one element of a page with everything in it.
type fragment struct {
	root *html.Node
	raw  []byte
}

// readFragment parses HTML that is one element with an id.
func readFragment(raw []byte) (fragment, bool) {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	nodes, err := html.ParseFragment(bytes.NewReader(raw), body)
	nodes = slices.DeleteFunc(nodes, func(n *html.Node) bool { return n.Type != html.ElementNode })
	if err != nil || len(nodes) != 1 || !addressable(nodes[0]) {
		return fragment{}, false
	}
	return fragment{nodes[0], bytes.TrimSpace(raw)}, true
}

// since returns the elements that a page showing before has to replace to show f: the smallest
// elements with an id that contain all differences. Countdowns, which browsers update, are no
// difference. ok is false if the root elements are not the same element.
func (f fragment) since(before fragment) (elements []*html.Node, ok bool) {
	if before.root == nil || attribute(before.root, "id") != attribute(f.root, "id") {
		return nil, false
	}
	return difference(before.root, f.root)
}

// difference is [fragment.since] for two nodes in the same place. ok is false if their parent must
// be replaced.
func difference(before, now *html.Node) (list []*html.Node, ok bool) {
	if before.Type != now.Type || before.Namespace != now.Namespace {
		return nil, false
	}
	if now.Type != html.ElementNode {
		return nil, before.Data == now.Data
	}
	if before.Data != now.Data || attribute(before, "id") != attribute(now, "id") {
		return nil, false
	}
	own := func() ([]*html.Node, bool) {
		if addressable(now) {
			return []*html.Node{now}, true
		}
		return nil, false
	}
	if !slices.Equal(before.Attr, now.Attr) {
		return own()
	}
	if attribute(now, "data-countdown") != "" {
		return nil, true
	}
	b, n := before.FirstChild, now.FirstChild
	for ; b != nil && n != nil; b, n = b.NextSibling, n.NextSibling {
		inside, ok := difference(b, n)
		if !ok {
			return own()
		}
		list = append(list, inside...)
	}
	if b != nil || n != nil {
		return own()
	}
	return list, true
}

var plainID = regexp.MustCompile(`^[A-Za-z][\w-]*$`)

// addressable reports whether a page can replace the element alone. Elements of an SVG would lose
// their namespace.
func addressable(n *html.Node) bool {
	return n.Namespace == "" && plainID.MatchString(attribute(n, "id"))
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// replacing returns the HTML by which a page replaces elements that it shows.
func replacing(list []*html.Node) ([]byte, error) {
	var b bytes.Buffer
	for _, n := range list {
		b.WriteString(`<hx-partial hx-target="#` + attribute(n, "id") + `" hx-swap="outerMorph">`)
		if err := html.Render(&b, n); err != nil {
			return nil, err
		}
		b.WriteString("</hx-partial>")
	}
	return b.Bytes(), nil
}
