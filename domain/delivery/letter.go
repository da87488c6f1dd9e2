package delivery

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/user"
)

// RenderCopy returns what staff wrote, for one reader: the variant and the
// language that are u's, with the variables filled in. It is what previews, test
// messages and recipients get.
//
// A variant of [HeldOut] is rendered as the first, for previews.
func RenderCopy(s Subject, variant int, u user.User) Content {
	if s.Copy == nil || len(s.Copy.Variants) == 0 {
		return Content{}
	}
	f := newForm(&s, variant, u)
	return f.write(u, s.LinkOf(u.ID, variant), true)
}

// A form is what the readers of one language, zone and variant share of a
// message that staff wrote.
type form struct {
	subject     *Subject
	words       words
	title, body Pattern
	unnamed     string            // the title of a message without one
	values      map[string]string // of the variables that are not the reader's own
	pattern     *pattern          // nil if more than the link is the reader's own
}

// newForm returns the form for readers who share u's language and zone.
func newForm(s *Subject, variant int, u user.User) *form {
	text, tag := s.Copy.Variants[min(max(variant, 0), len(s.Copy.Variants)-1)].For(u.Locale)
	language, zone := wordingFor(cmp.Or(tag, u.Locale)), u.Zone()
	instant := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return language.when(t.In(zone))
	}
	f := &form{subject: s, title: patternOf(text.Title), body: patternOf(text.Body), unnamed: language.unnamed}
	f.words = words{lang: language.lang, eyebrow: printable(s.ShopName, ""), button: language.words(facts{kind: KindReminder}).button}
	f.values = map[string]string{VarCouponName: printable(s.TemplateName, ""), VarShopName: printable(s.ShopName, ""),
		VarOpensAt: instant(s.OpensAt), VarEndsAt: instant(s.EndsAt)}
	return f
}

// patternOf reads a text; one that cannot be read, which publication refuses,
// stands as it was written.
func patternOf(text string) Pattern {
	p, err := ParseText(text)
	if err != nil {
		return Pattern{parts: []patternPart{{literal: text}}}
	}
	return p
}

// write returns the message for one reader, whose link is given. The mail's
// page is drawn only if asked for: it takes longer than everything else.
func (f *form) write(u user.User, link string, withPage bool) Content {
	value := func(name string) string {
		switch name {
		case VarName:
			return printable(u.Name, "")
		case VarLink:
			return link
		}
		return f.values[name]
	}
	c := Content{Title: printable(f.title.Fill(value), f.unnamed), Text: readable(f.body.Fill(value))}
	if withPage {
		w := f.words
		w.title = c.Title
		c.HTML = page(w, facts{name: c.Title, url: link}, paragraphs(c.Text)...)
	}
	return c
}

// A pattern is a message with gaps for each recipient's own link.
type pattern struct {
	title      string
	text, page []string
}

// gap is the placeholder of the link while a pattern is made.
const gap = "https://gap.invalid/8d1f3c5a-72e4-4b0b-9a6f-2f6f3d1c7e90"

// cutStencil prepares f for readers of whom nothing but the link is their own.
// Titles are cut to a length, which the link would have a part in.
func (f *form) cutStencil(withPage bool) {
	uses := func(p Pattern, name string) bool { return slices.Contains(p.Uses(false), name) }
	if uses(f.title, VarLink) || uses(f.title, VarName) || uses(f.body, VarName) {
		return
	}
	c := f.write(user.User{}, gap, withPage)
	f.pattern = &pattern{c.Title, strings.Split(c.Text, gap), strings.Split(c.HTML, gap)}
}

// fill returns the message with the link in its gaps; false if the link would
// have to be escaped on its way into the page.
func (s *pattern) fill(link string) (Content, bool) {
	for i := range len(link) {
		if c := link[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:/", c) >= 0) {
			return Content{}, false
		}
	}
	return Content{Title: s.title, Text: strings.Join(s.text, link), HTML: strings.Join(s.page, link)}, link != ""
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

// letter returns u's content of a message that staff wrote. Texts in which
// nothing is the reader's own are rendered once per variant, language and zone.
func (r *Renderer) letter(u user.User) *Content {
	if len(r.subject.Copy.Variants) == 0 {
		return &Content{}
	}
	variant := r.subject.Copy.Pick(r.subject.OwnerID, u.ID)
	key := reader{u.Locale, u.Timezone, variant}
	if !r.personal {
		return r.shared(key, func() Content {
			return newForm(&r.subject, variant, u).write(u, r.subject.LinkOf(u.ID, variant), r.withPage)
		})
	}
	f, link := r.form(key, u), r.subject.LinkOf(u.ID, variant)
	if f.pattern != nil {
		if c, ok := f.pattern.fill(link); ok {
			return &c
		}
	}
	c := f.write(u, link, r.withPage)
	return &c
}

// form returns the form for the reader's kind, made when it is first asked for.
func (r *Renderer) form(key reader, u user.User) *form {
	r.mu.RLock()
	f := r.forms[key]
	r.mu.RUnlock()
	if f != nil {
		return f
	}
	f = newForm(&r.subject, key.variant, u)
	if r.subject.tracked() {
		f.cutStencil(r.withPage)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.forms) < maxRendered {
		r.forms[key] = f
	}
	return f
}

// uses reports whether any text of c has the variable in it.
func (c *Copy) uses(name string) bool {
	if c == nil {
		return false
	}
	for _, v := range c.Variants {
		for _, t := range v.Texts {
			if slices.Contains(patternOf(t.Title).Uses(false), name) || slices.Contains(patternOf(t.Body).Uses(false), name) {
				return true
			}
		}
	}
	return false
}
