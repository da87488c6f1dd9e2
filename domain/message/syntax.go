package message

import (
	"fmt"
	"slices"
	"strings"
)

// The variables that texts may hold.
const (
	VarUser = "user" // the reader's name
	VarDrop = "drop"
	VarShop = "shop"
	// VarDescription is the drop's, in the text's language.
	VarDescription = "description"
	VarWorth       = "worth"    // such as "20% off, at most ¥30"
	VarOpensAt     = "opens_at" // day, time and zone, as the reader's clock shows them
	VarTime        = "time"     // of the opening, without the day
	VarIn          = "in"       // such as "in 10 minutes"
	VarMinutes     = "minutes"  // until the opening or the end of a code, as a number
	VarExpires     = "expires"  // such as "tomorrow"
	VarDays        = "days"     // until the coupon expires, as a number
	VarEndsAt      = "ends_at"  // the end of a campaign
	VarLink        = "link"     // where the coupon can be claimed or used
	VarCode        = "code"     // that proves a phone number
	VarHours       = "hours"    // in which a winner may accept the coupon, as a number; empty = the winner has it
)

// aliases are further names of variables, which campaigns have.
var aliases = map[string]string{"name": VarUser, "coupon.name": VarDrop, "shop.name": VarShop}

// Variables returns the variables that texts of the kind may contain.
func Variables(k Kind) []string {
	switch k {
	case Reminder:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarOpensAt, VarTime, VarIn, VarMinutes, VarLink}
	case Correction:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarOpensAt, VarTime, VarLink}
	case Cancelled:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarOpensAt, VarTime}
	case Notice:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarExpires, VarDays, VarLink}
	case Won:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarHours, VarLink}
	case Waitlist, Offer, Lost:
		return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarLink}
	case Verification:
		return []string{VarCode, VarMinutes, VarShop}
	case Names, Settings:
		return nil
	}
	return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarOpensAt, VarTime, VarEndsAt, VarLink}
}

