package message

import (
	"html"
	"regexp"
	"slices"
	"strings"
)

// varTarget is the variable of a place for an address that staff wrote into the text of a
// campaign. Its fallback is that address; a tracked address may replace it. Texts cannot name the
// variable.
const varTarget = "target"

var (
	anchors   = regexp.MustCompile(`<a href="(https?://[^"]*)"`)
	addresses = regexp.MustCompile(`https?://[^\s<>"'\x60]+`)
)

// afterAddress are the characters that end a sentence or a bracket, not an address.
const afterAddress = `.,;:!?)]}'"*_~。，；：！？）】」》`

// targetsOf returns p with places for the addresses that staff wrote: in a page the addresses of
// links, in a plain text all addresses. An address with a variable inside stays as it is.
func targetsOf(p Pattern, page bool) Pattern { return Pattern{targetParts(p.parts, page)} }

func targetParts(parts []part, page bool) []part {
	var list []part
	for i, q := range parts {
		switch {
		case q.group != nil:
			q.group = targetParts(q.group, page)
			list = append(list, q)
		case q.variable != "":
			list = append(list, q)
		default:
			open := !page && i+1 < len(parts) && !parts[i+1].isLiteral() // a variable follows
			list = append(list, splitTargets(q.literal, page, open)...)
		}
	}
	return list
}

// splitTargets divides a literal at its addresses. open says that a variable follows the literal,
// so that an address at its end may continue in the variable.
func splitTargets(s string, page, open bool) (list []part) {
	put := func(q part) {
		if q.variable != "" || q.literal != "" {
			list = append(list, q)
		}
	}
	for s != "" {
		from, to := nextAddress(s, page)
		if from < 0 || open && to == len(s) {
			break
		}
		address, escape := s[from:to], plain
		if page {
			address, escape = html.UnescapeString(address), inHTML
		}
		put(part{literal: s[:from]})
		if Followed(address) {
			put(part{variable: varTarget, fallback: address, hasOwn: true, escape: escape})
		} else {
			put(part{literal: s[from:to]})
		}
		s = s[to:]
	}
	put(part{literal: s})
	return list
}

// nextAddress returns where the first address in s begins and ends; from is -1 if there is none.
func nextAddress(s string, page bool) (from, to int) {
	if page {
		if at := anchors.FindStringSubmatchIndex(s); at != nil {
			return at[2], at[3]
		}
		return -1, 0
	}
	at := addresses.FindStringIndex(s)
	if at == nil {
		return -1, 0
	}
	return at[0], at[0] + len(strings.TrimRight(s[at[0]:at[1]], afterAddress))
}

// Targets returns the addresses of c that staff wrote and that can be tracked, each once, in the
// order of their places.
func (c *Compiled) Targets() []string {
	var list []string
	for _, p := range []Pattern{c.page, c.text} {
		p.each(func(v part, _ bool) {
			if v.variable == varTarget && !slices.Contains(list, v.fallback) {
				list = append(list, v.fallback)
			}
		})
	}
	return list
}

// Addresses returns the addresses in t that its readers follow, each once: links in its body and
// blocks, and images. An address that a variable continues is left out.
func (t Text) Addresses(k Kind) (list []string) {
	texts := []string{t.Body}
	for _, b := range t.Blocks {
		texts = append(texts, b.Text, b.URL)
	}
	for _, s := range texts {
		targetsOf(patternOf(s, k), false).each(func(v part, _ bool) {
			if v.variable == varTarget && !slices.Contains(list, v.fallback) {
				list = append(list, v.fallback)
			}
		})
	}
	return list
}

// NeedsLink reports whether a text has a gap in messages without a link: it has {{link}} without a
// fallback outside of an optional part. A text that cannot be read has no gap.
func NeedsLink(s string, k Kind) bool {
	return slices.Contains(patternOf(s, k).Uses(true), VarLink)
}
