package consoletest

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Form returns the values that a browser would send for the page's form with the action, if its
// user changed nothing and pressed no button with a name. A form that changes something comes before
// a form that only chooses what is shown.
func (a Answer) Form(action string) url.Values {
	a.Helper()
	root, err := html.Parse(strings.NewReader(a.Body))
	if err != nil {
		a.Fatal(err)
	}
	ofAction := func(n *html.Node) bool { return n.Data == "form" && attribute(n, "action") == action }
	form := nodeWith(root, func(n *html.Node) bool { return ofAction(n) && attribute(n, "method") == "post" })
	if form == nil {
		form = nodeWith(root, ofAction)
	}
	if form == nil {
		a.Fatalf("%s: there is no form for %s", a.What, action)
	}
	values := url.Values{}
	for n := range form.Descendants() {
		addField(values, n)
	}
	return values
}

func nodeWith(root *html.Node, is func(*html.Node) bool) *html.Node {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && is(n) {
			return n
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

func addField(values url.Values, n *html.Node) {
	name := attribute(n, "name")
	if n.Type != html.ElementNode || name == "" || has(n, "disabled") {
		return
	}
	switch n.Data {
	case "input":
		switch attribute(n, "type") {
		case "checkbox", "radio":
			if !has(n, "checked") {
				return
			}
		case "submit", "button", "file":
			return
		}
		values.Add(name, attribute(n, "value"))
	case "textarea":
		if n.FirstChild != nil {
			values.Add(name, n.FirstChild.Data)
		}
	case "select":
		chosen := nodeWith(n, func(o *html.Node) bool { return o.Data == "option" && has(o, "selected") })
		if chosen == nil {
			chosen = nodeWith(n, func(o *html.Node) bool { return o.Data == "option" })
		}
		if chosen != nil {
			values.Add(name, attribute(chosen, "value"))
		}
	}
}
