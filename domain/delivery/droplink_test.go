package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Reminders and corrections contain a separate tracked link for each reader over channels with
// [Channel.Tracks], also in the built-in texts. Other messages and webhooks contain the claim
// address itself.
func TestMessagesAboutDropsAreTracked(t *testing.T) {
	s := &Service{DropLinkURL: func(s *Subject, c Channel, id user.ID) string {
		return fmt.Sprintf("https://drop.example/d/%d-%d-%s-%s", s.TemplateID, s.Slot, c, id)
	}}
	own := message.NewBook([]message.Version{{ID: 1, Shop: 1, Key: message.Key{Kind: message.Reminder, Channel: message.SMS, Language: "en"}, Text: &message.Text{Body: "Soon, without a link"}}})
	for _, kind := range []Kind{KindReminder, KindCorrection, KindNotice, KindCancelled, KindTest} {
		for _, c := range AllChannels() {
			for _, book := range []*message.Book{nil, message.NewBook(nil), own} {
				b := &Batch{Channel: c, Subject: Subject{Kind: kind, TemplateID: 5, Slot: 2, ClaimURL: "https://shop.example/c", OpensAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}}
				b.Subject.Track = s.track(b)
				r := NewRenderer(book, b.Subject, c)
				for _, id := range []user.ID{1, 2, 1} {
					u := user.User{ID: id}
					tracked := c != Webhook && (kind == KindReminder || kind == KindCorrection)
					want, m := "https://shop.example/c", Message{To: &u, Channel: c, Subject: &b.Subject}
					if tracked {
						want = fmt.Sprintf("https://drop.example/d/5-2-%s-%d", c, id)
					}
					if kind == KindCancelled {
						want = ""
					}
					if m.Link() != want {
						t.Errorf("%s over %s leads user %d to %q", kind, c, id, m.Link())
					}
					if said := r.For(u); tracked && strings.Contains(said.Text+said.HTML, "shop.example") {
						t.Errorf("%s over %s shows the address itself: %s", kind, c, said.Text)
					} else if c == Email && want != "" && kind != KindTest && !strings.Contains(said.HTML, `href="`+want+`"`) {
						t.Errorf("%s by mail to %d has no button to %s", kind, id, want)
					}
				}
			}
		}
	}
}

// A mail about a drop without a claim address has a button all the same: it leads to the page of the
// drop. A cancelled drop has no such page, and an address of the shop stays.
func TestMailsHaveTheirButton(t *testing.T) {
	page := func(id int64) string { return fmt.Sprintf("https://drop.example/d/page-%d", id) }
	for _, kind := range []Kind{KindReminder, KindCorrection, KindNotice, KindCancelled, KindCampaign} {
		for _, address := range []string{"", "https://shop.example/c"} {
			s := Subject{Kind: kind, TemplateID: 5, ClaimURL: address, OpensAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
			s.OwnPage(page)
			want := address
			if want == "" {
				want = page(5)
			}
			if kind == KindCancelled {
				want = ""
			}
			if s.Link() != want {
				t.Errorf("%s with %q leads to %q", kind, address, s.Link())
			}
			if kind == KindCampaign {
				s.Copy = &Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "Come", Body: "Tea"}}}}}
			}
			if want != "" && !strings.Contains(Render(nil, s, Email, user.User{}).HTML, `href="`+want+`"`) {
				t.Errorf("%s with %q has no button", kind, address)
			}
		}
	}
}

// BenchmarkReminder compares the cost of rendering one recipient's reminder with the claim
// address itself and with a tracked link for each reader.
func BenchmarkReminder(b *testing.B) {
	links := user.NewLinks("0123456789abcdef0123456789abcdef")
	for _, tracked := range []bool{false, true} {
		for _, c := range []Channel{SMS, WebPush, Email} {
			b.Run(fmt.Sprintf("%s/own=%t", c, tracked), func(b *testing.B) {
				s := Subject{Kind: KindReminder, TemplateID: 5, TemplateName: "20 % off", ShopName: "Bea & Co", Slot: 2, ClaimURL: "https://shop.example/c",
					OpensAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
				if tracked { // the signature is as expensive as that of a link of a drop
					s.Track = func(id user.ID, _ int, _ string) string { return "https://drop.example/d/" + links.Token(id, 1) }
				}
				contents := contents{render: NewRenderer(message.NewBook(nil), s, c)}
				u := &user.User{Name: "Ann", Locale: "en", Timezone: "Europe/Berlin"}
				m := Message{To: u, Subject: &s, Channel: c}
				for b.Loop() {
					u.ID++
					m.Content = contents.of(u)
					if c == WebPush {
						m.Link()
					}
				}
			})
		}
	}
}
