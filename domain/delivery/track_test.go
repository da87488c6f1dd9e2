package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/domain/user"
)

// Every reader gets a separate link, in the text and in the mail's button, and never another
// reader's link, however much the readers have in common.
func TestTrackedLinksAreNotShared(t *testing.T) {
	c := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "Come", Body: "See {{link}}"}}}}}
	s := Subject{Kind: KindCampaign, OwnerID: 5, Copy: &c, ClaimURL: "https://shop.example/c",
		Track: func(id user.ID, variant int, _ string) string {
			return fmt.Sprintf("https://drop.example/l/%s-%d", id, variant)
		}}
	r := NewRenderer(nil, s, Email)
	for _, id := range []user.ID{1, 2, 1} {
		want := fmt.Sprintf("https://drop.example/l/%s-0", id)
		u := user.User{ID: id}
		got := r.For(u)
		if got.Text != "See "+want || !strings.Contains(got.HTML, `href="`+want+`"`) || strings.Contains(got.HTML, s.ClaimURL) {
			t.Errorf("user %d reads %q\n%s", id, got.Text, got.HTML)
		}
		if m := (Message{To: &u, Subject: &s}); m.Link() != want {
			t.Errorf("user %d is led to %s", id, m.Link())
		}
	}
	for _, url := range []string{"", "javascript:alert(1)"} {
		s.ClaimURL = url
		if got := NewRenderer(nil, s, Email).For(user.User{ID: 1}); got.Text != "See" {
			t.Errorf("%q is led to: %q", url, got.Text)
		}
	}
	s.ClaimURL, s.Track = "https://shop.example/c", nil
	if got := NewRenderer(nil, s, Email).For(user.User{ID: 1}); got.Text != "See https://shop.example/c" {
		t.Errorf("untracked: %q", got.Text)
	}
}

// springCampaign is a campaign's subject whose text is given.
func springCampaign(title, body, base string) Subject {
	c := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: title, Body: body}, "zh-CN": {Title: "春天 " + title, Body: "看 " + body}}}}}
	return Subject{Kind: KindCampaign, OwnerID: 5, Copy: &c, ClaimURL: "https://shop.example/c", ShopName: "Bea & Co", TemplateName: "20 <off>",
		EndsAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Track: func(id user.ID, variant int, _ string) string { return fmt.Sprintf("%s/l/%s-%d", base, id, variant) }}
}

// TestQuickFormSaysTheSame: a text from a form that readers share equals the text that is
// rendered for the reader alone.
func TestQuickFormSaysTheSame(t *testing.T) {
	long := strings.Repeat("long ", 60)
	for _, title := range []string{"Come", "For {{name|you}}", "See {{link}}", long + "{{link}}", "{{name}}"} {
		for _, body := range []string{"{{link}}", "See {{link}}, or {{link}}\n\n {{link}} \n", "No link at all, until {{ends_at}}", "{{name}}\n{{link}}", "{{coupon.name}} {{link|nowhere}} <b>", "{{broken"} {
			for _, base := range []string{"https://drop.example", "https://drop.example:8443/a~b", "https://drop.example/?a=1&b='\"+é", ""} {
				s := springCampaign(title, body, base)
				for _, c := range []Channel{Email, Webhook} {
					r := NewRenderer(nil, s, c)
					for i, u := range []user.User{{ID: 1}, {ID: 2, Name: "Ann <3"}, {ID: 3, Locale: "zh-CN", Timezone: "Asia/Shanghai"}, {ID: 4, Name: " ", Locale: "zh"}, {ID: 2}} {
						want := RenderCopy(nil, s, c, 0, u)
						if got := *r.For(u); got != want {
							t.Fatalf("title %q, body %q, base %q, %s, reader %d:\n%+v\nwant\n%+v", title, body, base, c, i, got, want)
						}
					}
				}
			}
		}
	}
}

// BenchmarkLetter compares the cost of one reader's content: with a text that all readers share,
// with a separate link, and with the reader's name.
func BenchmarkLetter(b *testing.B) {
	links := user.NewLinks("0123456789abcdef0123456789abcdef")
	for _, c := range []struct{ name, body string }{{"shared", "Everything must go"}, {"link", "Everything must go: {{link}}"}, {"name and link", "{{name|You}}: {{link}}"}} {
		for _, channel := range []Channel{Webhook, Email} {
			b.Run(c.name+"/"+channel.String(), func(b *testing.B) {
				s := springCampaign("Spring", c.body, "")
				s.Track = func(id user.ID, _ int, _ string) string { return "https://drop.example/l/" + links.Token(id, 1) }
				r, u := NewRenderer(nil, s, channel), user.User{Name: "Ann", Locale: "en", Timezone: "Europe/Berlin"}
				for b.Loop() {
					u.ID++
					r.For(u)
				}
			})
		}
	}
}
