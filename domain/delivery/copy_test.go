package delivery

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

func TestParseText(t *testing.T) {
	values := func(name string) string {
		return map[string]string{VarName: "Li", VarCouponName: "20 off"}[name]
	}
	for in, want := range map[string]string{
		"":                                "",
		"plain { } }} text":               "plain { } }} text",
		"Hi {{name}}!":                    "Hi Li!",
		"Hi {{ name | friend }}!":         "Hi Li!",
		"{{coupon.name}}{{name}}":         "20 offLi",
		"at {{opens_at|the opening}}":     "at the opening",
		"at {{opens_at}}.":                "at .",
		"{{name|}} {{link|https://x.y/}}": "Li https://x.y/",
		"{not {{name}} }":                 "{not Li }",
	} {
		p, err := ParseText(in)
		if err != nil || p.Fill(values) != want {
			t.Errorf("%q: %q %v, want %q", in, p.Fill(values), err, want)
		}
	}
	for _, in := range []string{"{{", "{{}}", "{{nome}}", "{{name", "{{ {{name}}", "{{name.x}}", "{{.Name}}", "{{template \"x\"}}", "{{Name}}", "{{name}} {{"} {
		if _, err := ParseText(in); err == nil {
			t.Errorf("%q is accepted", in)
		}
	}
	p, _ := ParseText("{{name}} {{name|x}} {{link|}} {{opens_at}}")
	if got := strings.Join(p.Uses(true), " "); got != "name opens_at" {
		t.Errorf("without a fallback: %s", got)
	}
}

// TestTextsStayText: values are never parsed again, whatever they hold.
func TestTextsStayText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		p, err := ParseText("a{{name}}b")
		if got := p.Fill(func(string) string { return value }); err != nil || value != "" && got != "a"+value+"b" {
			t.Fatalf("%q became %q", value, got)
		}
	})
}

func TestTitlesAreOneLine(t *testing.T) {
	for title, right := range map[string]bool{"Soon: {{coupon.name}}": true, "two\nlines": false, "a\rb": false, "a\tb": false} {
		e := &fault.Fields{}
		Copy{Variants: []Variant{{Percent: 100, Texts: map[string]Text{"": {Title: title, Body: "two\nlines"}}}}}.Check(e)
		if (e.Err() == nil) != right {
			t.Errorf("%q: %v", title, e.Err())
		}
	}
}

func TestParsingNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"{{", "}}", "{", "}", "|", "name", " ", "é", "{{name}}"})).Draw(t, "s"), "")
		p, err := ParseText(s)
		if err == nil {
			p.Fill(func(string) string { return "x" })
		}
	})
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
	got := RenderCopy(s, 0, user.User{Name: `<script>alert("x")</script>` + "\u202e", Timezone: "Asia/Shanghai"})
	if strings.Contains(got.HTML, "<script>") || strings.Contains(got.HTML, "<b>") || strings.Contains(got.Title, "\u202e") {
		t.Errorf("not escaped: %s", got.HTML)
	}
	if got.Text != "<b>20 <off></b>\n\nuntil Tuesday, 1 December 2026 at 20:00 CST (UTC+8)" {
		t.Errorf("text %q", got.Text)
	}
	if !strings.Contains(got.HTML, `href="https://shop.example/c"`) || !strings.Contains(got.HTML, "&lt;b&gt;20 &lt;off&gt;&lt;/b&gt;") {
		t.Errorf("mail %s", got.HTML)
	}
	r := NewRenderer(s, Email)
	if a, b := r.For(user.User{Name: "A"}), r.For(user.User{Name: "B"}); a.Title != "For A" || b.Title != "For B" {
		t.Errorf("names are mixed up: %q %q", a.Title, b.Title)
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
