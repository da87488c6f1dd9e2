// Package pages holds the console's pages. Each is a struct with everything it
// shows; its Page method draws it, its other methods parts of it.
package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// ActorName drops the label from "staff:1 Ada".
func ActorName(ctx context.Context, actor string) string {
	label, name, _ := strings.Cut(actor, " ")
	if label == "system" {
		return ui.T(ctx, "actor.system")
	}
	if strings.HasPrefix(label, "key:") {
		return ui.T(ctx, "actor.key", name)
	}
	if name == "" {
		return label
	}
	return name
}

// actionText falls back to the action's own name: whoever adds one may not
// have had the words for it.
func actionText(ctx context.Context, action string) string {
	if key := "action." + action; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return action
}

func objectText(ctx context.Context, r staff.Record) string {
	if r.ObjectID == "" {
		return ""
	}
	if key := "object." + r.ObjectKind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key, r.ObjectID)
	}
	return r.ObjectKind + " " + r.ObjectID
}

func objectURL(r staff.Record) string {
	switch r.ObjectKind {
	case "template":
		return "/templates/" + r.ObjectID
	case "user":
		return "/users/" + r.ObjectID
	case "job":
		return "/jobs/" + r.ObjectID
	}
	return ""
}

// A changeLine is one field of a record that is not the same before and after.
type changeLine struct{ name, before, after string }

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
			list = append(list, changeLine{n, before[n], after[n]})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	// On creation everything is new; what was left empty says nothing.
	if len(before) == 0 {
		list = slices.DeleteFunc(list, func(c changeLine) bool { return slices.Contains([]string{`""`, "0", "null", "[]", "false"}, c.after) })
	}
	return list
}

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
		out[n] = shown(v)
	}
	return out
}

// shown writes a JSON value for people: strings without quotes, long ones cut.
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
	if r := []rune(s); len(r) > 200 {
		return string(r[:199]) + "…"
	}
	return s
}

func id(n int64) string { return fmt.Sprint(n) }
