package delivery

import (
	"strings"
	"time"
	"unicode"

	"dropbell/domain/user"
)

// RenderCopy returns what staff wrote, for one reader: the variant and the
// language that are u's, with the variables filled in. It is what previews,
// test messages and recipients get.
//
// A variant of [HeldOut] is rendered as the first: somebody looks at it.
func RenderCopy(s Subject, variant int, u user.User) Content {
	if s.Copy == nil || len(s.Copy.Variants) == 0 {
		return Content{}
	}
	text, tag := s.Copy.Variants[min(max(variant, 0), len(s.Copy.Variants)-1)].For(u.Locale)
	if tag == "" {
		tag = u.Locale
	}
	language := wordingFor(tag)
	values := valuesOf(s, variant, u, language)
	title := printable(fill(text.Title, values), language.unnamed)
	body := readable(fill(text.Body, values))
	w := words{lang: language.lang, title: title, eyebrow: printable(s.ShopName, ""), button: language.words(facts{kind: KindReminder}).button}
	return Content{Title: title, Text: body, HTML: page(w, facts{name: title, url: s.LinkOf(u.ID, variant)}, paragraphs(body)...)}
}

// fill puts values into a text; one that cannot be parsed, which publication
// refuses, stands as it was written.
func fill(text string, values func(string) string) string {
	p, err := ParseText(text)
	if err != nil {
		return text
	}
	return p.Fill(values)
}

func valuesOf(s Subject, variant int, u user.User, language wording) func(string) string {
	zone := u.Zone()
	instant := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return language.when(t.In(zone))
	}
	return func(name string) string {
		switch name {
		case VarName:
			return printable(u.Name, "")
		case VarCouponName:
			return printable(s.TemplateName, "")
		case VarShopName:
			return printable(s.ShopName, "")
		case VarOpensAt:
			return instant(s.OpensAt)
		case VarEndsAt:
			return instant(s.EndsAt)
		case VarLink:
			return s.LinkOf(u.ID, variant)
		}
		return ""
	}
}

// readable keeps line breaks and takes out what would hide or turn text.
func readable(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r), unicode.IsControl(r):
				return ' '
			case r == '\u200c' || r == '\u200d':
				return r
			case unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
				return -1
			}
			return r
		}, line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// paragraphs divides a text at its line breaks.
func paragraphs(text string) []string {
	var list []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			list = append(list, line)
		}
	}
	return list
}

// letter returns u's content of a message that staff wrote. Texts without the
// reader's name or a link of their own are rendered once per variant, language
// and zone.
func (r *Renderer) letter(u user.User) *Content {
	variant := r.subject.Copy.Pick(r.subject.OwnerID, u.ID)
	if r.personal {
		c := RenderCopy(r.subject, variant, u)
		return &c
	}
	return r.shared(reader{u.Locale, u.Timezone, variant}, func() Content { return RenderCopy(r.subject, variant, u) })
}

// personal reports whether any text of c has the reader's name in it.
func (c *Copy) personal() bool {
	if c == nil {
		return false
	}
	for _, v := range c.Variants {
		for _, t := range v.Texts {
			for _, s := range []string{t.Title, t.Body} {
				p, err := ParseText(s)
				for _, name := range p.Uses(false) {
					if err == nil && name == VarName {
						return true
					}
				}
			}
		}
	}
	return false
}
