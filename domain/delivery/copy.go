package delivery

import (
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/figure"
	"dropbell/domain/message"
	"dropbell/domain/user"
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
}

// Equal reports whether c and o contain the same texts for all recipients. Different line ends
// and different spellings of a language tag count as equal.
func (c Copy) Equal(o Copy) bool {
	return c.HoldOut == o.HoldOut && slices.EqualFunc(c.Variants, o.Variants, func(a, b Variant) bool {
		return a.Percent == b.Percent && maps.Equal(tidy(a.Texts), tidy(b.Texts))
	})
}

// tidy returns the texts with line ends as \n, by language tags in canonical form.
func tidy(texts map[string]Text) map[string]Text {
	m := make(map[string]Text, len(texts))
	for tag, t := range texts {
		if canonical, ok := message.Canonical(tag); ok {
			tag = canonical
		}
		m[tag] = Text{Title: t.Title, Body: strings.ReplaceAll(t.Body, "\r\n", "\n")}
	}
	if len(m) < len(texts) { // one language twice
		return texts
	}
	return m
}

// HeldOut is the variant of recipients who get no message.
const HeldOut = -1

// Divided reports whether recipients may get different contents.
func (c Copy) Divided() bool { return len(c.Variants) > 1 || c.HoldOut > 0 }

// Groups returns the variants into which [Copy.Pick] divides recipients. [HeldOut] comes last.
func (c Copy) Groups() []int {
	var list []int
	for i := range c.Variants {
		list = append(list, i)
	}
	if c.HoldOut > 0 {
		list = append(list, HeldOut)
	}
	return list
}

// Shares returns the intended share of each of [Copy.Groups] among all recipients, rounded as by
// [figure.Shares]. The percentages of variants apply to the recipients who are not held out.
func (c Copy) Shares() []int64 {
	var parts []int64
	for _, v := range c.Variants {
		parts = append(parts, int64(v.Percent*(100-c.HoldOut)))
	}
	if c.HoldOut > 0 {
		parts = append(parts, int64(100*c.HoldOut))
	}
	return figure.Shares(parts)
}

// Pick returns the index of the variant that user id gets in the message of owner, or [HeldOut].
// The result is the same every time, and independent of the user's variants in messages of other
// owners.
func (c Copy) Pick(owner int64, id user.ID) int {
	if !c.Divided() {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatInt(owner, 10) + ":" + id.String())) // a hash never fails
	// FNV's low bits follow the last byte; folding the high half in spreads them.
	sum := h.Sum64()
	point := int((sum ^ sum>>32) % 10000)
	if point < c.HoldOut*100 {
		return HeldOut
	}
	// The rest is divided by the variants' percentages.
	point = (point - c.HoldOut*100) * 100 / (100 - c.HoldOut)
	for i, v := range c.Variants {
		if point -= v.Percent * 100; point < 0 {
			return i
		}
	}
	return len(c.Variants) - 1
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
			for _, s := range []string{t.Title, t.Body} {
				if p, err := message.Parse(s, message.Campaign); err == nil && slices.Contains(p.Uses(false), name) {
					return true
				}
			}
		}
	}
	return false
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
			checkCopy(e, place("body", i, tag), v.Texts[tag].Body, MaxBody)
			if tag != "" && !validTag(tag) {
				e.Add(place("title", i, tag), "rule.locale", "must be a language tag such as en or zh-CN")
			}
		}
	}
	if sum != 100 {
		e.Add("variants", "rule.percent_sum", "the percentages must add up to 100")
	}
	if c.HoldOut < 0 || c.HoldOut > 90 {
		e.Add("hold_out", "rule.hold_out", "must be between 0 and 90 percent")
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
