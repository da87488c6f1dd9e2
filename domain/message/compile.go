package message

import (
	"strings"
	"time"
)

// A Compiled is a parsed text whose Markdown and blocks have been rendered into a page with
// places for values. It never changes.
type Compiled struct {
	// Language is the language of the text, in which its values are written.
	Language          string
	kind              Kind
	title, text, page Pattern
	// brand has the sender of a mail; preheader is its line after the subject.
	brand     Shop
	preheader Pattern
}

// Compile compiles a text. Of a mail the page follows the shop's brand.
func Compile(k Key, t Text, brand Shop) *Compiled {
	c := &Compiled{Language: k.Language, kind: k.Kind, title: oneLine(patternOf(t.Title, k.Kind))}
	if k.Channel == Email {
		c.page, c.text = mailOf(k.Kind, k.Language, c.title, t.Blocks, brand)
		c.text = manyLines(c.text)
		c.brand, c.preheader = brand, oneLine(patternOf(brand.Preheader, k.Kind))
		return c
	}
	c.text = manyLines(patternOf(t.Body, k.Kind))
	return c
}

// CompileCampaign compiles a text that staff wrote for a campaign in Markdown. A mail consists of
// its blocks. In a mail without blocks the title is the heading, and a button leads to the link.
func CompileCampaign(c Channel, language string, t Text, brand Shop) *Compiled {
	title, body := t.Title, t.Body
	if c == Email && len(t.Blocks) > 0 {
		return Compile(Key{Campaign, Email, language}, t, brand).withTargets()
	}
	if c == Email {
		compiled := Compile(Key{Campaign, Email, language}, CampaignMail(language, title, body), brand)
		_, compiled.text = formatted(patternOf(body, Campaign))
		compiled.text = manyLines(compiled.text)
		return compiled.withTargets()
	}
	compiled := &Compiled{Language: language, kind: Campaign, title: oneLine(patternOf(title, Campaign))}
	_, compiled.text = formatted(patternOf(body, Campaign))
	compiled.text = manyLines(compiled.text)
	return compiled.withTargets()
}

// withTargets returns c with places for tracked addresses.
func (c *Compiled) withTargets() *Compiled {
	c.page, c.text = targetsOf(c.page, true), targetsOf(c.text, false)
	return c
}

// CampaignMail returns the mail of a campaign in blocks.
func CampaignMail(language, title, body string) Text {
	return Text{Title: title, Blocks: []Block{{Type: Heading, Text: title}, {Type: Words, Text: body}, {Type: Button, Text: buttonWords(language)},
		{Type: Footer, Text: "[[{{shop}}]]"}}}
}

// buttonWords are of a campaign, whose link leads anywhere and whose readers may have the coupon already.
func buttonWords(tag string) string {
	if BuiltInLanguage(tag) == "zh" {
		return "立即查看"
	}
	return "Have a look"
}

func oneLine(p Pattern) Pattern {
	return cleaned(p, func(s string) string { return strings.Map(visibleRune, s) })
}
func manyLines(p Pattern) Pattern { return cleaned(p, cleanLines) }

// cleanLines is readable for a part of a text: it keeps the spaces at both ends.
func cleanLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Map(visibleRune, line)
	}
	return strings.Join(lines, "\n")
}

func cleaned(p Pattern, clean func(string) string) Pattern {
	return Pattern{cleanedParts(p.parts, clean)}
}

func cleanedParts(parts []part, clean func(string) string) []part {
	list := make([]part, len(parts))
	for i, q := range parts {
		q.literal, q.fallback = clean(q.literal), clean(q.fallback)
		if q.group != nil {
			q.group = cleanedParts(q.group, clean)
		}
		list[i] = q
	}
	return list
}

// Uses reports whether the text has the variable in it.
func (c *Compiled) Uses(variable string) bool {
	for _, p := range []Pattern{c.title, c.text, c.page} {
		for _, v := range p.Uses(false) {
			if v == variable {
				return true
			}
		}
	}
	return false
}

// A Form is a compiled text with the values that all readers of one language and zone share. It
// never changes.
type Form struct {
	unnamed           string
	title, text, page Pattern
	preheader         Pattern
	brand             Shop
}

// Bind fills in the facts f for readers in zone. drop is the name of the drop in the text's
// language. ownLinks says that every reader has a separate link; the link is not filled in then.
func (c *Compiled) Bind(f Facts, drop string, zone *time.Location, ownLinks bool) *Form {
	f.Kind = c.kind
	values := f.values(c.Language, drop, zone)
	if !ownLinks {
		values[VarLink], values[varTarget] = f.Link, "" // the fallback of a target is the address itself
	}
	return &Form{phrasesFor(c.Language).unnamed, c.title.bind(values), c.text.bind(values), c.page.bind(values), c.preheader.bind(values), c.brand}
}

// Personal reports whether readers may get different contents.
func (f *Form) Personal() bool { return f.title.personal() || f.text.personal() || f.page.personal() }

// Content returns the message for the reader with that name. link is the reader's link, used if
// links were not filled in by Bind.
func (f *Form) Content(name, link string) Content { return f.Tracked(name, link, nil) }

// Tracked is [Form.Content] in which track replaces the addresses that staff wrote; nil = they are
// kept.
func (f *Form) Tracked(name, link string, track func(address string) string) Content {
	own := own{Printable(name), link, track}
	c := Content{Title: strings.TrimSpace(f.title.fill(own)), Text: strings.TrimSpace(f.text.fill(own)), HTML: f.page.fill(own),
		Sender: f.brand.Sender, ReplyTo: f.brand.ReplyTo, Preheader: strings.TrimSpace(f.preheader.fill(own))}
	if c.Title == "" && len(f.title.parts) > 0 {
		c.Title = f.unnamed
	} else if tooLong(c.Title) {
		c.Title = Printable(c.Title)
	}
	return c
}
