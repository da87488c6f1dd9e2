package message

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"dropbell/domain/fault"
)

// Limits of a text's cost. Each bounds time or memory that would grow faster than the length of
// the text.
const (
	// maxNesting is the greatest depth of nested lists, quotations and emphasis, in nodes of the
	// parsed text.
	maxNesting = 24
	// maxContainers is how many marks of lists and quotations a line may begin with.
	maxContainers = 10
	// maxPlaces is the most variables, and the most brackets of links, of a text. The value of a
	// variable is inserted at each of its places.
	maxPlaces = 200
	// maxLink bounds the link of a drop that is being written, in bytes.
	maxLink = 2000
)

// Bounded returns a [fault.Fields] that names the parts of t that are too large to be rendered,
// or nil. It must be called for every text from outside before it is rendered.
func (t Text) Bounded() error {
	e := &fault.Fields{}
	t.bounded(e, false)
	return e.Err()
}

// bounded adds the parts that are too large to e. formatted says that the body is Markdown.
func (t Text) bounded(e *fault.Fields, formatted bool) {
	boundedText(e, "title", t.Title, false)
	boundedText(e, "body", t.Body, formatted)
	if len(t.Blocks) > MaxBlocks {
		e.Add("blocks", "rule.blocks", "must be between 1 and %d blocks", MaxBlocks)
		return
	}
	size, places := 0, 0
	for i, b := range t.Blocks {
		boundedText(e, BlockField(i), b.Text, b.Type == Words || b.Type == Footer)
		if len(b.URL) > MaxURL {
			e.Add(BlockField(i)+".url", "rule.image_url", "must be an https address of at most %d characters", MaxURL)
		}
		size += len(b.Text)
		places += strings.Count(b.Text, "{{")
	}
	switch {
	case size > MaxMail:
		e.Add("blocks", "rule.mail_size", "make a mail of %d kB; mail programs cut off what is longer than %d kB", size/1000, MaxMail/1000)
	case places > maxPlaces:
		e.Add("blocks", "rule.tangled", tangledText, maxContainers, maxPlaces)
	}
}

const tangledText = "must be simpler: lists and quotations nested at most %d deep, and at most %d variables and links"

func boundedText(e *fault.Fields, name, s string, formatted bool) {
	switch {
	case longer(s, MaxBody):
		e.Add(name, "rule.too_long", "must have at most %d characters", MaxBody)
	case strings.Count(s, "{{") > maxPlaces, formatted && tooNested(s):
		e.Add(name, "rule.tangled", tangledText, maxContainers, maxPlaces)
	}
}

func longer(s string, most int) bool {
	return len(s) > most && (len(s) > most*utf8.UTFMax || utf8.RuneCountInString(s) > most)
}

// Bounded is [Text.Bounded] for the draft, including its facts about a drop.
func (d Draft) Bounded() error {
	e := &fault.Fields{}
	d.Text.bounded(e, d.Kind == Campaign)
	if d.About != nil && len(d.About.Link) > maxLink {
		e.Add("link", "rule.too_long", "must have at most %d characters", maxLink)
	}
	return e.Err()
}

// CheckFormatted adds an error to e if a Markdown body is too large to be rendered.
func CheckFormatted(e *fault.Fields, name, body string) { boundedText(e, name, body, true) }

// tooNested reports whether a Markdown text is nested too deep, or has too many links, to be
// rendered.
func tooNested(s string) bool {
	return tangled(s) || deeper(markdown.Parser().Parse(text.NewReader([]byte(s))), maxNesting)
}

// tangled reports whether parsing the source would take too long, because a line begins with many
// marks of containers or the source has many brackets.
func tangled(source string) bool {
	if strings.Count(source, "[") > 2*maxPlaces {
		return true
	}
	for line := range strings.Lines(source) {
		if containers(line) > maxContainers && !isRule(line) {
			return true
		}
	}
	return false
}

// containers is how many marks of lists and quotations the line begins with.
func containers(line string) (n int) {
	for n <= maxContainers {
		line = strings.TrimLeft(line, " \t")
		digits := 0
		for digits < len(line) && line[digits] >= '0' && line[digits] <= '9' {
			digits++
		}
		switch {
		case strings.HasPrefix(line, ">"):
			line = line[1:]
		case digits < len(line) && marksItem(line[digits:], digits > 0):
			line = line[digits+1:]
		default:
			return n
		}
		n++
	}
	return n
}

// isRule reports whether the line is a thematic break such as "* * *".
func isRule(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.IndexByte("-*_", line[0]) >= 0 && strings.Trim(line, line[:1]+" \t") == ""
}

// marksItem reports whether s begins with the mark of a list item. numbered says that the number
// before the mark has been read.
func marksItem(s string, numbered bool) bool {
	marks := "-+*"
	if numbered {
		marks = ".)"
	}
	return strings.IndexByte(marks, s[0]) >= 0 && (len(s) == 1 || strings.IndexByte(" \t\r\n", s[1]) >= 0)
}

// deeper reports whether the tree below n has more levels than most.
func deeper(n ast.Node, most int) bool {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if most == 0 || deeper(c, most-1) {
			return true
		}
	}
	return false
}