// A SyntaxError is an error in a text, with its line, counted from 1. Key is the key of its
// message in the catalogues.
type SyntaxError struct {
	Line    int
	Key     string
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// A Pattern is a parsed text: literals, variables and optional parts.
type Pattern struct{ parts []part }

// part is a literal, a variable, or a group: an optional part.
type part struct {
	literal  string
	variable string
	fallback string
	hasOwn   bool // a fallback is given, perhaps an empty one
	escape   escape
	silent   bool   // the variable is not written; it decides about its group
	group    []part // left out if a variable in it has no value
	line     int
}

// Parse reads a text for messages of the kind. {{user}} is a variable, and {{user|there}} is a
// variable with a fallback. [[ … {{link}} … ]] is an optional part: it is left out if a variable
// in it has no value. All other text is literal. Parse returns a [SyntaxError] about the first
// variable that is unknown, has no value in such messages, or is not closed.
func Parse(s string, k Kind) (Pattern, error) {
	parts, _, err := parse(s, k, 1)
	return Pattern{parts}, err
}

func parse(s string, k Kind, line int) (parts []part, lines int, err error) {
	literal := func(text string) {
		if text != "" {
			parts = append(parts, part{literal: text})
			line += strings.Count(text, "\n")
		}
	}
	for s != "" {
		v, g := strings.Index(s, "{{"), strings.Index(s, "[[")
		switch {
		case v < 0 && g < 0:
			literal(s)
			return parts, line, nil
		case g >= 0 && (v < 0 || g < v):
			inside, after, ok := group(s[g+2:])
			if !ok {
				literal(s[:g+2])
				s = s[g+2:]
				continue
			}
			literal(s[:g])
			inner, _, err := parse(inside, k, line)
			if err != nil {
				return nil, line, err
			}
			parts = append(parts, part{group: inner, line: line})
			s = after
		default:
			literal(s[:v])
			p, after, err := variable(s[v+2:], k, line)
			if err != nil {
				return nil, line, err
			}
			parts = append(parts, p)
			s = after
		}
	}
	return parts, line, nil
}

// group returns the text inside an optional part and the text after it. It returns false if s is
// no optional part: an optional part ends on its line and contains a variable.
func group(s string) (inside, after string, ok bool) {
	inside, after, ok = strings.Cut(s, "]]")
	return inside, after, ok && strings.Contains(inside, "{{") && !strings.Contains(inside, "[[") && !strings.Contains(inside, "\n")
}

func variable(s string, k Kind, line int) (p part, after string, err error) {
	inside, after, closed := strings.Cut(s, "}}")
	if !closed || strings.Contains(inside, "{{") || strings.Contains(inside, "\n") {
		return p, "", &SyntaxError{line, "rule.variable_open", fmt.Sprintf("the variable that begins with %q is not closed by }}", "{{"+head(s))}
	}
	name, fallback, own := strings.Cut(inside, "|")
	name = strings.TrimSpace(name)
	known := name
	if full, ok := aliases[name]; ok {
		known = full
	}
	switch {
	case slices.Contains(Variables(k), known):
	case slices.Contains(allVariables(), known):
		return p, "", &SyntaxError{line, "rule.variable_without_value",
			fmt.Sprintf("%q has no value in this message; there are %q", "{{"+name+"}}", strings.Join(Variables(k), ", "))}
	default:
		return p, "", &SyntaxError{line, "rule.variable_unknown",
			fmt.Sprintf("%q is not a variable; there are %q", "{{"+head(name)+"}}", strings.Join(Variables(k), ", "))}
	}
	return part{variable: known, fallback: strings.TrimSpace(fallback), hasOwn: own, line: line}, after, nil
}

func allVariables() []string {
	return []string{VarUser, VarDrop, VarDescription, VarShop, VarWorth, VarOpensAt, VarTime, VarIn, VarMinutes, VarExpires, VarDays, VarEndsAt, VarLink, VarCode, VarHours}
}

func head(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return s
}

// patternOf reads a text. A text that cannot be read or is too long is returned as a literal;
// saving refuses such texts.
func patternOf(s string, k Kind) Pattern {
	if longer(s, MaxBody) || strings.Count(s, "{{") > maxPlaces {
		return Pattern{[]part{{literal: s}}}
	}
	p, err := Parse(s, k)
	if err != nil {
		return Pattern{[]part{{literal: s}}}
	}
	return p
}

// each calls visit with every variable of p. bare says that an empty value would leave a gap in
// the text: the variable has no fallback and is in no optional part.
func (p Pattern) each(visit func(v part, bare bool)) { eachPart(p.parts, false, visit) }

func eachPart(parts []part, optional bool, visit func(part, bool)) {
	for _, q := range parts {
		if q.variable != "" {
			visit(q, !optional && !q.hasOwn)
		}
		eachPart(q.group, true, visit)
	}
}

// Uses returns the variables in p, each once, in the order of their first places. With bare it
// returns only variables whose empty value would leave a gap.
func (p Pattern) Uses(bare bool) []string {
	var names []string
	p.each(func(v part, hole bool) {
		if (hole || !bare) && !slices.Contains(names, v.variable) {
			names = append(names, v.variable)
		}
	})
	return names
}

// bind fills in the variables that are in values. Other variables, whose values differ by reader,
// are kept.
func (p Pattern) bind(values map[string]string) Pattern {
	var out []part
	for _, q := range bindParts(p.parts, values) {
		if n := len(out); n > 0 && q.isLiteral() && out[n-1].isLiteral() {
			out[n-1].literal += q.literal
		} else {
			out = append(out, q)
		}
	}
	return Pattern{out}
}

func (q part) isLiteral() bool { return q.variable == "" && q.group == nil }

func bindParts(parts []part, values map[string]string) []part {
	var out []part
	for _, q := range parts {
		switch v, known := values[q.variable]; {
		case q.group != nil:
			inner, whole := bindGroup(q.group, values)
			if whole {
				out = append(out, inner...)
			} else if inner != nil {
				out = append(out, part{group: inner})
			}
		case q.variable == "" || !known:
			out = append(out, q)
		case q.silent:
		case v != "":
			out = append(out, part{literal: q.escape.of(v)})
		case q.fallback != "":
			out = append(out, part{literal: q.escape.of(q.fallback)})
		}
	}
	return out
}

// bindGroup fills in an optional part. It returns nothing if a value in the part is empty. whole
// says that no value in the part depends on the reader.
func bindGroup(group []part, values map[string]string) (inner []part, whole bool) {
	whole = true
	for _, q := range group {
		if q.variable == "" {
			continue
		}
		if v, known := values[q.variable]; known && v == "" && !q.hasOwn {
			return nil, false
		} else if !known {
			whole = false
		}
	}
	return bindParts(group, values), whole
}

// With returns the text with the values filled in. A variable without a value becomes its
// fallback, or empty.
func (p Pattern) With(values map[string]string) string {
	all := make(map[string]string, len(values))
	for _, name := range allVariables() {
		all[name] = values[name]
	}
	var b strings.Builder
	for _, q := range p.bind(all).parts {
		b.WriteString(q.literal)
	}
	return b.String()
}

// personal reports whether p depends on the reader.
func (p Pattern) personal() bool {
	return slices.ContainsFunc(p.parts, func(q part) bool { return !q.isLiteral() })
}

// fill returns the text for one reader.
func (p Pattern) fill(own own) string {
	switch {
	case len(p.parts) == 0:
		return ""
	case len(p.parts) == 1 && p.parts[0].isLiteral():
		return p.parts[0].literal
	}
	size := 0
	for i := range p.parts {
		if size += len(p.parts[i].literal); !p.parts[i].isLiteral() {
			size += 128
		}
	}
	var b strings.Builder
	b.Grow(size)
	writeParts(&b, p.parts, own)
	return b.String()
}

// own are the values that are the reader's own.
type own struct {
	user, link string
	// track returns the address that replaces an address in the text; nil = none is replaced.
	track func(address string) string
}

func (o own) value(variable string) string {
	switch variable {
	case VarUser:
		return o.user
	case VarLink:
		return o.link
	}
	return ""
}

func writeParts(b *strings.Builder, parts []part, own own) {
	for i := range parts {
		switch q := &parts[i]; {
		case q.group != nil:
			if !slices.ContainsFunc(q.group, func(v part) bool { return v.variable != "" && !v.hasOwn && own.value(v.variable) == "" }) {
				writeParts(b, q.group, own)
			}
		case q.variable == "":
			b.WriteString(q.literal)
		case q.silent:
		default:
			v := own.value(q.variable)
			if v == "" {
				v = q.fallback
			}
			if q.variable == varTarget && own.track != nil {
				v = own.track(v)
			}
			b.WriteString(q.escape.of(v))
		}
	}
}
