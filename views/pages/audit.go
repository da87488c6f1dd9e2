package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// An AuditFilter selects records the way it was typed and stands in addresses.
type AuditFilter struct {
	Kind, Object, Actor, Action, Text, Shop, From, To string
	// Security selects what concerns security.
	Security bool
}

// Active reports whether the filter selects anything.
func (f AuditFilter) Active() bool { return f != AuditFilter{} }

// set reports whether something beside the search text selects.
func (f AuditFilter) set() bool {
	f.Text = ""
	return f.Active()
}

// actionOptions offers what was done, and the one that the address asks for.
func (p Audit) actionOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "audit.all_actions")}}
	names := p.Actions
	if slices.Contains(names, "campaign.approve") && !slices.Contains(names, "campaign.publish") { // to approve is to publish
		names = append(slices.Clone(names), "campaign.publish")
	}
	if p.Filter.Action != "" && !slices.Contains(names, p.Filter.Action) {
		names = append(slices.Clone(names), p.Filter.Action)
	}
	for _, a := range names {
		list = append(list, ui.Option{Value: a, Label: actionLabel(ctx, a)})
	}
	return list
}

// A changeLine is one field of a record that is not the same before and after.
type changeLine struct {
	scope, name, before, after string
	// wasIn and isIn are the currencies of amounts.
	wasIn, isIn string
}

// changes compares what a record keeps of before and after. Values that are
// not objects are compared as a whole.
func changes(r staff.Record) []changeLine {
	before, after := fields(r.Before), fields(r.After)
	names := map[string]bool{}
	for n := range before {
		names[n] = true
	}
	for n := range after {
		names[n] = true
	}
	var list []changeLine
	for n := range names {
		if before[n] != after[n] {
			list = append(list, changeLine{auditScope(r), n, before[n], after[n], before["Currency"], after["Currency"]})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	// On creation everything is new; what was left empty says nothing.
	if len(before) == 0 {
		list = slices.DeleteFunc(list, func(c changeLine) bool {
			return slices.Contains([]string{`""`, "0", "null", "[]", "{}", "false"}, c.after)
		})
	}
	return list
}

// fields takes a JSON object apart: objects inside it are named "outer.inner".
func fields(raw []byte) map[string]string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return map[string]string{"": shown(raw)}
	}
	out := map[string]string{}
	for n, v := range object {
		if keptWhole(n) {
			out[n] = shown(v)
			continue
		}
		inner := fields(v)
		if _, whole := inner[""]; whole || len(inner) == 0 {
			out[n] = shown(v)
			continue
		}
		for m, text := range inner {
			out[n+"."+m] = text
		}
	}
	return out
}

// shown writes a JSON value for people: strings without quotes.
func shown(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		var b bytes.Buffer
		if json.Compact(&b, raw) != nil {
			return string(raw)
		}
		s = b.String()
	} else if s == "" {
		return `""`
	}
	return s
}

// snake turns "OpensAt" into "opens_at", the name on the wire.
func snake(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
