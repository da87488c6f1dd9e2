package delivery

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/message"
)

// Limits of the texts that staff write, in runes, and of the languages besides the default
// language.
const (
	MaxTitle     = 200
	MaxBody      = 4000
	MaxLanguages = 50
)

// Text is one title and body. Both may contain variables, see [message.Parse]; the body is
// Markdown.
type Text struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	// Blocks are the blocks of a mail, as in the mail of a drop; none = the title, the body and a
	// button. Other channels show the body.
	Blocks []message.Block `json:"blocks,omitempty"`
}

// Message returns t as a text of package message.
func (t Text) Message() message.Text {
	return message.Text{Title: t.Title, Body: t.Body, Blocks: t.Blocks}
}

// Empty reports whether nothing is written.
func (t Text) Empty() bool { return t.Title == "" && t.Body == "" && len(t.Blocks) == 0 }

// equal reports whether t and o read the same.
func (t Text) equal(o Text) bool {
	return t.Title == o.Title && t.Body == o.Body && slices.Equal(t.Blocks, o.Blocks)
}

// A Variant is one of the contents that are compared with each other.
type Variant struct {
	// Percent of the recipients get this one.
	Percent int `json:"percent"`
	// Texts per language tag such as "zh-CN"; "" is the default language.
	Texts map[string]Text `json:"texts"`
}

// Copy is the text that staff wrote for a message of their own.
type Copy struct {
	Variants []Variant `json:"variants"`
	// HoldOut is the percentage of recipients who get no message, as the control group of a
	// comparison.
	HoldOut int `json:"hold_out,omitempty"`
	// Link is the https address to which {{link}} and the button lead; "" = the claim page of the
	// drop that the message is about.
	Link string `json:"link,omitempty"`
	// Test, if set, sends the variants to a part of the recipients first.
	Test *Test `json:"test,omitempty"`
}

// Equal reports whether c and o contain the same texts for all recipients. Different line ends
// and different spellings of a language tag count as equal.
func (c Copy) Equal(o Copy) bool {
	return c.HoldOut == o.HoldOut && c.Link == o.Link && c.Test.Same(o.Test) && slices.EqualFunc(c.Variants, o.Variants, func(a, b Variant) bool {
		return a.Percent == b.Percent && maps.EqualFunc(tidy(a.Texts), tidy(b.Texts), Text.equal)
	})
}

// tidy returns the texts with line ends as \n, by language tags in canonical form.
func tidy(texts map[string]Text) map[string]Text {
	m := make(map[string]Text, len(texts))
	for tag, t := range texts {
		if canonical, ok := message.Canonical(tag); ok {
			tag = canonical
		}
		blocks := slices.Clone(t.Blocks)
		for i := range blocks {
			blocks[i].Text = strings.ReplaceAll(blocks[i].Text, "\r\n", "\n")
		}
		m[tag] = Text{t.Title, strings.ReplaceAll(t.Body, "\r\n", "\n"), blocks}
	}
	if len(m) < len(texts) { // one language twice
		return texts
	}
	return m
}

// For returns the text for a reader of locale, and the tag of its language: the text in that
// language or in one of its parents, otherwise the default text.
func (v Variant) For(locale string) (Text, string) {
	if t, ok := v.Texts[locale]; ok && locale != "" {
		return t, locale
	}
	tags := slices.DeleteFunc(slices.Sorted(maps.Keys(v.Texts)), func(tag string) bool { return tag == "" })
	tag, _ := message.Choose(tags, locale)
	return v.Texts[tag], tag
}

// uses reports whether any text of c has the variable in it.
func (c *Copy) uses(name string) bool {
	for _, v := range c.Variants {
		for _, t := range v.Texts {
			for _, s := range t.parts() {
				if p, err := message.Parse(s, message.Campaign); err == nil && slices.Contains(p.Uses(false), name) {
					return true
				}
			}
		}
	}
	return false
}

// Plain returns the body, and below it the blocks, to be compared by a reader: each block with its
// type and the address of its image.
func (t Text) Plain() string {
	lines := []string{}
	if t.Body != "" {
		lines = append(lines, t.Body)
	}
	for _, b := range t.Blocks {
		lines = append(lines, strings.TrimSpace(strings.Join([]string{"[" + string(b.Type) + "]", b.Text, b.URL}, " ")))
	}
	return strings.Join(lines, "\n")
}

// parts returns the texts of t that may contain variables.
func (t Text) parts() []string {
	list := []string{t.Title, t.Body}
	for _, b := range t.Blocks {
		list = append(list, b.Text)
	}
	return list
}

// each calls visit with every text of c, in the order of variants and language tags.
func (c Copy) each(visit func(variant int, tag string, t Text)) {
	for i, v := range c.Variants {
		for _, tag := range slices.Sorted(maps.Keys(v.Texts)) {
			visit(i, tag, v.Texts[tag])
		}
	}
}

// Targets returns the addresses that staff wrote into the texts, each once. In messages tracked
// addresses replace them. An address with a variable in it is not among them.
func (c Copy) Targets() []string {
	var list []string
	c.each(func(_ int, tag string, t Text) {
		if !strings.Contains(strings.Join(t.parts(), " "), "://") && !strings.Contains(t.Body, "www.") && len(t.Blocks) == 0 {
			return // most texts have no address, and compiling takes time
		}
		for _, over := range []message.Channel{message.Email, message.App} {
			for _, target := range message.CompileCampaign(over, tag, t.Message(), message.Shop{}).Targets() {
				if !slices.Contains(list, target) {
					list = append(list, target)
				}
			}
		}
	})
	return list
}

