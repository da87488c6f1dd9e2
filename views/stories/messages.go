package stories

import (
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// messages are the pages on which the texts of a drop and of a shop are written.
func messages() []Story {
	drop := editor(message.Email, "en")
	drop.Names = []messagepages.Name{{Language: "zh-CN", Title: "月饼之夜"}}
	drop.History = []message.Version{{ID: 12, At: Now().Add(-time.Hour), By: "staff:2 Lin Mei", Text: &message.Text{}, RestoredFrom: 7}, {ID: 9, At: Now().Add(-2 * time.Hour), By: "staff:2 Lin Mei"},
		{ID: 7, At: Now().Add(-3 * time.Hour), By: "staff:1 Ada Okafor", Text: &message.Text{}}}
	drop.Draft.Text.Blocks = append(drop.Draft.Text.Blocks, message.Block{Type: message.Image, URL: "https://shop.example/tea.png", Text: "A pot of tea"})
	broken := editor(message.SMS, "zh-CN")
	broken.Errors = []fault.Field{{Name: "body", Key: "rule.variable_unknown", Message: `line 2: "{{nmae}}" is not a variable; there are "user, drop, shop"`}}
	shop := editor(message.WebPush, "en")
	shop.Title, shop.URL, shop.Active, shop.Place, shop.Crumbs = "Message: Harbour Tea House", "/shops/10/message", "shops", message.Place{Shop: 10}, []ui.Crumb{{Label: "Shops", URL: "/shops"}}
	shop.Settings = &messagepages.Settings{Values: map[string]string{"default_language": "zh-CN", "colour": "#c2410c", "part_price": "0.05", "currency": "CNY"}}
	looking := editor(message.App, "en")
	looking.MayEdit = false
	return []Story{
		{Name: "messages/mail", Page: drop.Page()},
		{Name: "messages/errors", Page: broken.Page()},
		{Name: "messages/shop", Page: shop.Page()},
		{Name: "messages/viewer", Page: looking.Page(), Role: staff.Viewer},
	}
}

// editor is the page of the reminder of a drop with the built-in text.
func editor(c message.Channel, tag string) messagepages.Editor {
	key := message.Key{Kind: message.Reminder, Channel: c, Language: message.BuiltInLanguage(tag)}
	text, _ := message.Default(key)
	p := messagepages.Editor{Title: "Message: Moon cake night", Active: "templates", URL: "/templates/1/message", Place: message.Place{Shop: 10, Template: 1}, Channel: c,
		Crumbs: []ui.Crumb{{Label: "Drops", URL: "/templates"}, {Label: "Moon cake night", URL: "/templates/1"}}, Draft: message.Draft{Kind: message.Reminder, Language: tag, Text: text},
		Found: message.Found{Key: key, Text: text, Level: message.BuiltIn}, Written: true, Languages: []string{"en", "zh"}, MayEdit: true, Zone: shanghai(),
		Own: pageparts.Own{Email: "ada@shop.example"}}
	p.Previews = pageparts.Previews{Reader: "Robin Chen"}
	for _, other := range message.Channels() {
		t, _ := message.Default(message.Key{Kind: message.Reminder, Channel: other, Language: key.Language})
		preview := pageparts.Preview{Channel: other, Content: message.Draft{Kind: message.Reminder, Language: key.Language, Text: t}.Render(nil, message.SampleFacts(message.Reminder), other,
			message.Reader{Name: "Robin Chen", Zone: shanghai()})}
		preview.Content.HTML, preview.Note = "", "The storybook has no mail to show."
		preview.Size, preview.Price, preview.Currency = message.SizeOf(preview.Content.Text), 500, "CNY"
		p.Previews.List = append(p.Previews.List, preview)
	}
	return p
}

// messageStep is the step of a drop's form with a text of the drop's own.
func messageStep() pageparts.MessageStep {
	p := pageparts.MessageStep{Own: true, Language: "en", Title: "{{drop}} opens {{in}}", Text: "Hi {{user|there}}, {{worth}} at {{shop}}: {{link}}", Over: []message.Channel{message.Email, message.SMS},
		Try: pageparts.Try{Tone: ui.Good, Text: "Sent to ada@shop.example."}}
	p.Previews = editor(message.SMS, "en").Previews
	return p
}
