package message

import (
	"strings"
	"testing"
)

// A description is in the text's language, or else the drop's own. It is on one line, bounded,
// and escaped in a page. A missing description is treated like any variable without a value.
func TestDescription(t *testing.T) {
	names := func(id int64, tag, title, body string) Version {
		return Version{ID: id, Shop: 1, Template: 7, Key: Key{Names, "", tag}, Text: &Text{Title: title, Body: body}}
	}
	b := NewBook([]Version{names(1, "de", "Frühling", "Tee\nund <b>Kuchen</b>"), names(2, "zh", "春季", " ")})
	say := func(tag, text, own string, c Channel) Content {
		t.Helper()
		x := Text{Title: "x", Body: text}
		if c == Email {
			x.Blocks = []Block{{Type: Words, Text: text}}
		}
		if err := x.Check(Key{Reminder, c, tag}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		return Draft{Kind: Reminder, Language: tag, Text: x}.Render(b, Facts{Drop: "Spring", Description: own}, c, Reader{})
	}
	for _, c := range []struct{ tag, text, own, want string }{
		{"de-AT", "{{drop}}: {{description}}", "Tea", "Frühling: Tee und <b>Kuchen</b>"},
		{"zh", "{{drop}}：{{description}}", "Tea", "春季：Tea"},
		{"en", "{{description}}", " a \n\n b\u202e ", "a b"},
		{"en", "{{description|All day}}.", "", "All day."},
		{"en", "{{drop}}[[ – {{description}}]].", "", "Spring."},
		{"en", "{{drop}}[[ – {{description}}]].", "Tea", "Spring – Tea."},
		{"en", "{{description}}", strings.Repeat("é", 600), strings.Repeat("é", 499) + "…"},
	} {
		if got := say(c.tag, c.text, c.own, SMS).Text; got != c.want {
			t.Errorf("%s %q: %q, want %q", c.tag, c.text, got, c.want)
		}
	}
	if page := say("de", "{{description}}", "", Email).HTML; strings.Contains(page, "<b>Kuchen") || !strings.Contains(page, "&lt;b&gt;Kuchen") {
		t.Error("a description is part of the page's markup")
	}
	for _, k := range Written() {
		if _, err := Parse("{{description}}", k); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
}
