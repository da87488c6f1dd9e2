package shell

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// withFocus puts the cursor into the first field with an error of a page's form, and without errors
// into the first field of a form with which the page begins. A page that places the cursor itself
// stays as it is.
func withFocus(page []byte) []byte {
	if bytes.Contains(page, []byte(" autofocus")) || !bytes.Contains(page, []byte("<form")) {
		return page
	}
	at := (&focusFinder{tokens: html.NewTokenizer(bytes.NewReader(page))}).find()
	if at == 0 {
		return page
	}
	return slices.Concat(page[:at], []byte(" autofocus"), page[at:])
}

// A focusFinder reads a page tag by tag.
type focusFinder struct {
	tokens *html.Tokenizer
	first  int // where the attribute of the first field goes; 0 = there is no such field
	// main is set inside the page's own content, form inside one of its forms, wrong behind the
	// beginning of a field with an error. later is set once the page has shown anything before a
	// form.
	main, form, wrong, later bool
}

// find returns the place of the attribute in the page, 0 if no field gets the cursor.
func (f *focusFinder) find() int {
	for read := 0; ; {
		kind := f.tokens.Next()
		if kind == html.ErrorToken {
			return f.first
		}
		start := read
		read += len(f.tokens.Raw())
		name, more := f.tokens.TagName()
		tag := string(name)
		if kind == html.EndTagToken {
			f.main, f.form = f.main && tag != "main", f.form && tag != "form"
			continue
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		if f.field(tag, f.attributes(more)) {
			at := start + 1 + len(tag)
			if f.wrong {
				return at
			}
			if f.first == 0 && !f.later {
				f.first = at
			}
		}
	}
}

func (f *focusFinder) attributes(more bool) map[string]string {
	list := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = f.tokens.TagAttr()
		list[string(key)] = string(value)
	}
	return list
}

// field reports whether the tag is a field of a form that can have the cursor.
func (f *focusFinder) field(tag string, a map[string]string) bool {
	classes := strings.Fields(a["class"])
	switch tag {
	case "main":
		f.main = true
	case "table":
		f.later = f.later || f.main && !f.form
	case "form":
		f.form = f.main && a["method"] == "post" && slices.ContainsFunc(classes, ofPages)
		f.later = f.later || f.main && !f.form || f.first != 0
	case "input", "select", "textarea":
		_, disabled := a["disabled"]
		_, fixed := a["readonly"]
		return f.form && !disabled && !fixed && !slices.Contains([]string{"hidden", "submit", "button"}, a["type"])
	}
	f.later = f.later || f.main && !f.form && slices.Contains(classes, "card") && tag == "section"
	f.wrong = f.wrong || f.form && slices.Contains(classes, "has-error")
	return false
}

// ofPages reports whether the class is one of forms that a page is about.
func ofPages(class string) bool {
	return class == "form" || class == "dialog-card" || class == "gate-card"
}
