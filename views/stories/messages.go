package stories

import (
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/picture"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// messages are the pages on which the texts of a drop and of a shop are written.
func messages() []Story {
	drop := editor("en")
	drop.Texts[1].History = []message.Version{{ID: 12, At: Now().Add(-time.Hour), By: "staff:2 Lin Mei", Text: &message.Text{}, RestoredFrom: 7}, {ID: 9, At: Now().Add(-2 * time.Hour), By: "staff:2 Lin Mei"},
		{ID: 7, At: Now().Add(-3 * time.Hour), By: "staff:1 Ada Okafor", Text: &message.Text{}}}
	drop.Texts[1].Blocks = append(drop.Texts[1].Blocks, message.Block{Type: message.Image, URL: "https://shop.example/tea.png", Text: "A pot of tea"})
	broken := editor("zh")
	broken.Name.Title = "月饼之夜"
	broken.Errors = []fault.Field{{Name: "sms_body", Key: "rule.variable_unknown", Message: `line 2: "{{nmae}}" is not a variable; there are "user, drop, shop"`}}
	shop := editor("en")
	shop.Name = nil
	shop.Tabbed, shop.Title, shop.URL, shop.Active, shop.Place, shop.Crumbs = false, "Message: Harbour Tea House", "/shops/10/message", "shops", message.Place{Shop: 10}, []ui.Crumb{{Label: "Shops", URL: "/shops"}}
	shop.Settings = &messagepages.Settings{Values: map[string]string{"default_language": "zh-CN", "colour": "#c2410c", "part_price": "0.05", "currency": "CNY",
		"sender": "Harbour Tea House", "reply_to": "help@tea.example", "preheader": "{{worth}} at {{shop}}", "postal_address": "1 Harbour Road\nShanghai 200120"}}
	shop.Pictures = pageparts.Pictures{Shop: 10, List: []pageparts.Picture{{Address: "https://drops.example/pictures/10/a.png", Alt: "Moon cakes", Width: 1200, Height: 600}}}
	drop.Pictures = shop.Pictures
	looking := editor("en")
	looking.MayEdit = false
	return []Story{
		{Name: "messages/mail", Page: drop.Page()},
		{Name: "messages/errors", Page: broken.Page()},
		{Name: "messages/shop", Page: shop.Page()},
		{Name: "messages/pictures", Page: library().Page()},
		{Name: "messages/no-pictures", Page: messagepages.Library{Shop: library().Shop, MayEdit: true, Zone: shanghai(), Alt: "Tea",
			Errors: []fault.Field{{Name: "file", Key: "rule.picture_type", Message: "must be a picture of the type JPEG, PNG, GIF or WebP"}}}.Page()},
		{Name: "messages/drop-page", Page: dropPage(template.Scheduled, false, droppages.Claimed{}).Page(), Outside: true},
		{Name: "messages/drop-page-open", Page: dropPage(template.Open, true, droppages.Claimed{}).Page(), Outside: true},
		{Name: "messages/drop-page-done", Page: dropPage(template.Open, true, droppages.Claimed{Done: true}).Page(), Outside: true},
		{Name: "messages/drop-page-refused", Page: dropPage(template.SoldOut, true, droppages.Claimed{Refused: "All coupons are issued."}).Page(), Outside: true},
		{Name: "messages/viewer", Page: looking.Page(), Role: staff.Viewer},
	}
}

// library is the page of a shop's pictures. The storybook has the icons of the console for them.
func library() messagepages.Library {
	one := picture.Picture{ID: 2, Shop: 10, Hash: strings.Repeat("a", 64), Type: "png", Width: 1200, Height: 600, Bytes: 81_234, Name: "cakes.png", Alt: "Four moon cakes on a blue plate", At: Now().Add(-time.Hour),
		Uses: []picture.Use{{Template: 1, Name: "Moon cake night"}, {}}}
	two := picture.Picture{ID: 1, Shop: 10, Hash: strings.Repeat("b", 64), Type: "jpeg", Width: 400, Height: 400, Bytes: 21_000, Name: "logo.jpg", Alt: "Harbour Tea House", At: Now().Add(-48 * time.Hour)}
	return messagepages.Library{Shop: template.Shop{Number: 10, Name: "Harbour Tea House"}, MayEdit: true, Zone: shanghai(), List: []picture.Picture{one, two}}
}

// dropPage is the page of a drop without a claim address.
func dropPage(state template.State, may bool, claimed droppages.Claimed) droppages.Public {
	d := coupon(1, "Moon cake night", 2*time.Hour)
	return droppages.Public{Drop: d, Name: d.Name, Description: "Tea and cakes, all day long.", State: state, MayClaim: may, Claimed: claimed}
}

// editor is the page of the reminders of a drop with the built-in texts of the language.
func editor(tag string) messagepages.Editor {
	p := messagepages.Editor{Title: "Message: Moon cake night", Active: "templates", URL: "/templates/1/message", Tabbed: true, Place: message.Place{Shop: 10, Template: 1},
		Crumbs: []ui.Crumb{{Label: "Drops", URL: "/templates"}, {Label: "Moon cake night", URL: "/templates/1"}}, Kind: message.Reminder, Language: tag, MayEdit: true, Zone: shanghai(),
		Own: pageparts.Own{Email: "ada@shop.example"}, Name: &messagepages.Name{}, Counted: "Counted among the 12,340 customers who have reserved a reminder.",
		Missing: []message.Missing{{Language: "de", Readers: 1_640}, {Language: "fr", Readers: 212}}}
	p.Tabs = []pageparts.LanguageTab{{Tag: "en", URL: "?language=en", Readers: ptr(int64(8_988)), Current: tag == "en"}, {Tag: "zh", URL: "?language=zh", Readers: ptr(int64(1_500)), Current: tag == "zh", Note: "3 of 5 channels written"}}
	p.Previews = pageparts.Previews{Reader: "Robin Chen"}
	for _, c := range message.Channels() {
		key := message.Key{Kind: message.Reminder, Channel: c, Language: tag}
		text, _ := message.Default(key)
		p.Texts = append(p.Texts, messagepages.Text{Channel: c, Text: text, Was: messagepages.Mark(text), Found: message.Found{Key: key, Text: text, Level: message.BuiltIn}, Written: true})
		preview := pageparts.Preview{Channel: c, Content: message.Draft{Kind: message.Reminder, Language: tag, Text: text}.Render(nil, message.SampleFacts(message.Reminder), c,
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
	p.Previews = editor("en").Previews
	return p
}
