package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

func TestTitlesAreOneLine(t *testing.T) {
	for title, right := range map[string]bool{"Soon: {{coupon.name}}": true, "two\nlines": false, "a\rb": false, "a\tb": false} {
		e := &fault.Fields{}
		Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: title, Body: "two\nlines"}}}}}.Check(e)
		if (e.Err() == nil) != right {
			t.Errorf("%q: %v", title, e.Err())
		}
	}
}

func TestVariantsAreDividedByPercent(t *testing.T) {
	c := Copy{Variants: []Variant{{Percent: 30}, {Percent: 70}}, HoldOut: 20}
	counts := map[int]int{}
	const n = 100_000
	for id := range user.ID(n) {
		v := c.Pick(5, id+1)
		if v != c.Pick(5, id+1) {
			t.Fatal("not the same every time")
		}
		counts[v]++
	}
	for v, want := range map[int]float64{HeldOut: 0.2, 0: 0.24, 1: 0.56} {
		if got := float64(counts[v]) / n; got < want-0.01 || got > want+0.01 {
			t.Errorf("variant %d: %.3f, want %.2f", v, got, want)
		}
	}
	// Two campaigns divide users independently of each other.
	both := 0
	for id := range user.ID(n) {
		if c.Pick(5, id+1) == 0 && c.Pick(6, id+1) == 0 {
			both++
		}
	}
	if got := float64(both) / n; got < 0.0476 || got > 0.0676 {
		t.Errorf("both first: %.4f, want 0.0576", got)
	}
}

func TestLanguagesFallBack(t *testing.T) {
	v := Variant{Texts: map[string]Text{"": {Title: "default"}, "zh-CN": {Title: "中文"}, "pt": {Title: "olá"}}}
	for locale, want := range map[string]string{"": "default", "en": "default", "zh-CN": "中文", "zh-TW": "中文", "zh": "中文", "pt-BR": "olá", "ptx": "default"} {
		if got, _ := v.For(locale); got.Title != want {
			t.Errorf("%q reads %q, want %q", locale, got.Title, want)
		}
	}
}

func TestRenderCopyEscapesWhatItPutsIn(t *testing.T) {
	c := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "For {{name|you}}", Body: "<b>{{coupon.name}}</b>\n\nuntil {{ends_at}}"}}}}}
	s := Subject{Kind: KindCampaign, OwnerID: 1, Copy: &c, TemplateName: "20 <off>", EndsAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), ClaimURL: "https://shop.example/c"}
	got := RenderCopy(nil, s, Email, 0, user.User{Name: `<script>alert("x")</script>` + "\u202e", Timezone: "Asia/Shanghai"})
	if strings.Contains(got.HTML, "<script>") || strings.Contains(got.HTML, "<b>") || strings.Contains(got.Title, "\u202e") {
		t.Errorf("not escaped: %s", got.HTML)
	}
	if got.Text != "<b>20 <off></b>\n\nuntil Tuesday, 1 December 2026 at 20:00 Beijing time" {
		t.Errorf("text %q", got.Text)
	}
	if !strings.Contains(got.HTML, `href="https://shop.example/c"`) || !strings.Contains(got.HTML, "&lt;b&gt;20 &lt;off&gt;&lt;/b&gt;") {
		t.Errorf("mail %s", got.HTML)
	}
	r := NewRenderer(nil, s, Email)
	if a, b := r.For(user.User{Name: "A"}), r.For(user.User{Name: "B"}); a.Title != "For A" || b.Title != "For B" {
		t.Errorf("names are mixed up: %q %q", a.Title, b.Title)
	}
}

// Line ends and the case of tags, which the form of a campaign changes, are no difference.
func TestEqualTexts(t *testing.T) {
	written := func(tag, body string) Copy {
		return Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "a", Body: "b"}, tag: {Title: "c", Body: body}}}}}
	}
	stored := written("zh-hant", "d\r\ne")
	for _, c := range []struct {
		Copy
		same bool
	}{{stored, true}, {written("zh-Hant", "d\ne"), true}, {written("zh", "d\ne"), false}, {written("zh-Hant", "de"), false}} {
		if stored.Equal(c.Copy) != c.same {
			t.Errorf("%+v: want %t", c.Variants, c.same)
		}
	}
	twice := written("zh-hant", "x")
	twice.Variants[0].Texts["zh-Hant"] = Text{Title: "c", Body: "d\ne"}
	if stored.Equal(twice) || twice.Equal(stored) {
		t.Error("a language that is there twice counts as once")
	}
}

// The languages of both versions count together.
func TestMostLanguages(t *testing.T) {
	for n, refused := range map[int]bool{MaxLanguages: false, MaxLanguages + 1: true} {
		variants := []Variant{{Percent: 50, Texts: map[string]Text{}}, {Percent: 50, Texts: map[string]Text{}}}
		for i := range n {
			variants[i%2].Texts[fmt.Sprintf("en-%03d", i)] = Text{Title: "Come", Body: "Now"}
		}
		for _, v := range variants {
			v.Texts[""] = Text{Title: "Come", Body: "Now"}
		}
		var e fault.Fields
		Copy{Variants: variants}.Check(&e)
		if got := len(e.List) == 1 && e.List[0].Name == "title" && e.List[0].Key == "rule.languages"; got != refused || !refused && len(e.List) > 0 {
			t.Errorf("%d languages: %+v", n, e.List)
		}
	}
}

// With two versions the share of each is below 100 %.
func TestSharesOfVersions(t *testing.T) {
	text := map[string]Text{"": {Title: "Come", Body: "Now"}}
	for percent, refused := range map[int]bool{-1: true, 0: true, 1: false, 50: false, 99: false, 100: true, 101: true} {
		var e fault.Fields
		Copy{Variants: []Variant{{Percent: 100 - percent, Texts: text}, {Percent: percent, Texts: text}}}.Check(&e)
		if refused != (len(e.List) > 0) {
			t.Errorf("%d: %+v", percent, e.List)
		}
		for _, f := range e.List {
			if f.Message != "must be between 1 and 99 percent" || f.Key != "rule.share" {
				t.Errorf("%d: %+v", percent, f)
			}
		}
	}
}

// Previews and tries show a campaign's text as its recipients get it, over every channel.
func TestADraftReadsAsTheCampaign(t *testing.T) {
	text := Text{Title: "For {{name|you}} *", Body: "**{{coupon.name}}** at {{shop}}\n\n- until {{ends_at}}[[: {{link}}]]"}
	c := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: "x", Body: "y"}, "zh-CN": text}}}}
	for _, link := range []string{"", "https://shop.example/c"} {
		s := Subject{Kind: KindCampaign, OwnerID: 1, Copy: &c, TemplateName: "Tea", ShopName: "Harbour", EndsAt: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), ClaimURL: link}
		to := user.User{Name: "Lin", Locale: "zh-CN", Timezone: "Asia/Shanghai"}
		facts := s.Facts()
		d := message.Draft{Kind: message.Campaign, Language: "zh-CN", Text: message.Text{Title: text.Title, Body: text.Body}, About: &facts}
		for _, over := range AllChannels() {
			want := RenderCopy(nil, s, over, 0, to)
			if got := d.Render(nil, message.Facts{}, message.Channel(over.String()), message.Reader{Name: to.Name, Zone: to.Zone()}); got != want {
				t.Errorf("%v, link %q: the draft reads\n%+v, the message\n%+v", over, link, got, want)
			}
		}
	}
}
