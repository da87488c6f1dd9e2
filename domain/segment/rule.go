package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Match says how a group's rules are joined.
type Match string

// The ways to join; a condition has none.
const (
	All  Match = "all"
	Any  Match = "any"
	None Match = "none"
)

// Matches returns every way to join.
func Matches() []Match { return []Match{All, Any, None} }

// A Rule is a group of rules, or a condition about a user. An empty group of All or
// None matches all users; an empty group of Any matches no user.
type Rule struct {
	Match     Match // empty = a condition
	Rules     []Rule
	Condition Condition
}

// A Condition is one thing that is true of a user or not.
type Condition struct {
	Field Field `json:"field"`
	// Name is the name of the attribute; empty for other fields.
	Name   string   `json:"name,omitempty"`
	Op     Op       `json:"op"`
	Values []string `json:"values,omitempty"`
}

// Limits of one rule, so that judging a user stays cheap.
const (
	MaxDepth      = 5
	MaxConditions = 50
	MaxValues     = 200
	MaxValue      = 500 // characters
	maxJSON       = 256 << 10
)

// Everybody is the rule that a new segment begins with.
func Everybody() Rule { return Rule{Match: All} }

// Leaf returns a condition as a rule.
func Leaf(f Field, name string, op Op, values ...string) Rule {
	return Rule{Condition: Condition{Field: f, Name: name, Op: op, Values: values}}
}

// MarshalJSON writes {"all":[…]}, {"any":[…]}, {"none":[…]}, or the condition.
func (r Rule) MarshalJSON() ([]byte, error) {
	if r.Match == "" {
		return json.Marshal(r.Condition)
	}
	rules := r.Rules
	if rules == nil {
		rules = []Rule{}
	}
	return json.Marshal(map[Match][]Rule{r.Match: rules})
}

var errForm = errors.New(`must be {"all":[…]}, {"any":[…]}, {"none":[…]}, or {"field":…,"op":…,"values":[…]}`)

// UnmarshalJSON reads the form that MarshalJSON writes and nothing more.
// [Rule.Check] tells whether the rule is valid.
func (r *Rule) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var in struct {
		All  *[]Rule `json:"all"`
		Any  *[]Rule `json:"any"`
		None *[]Rule `json:"none"`
		Not  *Rule   `json:"not"`
		Condition
	}
	if err := d.Decode(&in); err != nil {
		return errForm
	}
	var forms []Rule
	for match, rules := range map[Match]*[]Rule{All: in.All, Any: in.Any, None: in.None} {
		if rules != nil {
			forms = append(forms, Rule{Match: match, Rules: *rules})
		}
	}
	if in.Not != nil { // another way to write a group of one
		forms = append(forms, Rule{Match: None, Rules: []Rule{*in.Not}})
	}
	if in.Field != "" || in.Op != "" || in.Name != "" || in.Values != nil {
		forms = append(forms, Rule{Condition: in.Condition})
	}
	if len(forms) != 1 {
		return errForm
	}
	*r = forms[0]
	return nil
}

// Parse reads a rule from JSON. It returns a [fault.Fields] that names, by its
// place such as "rule.all[1].values[0]", each part that cannot be read or breaks a
// rule.
func Parse(raw []byte) (Rule, error) {
	var r Rule
	if len(raw) > maxJSON || depth(raw) > 2*MaxDepth+4 {
		return r, refusal("rule", "rule.segment_size", "is too large or too deep")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&r); err != nil {
		return r, refusal("rule", "rule.segment_form", "%s", errForm.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return r, refusal("rule", "rule.segment_form", "must be one JSON object")
	}
	return r, r.Check()
}

// depth returns how deep brackets nest in a text, which need not be valid JSON.
func depth(raw []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '[' || c == '{'):
			now++
			most = max(most, now)
		case !quoted && (c == ']' || c == '}'):
			now--
		}
	}
	return most
}

// Conditions calls visit with every condition and its place.
func (r Rule) Conditions(visit func(path string, c Condition)) { r.walk("rule", visit) }

func (r Rule) walk(path string, visit func(string, Condition)) {
	if r.Match == "" {
		visit(path, r.Condition)
		return
	}
	for i, sub := range r.Rules {
		sub.walk(fmt.Sprintf("%s.%s[%d]", path, r.Match, i), visit)
	}
}
