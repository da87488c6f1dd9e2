package message

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown parses Markdown without HTML, which is shown as it was typed, and without indented
// code, which is not meant in a letter. Line breaks are kept.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser(), parser.NewCodeBlockParser())...),
		parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)),
	goldmark.WithExtensions(extension.Linkify),
	goldmark.WithRendererOptions(html.WithHardWraps()),
)

func without(all []util.PrioritizedValue, unwanted ...any) []util.PrioritizedValue {
	return slices.DeleteFunc(all, func(v util.PrioritizedValue) bool {
		return slices.ContainsFunc(unwanted, func(u any) bool { return fmt.Sprintf("%T", u) == fmt.Sprintf("%T", v.Value) })
	})
}

// markForm is the form of marks, which replace variables and the ends of optional parts while
// Markdown is rendered. Marks consist of letters and digits, which rendering leaves unchanged.
const markForm = "xq7dropbell%c%04dz"

// ofPart and ofAddress are the numbers in the marks b (begin) and e (end). ofPart marks an
// optional part of the text, ofAddress the address in parentheses after the words of a link.
const ofPart, ofAddress = 0, 1

var marks = regexp.MustCompile(`xq7dropbell([vbe])(\d{4})z`)

// A marked text is a pattern with marks for its variables.
type marked struct {
	source strings.Builder
	vars   []part
}

func (m *marked) add(parts []part) {
	for _, q := range parts {
		switch {
		case q.group != nil:
			fmt.Fprintf(&m.source, markForm, 'b', ofPart)
			m.add(q.group)
			fmt.Fprintf(&m.source, markForm, 'e', ofPart)
		case q.variable != "":
			fmt.Fprintf(&m.source, markForm, 'v', len(m.vars))
			m.vars = append(m.vars, q)
		default:
			m.source.WriteString(q.literal)
		}
	}
}

// formatted returns p, a Markdown text, as HTML and as plain text. A text that is nested too deep
// is returned as it was typed: the time to render it grows with the third power of its depth.
func formatted(p Pattern) (page, plainText Pattern) {
	m := &marked{}
	m.add(p.parts)
	source := []byte(m.source.String())
	if tangled(m.source.String()) {
		return asTyped(p), p
	}
	tree := markdown.Parser().Parse(text.NewReader(source))
	if deeper(tree, maxNesting) {
		return asTyped(p), p
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, tree); err != nil { // into memory
		return Pattern{}, p
	}
	return Pattern{guardAnchors(m.cut(b.String(), true).parts)}, m.cut(plainBlocks(tree, source), false)
}

// asTyped returns a text as one paragraph of a page.
func asTyped(p Pattern) Pattern {
	return Pattern{append(append([]part{{literal: "<p>"}}, escaped(p).parts...), part{literal: "</p>\n"})}
}

// cut turns a rendered text with marks into a pattern. In a page bare links become anchors, and
// values are escaped according to their place. An address inside an optional part makes no
// optional part of its own: if its value is missing, the whole part is left out.
func (m *marked) cut(s string, page bool) Pattern {
	stack := [][]part{nil}
	put := func(q ...part) { stack[len(stack)-1] = append(stack[len(stack)-1], q...) }
	var before strings.Builder
	within := false // an address inside an optional part
	for at := marks.FindStringSubmatchIndex(s); at != nil; at = marks.FindStringSubmatchIndex(s) {
		literal := s[:at[0]]
		what, n := s[at[2]:at[3]], s[at[4]:at[5]]
		before.WriteString(literal)
		put(part{literal: literal})
		s = s[at[1]:]
		switch index, _ := strconv.Atoi(n); {
		case what == "b" && index == ofAddress && len(stack) > 1:
			within = true
		case what == "e" && index == ofAddress && within:
			within = false
		case what == "b":
			stack = append(stack, nil)
		case what == "e" && len(stack) > 1:
			group := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			put(part{group: group})
		case what == "v" && index < len(m.vars):
			q := m.vars[index]
			if page {
				put(inPage(q, before.String())...)
			} else {
				put(q)
			}
		}
	}
	put(part{literal: s})
	for len(stack) > 1 { // a part that was left open
		rest := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		put(rest...)
	}
	return Pattern{slices.DeleteFunc(stack[0], func(q part) bool { return q.isLiteral() && q.literal == "" })}
}

