package delivery

import (
	"fmt"
	"slices"
	"strings"
)

// The variables that texts may hold.
const (
	VarName       = "name"        // of the reader
	VarCouponName = "coupon.name" // of the template the message is about
	VarShopName   = "shop.name"
	VarOpensAt    = "opens_at" // the template's opening
	VarEndsAt     = "ends_at"  // the campaign's end
	VarLink       = "link"     // where the coupon can be claimed, tracked for each reader
)

// Variables returns every variable there is.
func Variables() []string {
	return []string{VarName, VarCouponName, VarShopName, VarOpensAt, VarEndsAt, VarLink}
}

// A Pattern is a parsed text.
type Pattern struct{ parts []patternPart }

type patternPart struct {
	literal  string
	variable string // "" for a literal
	fallback string
	hasOwn   bool // a fallback is given, perhaps an empty one
}

// ParseText reads a text with variables: {{name}} is the reader's name,
// {{name|friend}} is "friend" where no name is known. Nothing else is special.
// It returns an error that says what is wrong with the first variable that is
// unknown or not closed.
func ParseText(s string) (Pattern, error) {
	var p Pattern
	for s != "" {
		literal, rest, found := strings.Cut(s, "{{")
		if literal != "" {
			p.parts = append(p.parts, patternPart{literal: literal})
		}
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed || strings.Contains(inside, "{{") {
			return p, fmt.Errorf("the variable that begins with %q is not closed by }}", "{{"+head(rest))
		}
		name, fallback, own := strings.Cut(inside, "|")
		name = strings.TrimSpace(name)
		if !slices.Contains(Variables(), name) {
			return p, fmt.Errorf("{{%s}} is not a variable; there are %s", head(name), strings.Join(Variables(), ", "))
		}
		p.parts = append(p.parts, patternPart{variable: name, fallback: strings.TrimSpace(fallback), hasOwn: own})
		s = after
	}
	return p, nil
}

func head(s string) string {
	if r := []rune(s); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return s
}

// Uses returns the variables in p that have no fallback of their own if
// bare, else all of them; each once, in the order of their appearance.
func (p Pattern) Uses(bare bool) []string {
	var names []string
	for _, part := range p.parts {
		if part.variable != "" && !(bare && part.hasOwn) && !slices.Contains(names, part.variable) {
			names = append(names, part.variable)
		}
	}
	return names
}

// Fill returns the text with the values put in. Where a value is empty the
// fallback stands, and nothing where there is none.
func (p Pattern) Fill(value func(name string) string) string {
	var b strings.Builder
	for _, part := range p.parts {
		v := part.literal
		if part.variable != "" {
			if v = value(part.variable); v == "" {
				v = part.fallback
			}
		}
		b.WriteString(v)
	}
	return b.String()
}
