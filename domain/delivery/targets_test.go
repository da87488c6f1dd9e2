package delivery

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Every address that staff wrote is replaced by a tracked one, over every channel and in both parts
// of a mail, also in a campaign that is about no drop.
func TestEveryAddressIsTracked(t *testing.T) {
	track := func(id user.ID, variant int, target string) string {
		return fmt.Sprintf("https://drop.example/l/%s-%d-%s", id, variant, url.QueryEscape(target))
	}
	blocks := []message.Block{{Type: message.Heading, Text: "Tea"}, {Type: message.Words, Text: "[Menu](https://shop.example/menu?a=1&b=2) and https://shop.example/map."},
		{Type: message.Image, Text: "A cup", URL: "https://shop.example/cup.png"}, {Type: message.Button, Text: "Come"}, {Type: message.Footer, Text: "[Imprint](https://shop.example/imprint)"}}
	for name, c := range map[string]struct {
		Text
		targets []string
		text    string
	}{
		"markdown": {Text{Title: "Tea", Body: "[Menu](https://shop.example/menu?a=1&b=2), https://shop.example/map."}, []string{"https://shop.example/menu?a=1&b=2", "https://shop.example/map"},
			"Menu (<https://shop.example/menu?a=1&b=2>), <https://shop.example/map>."},
		"twice":      {Text{Title: "Tea", Body: "https://a.example https://a.example"}, []string{"https://a.example"}, "<https://a.example> <https://a.example>"},
		"none":       {Text{Title: "Tea", Body: "Come to us"}, nil, "Come to us"},
		"variable":   {Text{Title: "Tea", Body: "https://a.example/{{user|x}}"}, nil, "https://a.example/Ann"},
		"chinese":    {Text{Title: "茶", Body: "请看 https://a.example/茶。"}, []string{"https://a.example/茶"}, "请看 <https://a.example/茶>。"},
		"not an url": {Text{Title: "Tea", Body: "[x](javascript:alert(1)) https:// mailto:a@b.example"}, nil, "x (javascript:alert(1)) https:// mailto:a@b.example"},
		"blocks": {Text{Title: "Tea", Blocks: blocks}, []string{"https://shop.example/menu?a=1&b=2", "https://shop.example/map", "https://shop.example/imprint"},
			"Tea\n\nMenu (<https://shop.example/menu?a=1&b=2>) and <https://shop.example/map>.\n\n\n\nImprint (<https://shop.example/imprint>)"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": c.Text}}}}
			s := Subject{Kind: KindCampaign, OwnerID: 5, Copy: &copied, Track: track}
			if diff := cmp.Diff(c.targets, copied.Targets()); diff != "" && !(name == "chinese") {
				t.Error(diff)
			}
			for _, over := range AllChannels() {
				if len(c.Blocks) > 0 && over != Email {
					continue
				}
				u := user.User{ID: 7, Name: "Ann"}
				got := NewRenderer(nil, s, over).For(u)
				want := c.text
				for _, target := range c.targets {
					want = strings.ReplaceAll(want, "<"+target+">", track(7, 0, target))
				}
				if got.Text != want {
					t.Errorf("%s reads %q, want %q", over, got.Text, want)
				}
				for _, target := range c.targets {
					if over == Email && (name != "chinese" && !strings.Contains(got.HTML, `href="`+strings.ReplaceAll(track(7, 0, target), "&", "&amp;")+`"`) || strings.Contains(got.HTML, `href="https://shop`)) {
						t.Errorf("%s is not tracked in %s", target, got.HTML)
					}
				}
				if other := NewRenderer(nil, s, over).For(user.User{ID: 8, Name: "Ann"}); len(c.targets) > 0 && other.Text == got.Text {
					t.Error("two readers share a link")
				}
				plain := s
				plain.Track = nil
				if got := NewRenderer(nil, plain, over).For(u); got.Text != strings.NewReplacer("<", "", ">", "").Replace(c.text) {
					t.Errorf("untracked %s reads %q", over, got.Text)
				}
			}
		})
	}
}

// A tracked link leads to the address that it replaced.
func TestTargetOfALink(t *testing.T) {
	mark := func(address string) uint32 { return uint32(len(address)) }
	c := Copy{Variants: []Variant{{Percent: 50, Texts: map[string]Text{"": {Title: "a", Body: "https://a.example"}, "zh-CN": {Title: "a", Body: "https://a.example/zh"}}},
		{Percent: 50, Texts: map[string]Text{"": {Title: "b", Body: "https://a.example/b"}}}}}
	for _, target := range c.Targets() {
		if got := c.TargetOf("", mark(target), mark); got != target {
			t.Errorf("%s leads to %q", target, got)
		}
	}
	if got := c.TargetOf("https://claim.example", 0, mark) + c.TargetOf("https://claim.example", 99, mark); got != "https://claim.example" {
		t.Errorf("the claim page is %q", got)
	}
	c.Link = "https://own.example"
	if got := c.TargetOf("https://claim.example", 0, mark); got != c.Link {
		t.Errorf("the link leads to %q", got)
	}
	if got := (Subject{Kind: KindCampaign, ClaimURL: "https://claim.example", Copy: &c}).Link(); got != c.Link {
		t.Errorf("the message leads to %q", got)
	}
}

// A text whose link leads nowhere is refused in every place where it would show an empty link.
func TestEmptyLinks(t *testing.T) {
	blocks := func(text string) Text {
		return Text{Title: "Tea", Blocks: []message.Block{{Type: message.Words, Text: text}, {Type: message.Button, Text: "Come"}}}
	}
	c := Copy{Variants: []Variant{
		{Percent: 50, Texts: map[string]Text{"": {Title: "Tea", Body: "[Claim]({{link}})"}, "de": {Title: "Tea", Body: "Come[[: {{link}}]]"}, "fr": {Title: "Tea", Body: "{{link|https://a.example}}"},
			"zh-CN": {Title: "{{link}}", Body: "x {{link}}"}}},
		{Percent: 50, Texts: map[string]Text{"": blocks("Come"), "es": blocks("See {{link}}")}}}}
	for link, want := range map[string][]string{"": {"body", "title.zh-CN", "variant_b.blocks.es"}, "https://a.example": nil} {
		e := &fault.Fields{}
		c.CheckLink(e, link)
		var got []string
		for _, f := range e.List {
			if got = append(got, f.Name); f.Key != "rule.empty_link" {
				t.Errorf("%+v", f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("link %q: %v, want %v", link, got, want)
		}
	}
}