// inPage is a variable behind the part of a page that is given.
func inPage(q part, before string) []part {
	open, closed := strings.LastIndexByte(before, '<'), strings.LastIndexByte(before, '>')
	q.escape = inHTML
	switch {
	case open > closed && (q.variable != VarLink || !strings.HasSuffix(before, `"`)):
		q.escape = inAddress
	case open > closed:
		if !Followed(q.fallback) {
			q.fallback = ""
		}
	case q.variable == VarLink && strings.Count(before, "<a ") == strings.Count(before, "</a>"):
		if !Followed(q.fallback) {
			q.fallback = ""
		}
		return []part{{literal: `<a href="`}, q, {literal: `">`}, q, {literal: `</a>`}}
	}
	return []part{q}
}

// Followed reports whether readers may be sent to the address: it must be http or https and have
// a host.
func Followed(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// plainBlocks writes blocks as plain text, with empty lines between paragraphs.
func plainBlocks(parent ast.Node, source []byte) string {
	var list []string
	number := 0
	if l, ok := parent.(*ast.List); ok && l.IsOrdered() {
		number = l.Start
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch b := n.(type) {
		case *ast.ListItem:
			mark := "- "
			if number > 0 {
				mark = strconv.Itoa(number) + ". "
				number++
			}
			list = append(list, mark+strings.ReplaceAll(plainBlocks(b, source), "\n", "\n  "))
		case *ast.List:
			list = append(list, plainBlocks(b, source))
		case *ast.Blockquote:
			list = append(list, "> "+strings.ReplaceAll(plainBlocks(b, source), "\n", "\n> "))
		case *ast.ThematicBreak:
			list = append(list, "---")
		case *ast.FencedCodeBlock:
			list = append(list, strings.TrimRight(string(b.Lines().Value(source)), "\n"))
		default:
			var w strings.Builder
			plainInline(&w, n, source)
			list = append(list, strings.TrimSpace(w.String()))
		}
	}
	between := "\n\n"
	if l, ok := parent.(*ast.List); ok && l.IsTight {
		between = "\n"
	} else if _, ok := parent.(*ast.ListItem); ok {
		between = "\n"
	}
	return strings.Join(list, between)
}

func plainInline(w *strings.Builder, parent ast.Node, source []byte) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch t := n.(type) {
		case *ast.Text:
			w.Write(resolved(t.Value(source)))
			if t.SoftLineBreak() || t.HardLineBreak() {
				w.WriteByte('\n')
			}
		case *ast.String:
			w.Write(resolved(t.Value))
		case *ast.CodeSpan:
			for c := t.FirstChild(); c != nil; c = c.NextSibling() {
				if raw, ok := c.(*ast.Text); ok {
					w.Write(raw.Value(source))
				}
			}
		case *ast.AutoLink:
			w.Write(t.Label(source))
		case *ast.Link:
			at := w.Len()
			plainInline(w, t, source)
			switch said, to := w.String()[at:], string(t.Destination); {
			case said == to || to == "":
			case marks.MatchString(to): // no parentheses around an address without a value
				fmt.Fprintf(w, markForm+" (%s)"+markForm, 'b', ofAddress, to, 'e', ofAddress)
			default:
				w.WriteString(" (" + to + ")")
			}
		default: // emphasis; of an image the words
			plainInline(w, n, source)
		}
	}
}

// resolved removes the escapes that protect characters from Markdown.
func resolved(raw []byte) []byte {
	return util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(raw)))
}