// TargetOf returns the address to which the link with that mark leads: for 0 the link of c, or
// claimURL if c has none, otherwise the address in a text that has the mark; "" = there is none.
func (c Copy) TargetOf(claimURL string, mark uint32, markOf func(address string) uint32) string {
	switch {
	case mark == 0 && c.Link != "":
		return c.Link
	case mark == 0:
		return claimURL
	}
	list := c.Targets()
	if i := slices.IndexFunc(list, func(address string) bool { return markOf(address) == mark }); i >= 0 {
		return list[i]
	}
	return ""
}

// CheckLink adds an error for every text that has a gap in messages without a link, if link is
// empty: such a message would show an empty link.
func (c Copy) CheckLink(e *fault.Fields, link string) {
	if link != "" {
		return
	}
	c.each(func(variant int, tag string, t Text) {
		name := ""
		for i, s := range t.parts() {
			if name == "" && message.NeedsLink(s, message.Campaign) {
				name = [...]string{"title", "body", "blocks"}[min(i, 2)]
			}
		}
		if name != "" {
			e.Add(place(name, variant, tag), "rule.empty_link",
				"contains {{link}}, which leads nowhere: give the message a link, choose a drop with a claim page, or write [[ {{link}} ]]")
		}
	})
}

// Language returns the tag of the text that a reader of locale gets; "" = the default text. For
// [HeldOut] it is the tag of the first variant's text.
func (c Copy) Language(variant int, locale string) string {
	if len(c.Variants) == 0 {
		return ""
	}
	_, tag := c.Variants[min(max(variant, 0), len(c.Variants)-1)].For(locale)
	return tag
}

// Check adds every rule that c breaks to e. Fields of the default language are named "title" and
// "body", fields of other languages "title.zh-CN". Fields of the second variant begin with
// "variant_b.".
func (c Copy) Check(e *fault.Fields) {
	if len(c.Variants) == 0 || len(c.Variants) > 2 {
		e.Add("variants", "rule.variants", "write one message, or two to compare")
		return
	}
	languages := map[string]bool{}
	for _, v := range c.Variants {
		for tag := range v.Texts {
			languages[tag] = true
		}
	}
	if delete(languages, ""); len(languages) > MaxLanguages {
		e.Add(place("title", 0, ""), "rule.languages", "at most %d languages besides the default one", MaxLanguages)
		return
	}
	sum := 0
	for i, v := range c.Variants {
		sum += v.Percent
		if most := 100 - (len(c.Variants) - 1); v.Percent < 1 || v.Percent > most {
			e.Add(place("percent", i, ""), "rule.share", "must be between %d and %d percent", 1, most)
		}
		if _, ok := v.Texts[""]; !ok {
			e.Add(place("title", i, ""), "rule.default_language", "is missing in the default language")
		}
		for _, tag := range slices.Sorted(maps.Keys(v.Texts)) {
			if title := v.Texts[tag].Title; strings.ContainsAny(title, "\r\n\t") {
				e.Add(place("title", i, tag), "rule.one_line", "must be one line")
			} else {
				checkCopy(e, place("title", i, tag), title, MaxTitle)
			}
			if len(v.Texts[tag].Blocks) == 0 || v.Texts[tag].Body != "" {
				checkCopy(e, place("body", i, tag), v.Texts[tag].Body, MaxBody)
			}
			message.CheckBlocks(e, place("blocks", i, tag), v.Texts[tag].Message())
			if tag != "" && !validTag(tag) {
				e.Add(place("title", i, tag), "rule.locale", "must be a language tag such as en or zh-CN")
			}
		}
	}
	if sum != 100 {
		e.Add("variants", "rule.percent_sum", "the percentages must add up to 100")
	}
	if c.Link != "" && !message.SafeAddress(c.Link) {
		e.Add("link", "rule.link_address", "must be an https address of at most %d characters", message.MaxURL)
	}
	c.Test.check(e, len(c.Variants))
	if c.HoldOut < 0 || c.HoldOut > MaxHoldOut {
		e.Add("hold_out", "rule.hold_out", "must be between %d and %d percent", 0, MaxHoldOut)
	}
}

func place(name string, variant int, tag string) string {
	if variant > 0 {
		name = "variant_b." + name
	}
	if tag != "" {
		name += "." + tag
	}
	return name
}

func validTag(tag string) bool {
	for i, part := range strings.Split(tag, "-") {
		if len(part) < 2 || len(part) > 8 || strings.ContainsFunc(part, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9')
		}) {
			return false
		}
	}
	return true
}

func checkCopy(e *fault.Fields, name, s string, most int) {
	switch n := utf8.RuneCountInString(s); {
	case !utf8.ValidString(s), strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }):
		e.Add(name, "rule.text", "must be valid text without control characters")
	case strings.TrimSpace(s) == "":
		e.Add(name, "rule.required", "must not be empty")
	case n > most:
		e.Add(name, "rule.too_long", "must have at most %d characters", most)
		return // reading variables takes time that grows with the square of the length
	case most == MaxBody:
		message.CheckFormatted(e, name, s)
	}
	var mistake *message.SyntaxError
	if _, err := message.Parse(s, message.Campaign); errors.As(err, &mistake) {
		e.Add(name, mistake.Key, "%s", mistake.Error())
	}
}
