package parts

import (
	"context"
	"strings"

	"dropbell/domain/segment"
	"dropbell/views/ui"
)

// emSpace sets inner rules off; browsers drop ordinary spaces before a line.
const emSpace = "\u2003"

// RuleLines writes a rule as lines of text, each part of it indented further. Drops without a name
// are shown by their numbers.
func RuleLines(ctx context.Context, r segment.Rule, indent string, names DropNames) []string {
	switch {
	case r.Match == "":
		return []string{indent + "• " + conditionText(ctx, r.Condition, names)}
	case len(r.Rules) == 0:
		return []string{indent + ui.T(ctx, "segments.everybody."+string(r.Match))}
	}
	list := []string{indent + ui.T(ctx, "segments.match."+string(r.Match))}
	for _, sub := range r.Rules {
		list = append(list, RuleLines(ctx, sub, indent+emSpace, names)...)
	}
	return list
}

// OpText prefers the text of an operator for this field.
func OpText(ctx context.Context, f segment.Field, op segment.Op) string {
	if key := "segments.op." + string(f) + "." + string(op); ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return ui.T(ctx, "segments.op."+string(op))
}

// ValueChoices returns the choices of a value with few possible values; nil = the value is typed.
func ValueChoices(ctx context.Context, v segment.Value) []ui.Option {
	names := map[segment.Value][]string{segment.ContactKind: segment.ContactKinds(), segment.ChannelName: segment.ChannelNames()}[v]
	var list []ui.Option
	for _, n := range names {
		list = append(list, ui.Option{Value: n, Label: choiceText(ctx, n)})
	}
	return list
}

// choiceText is the name of a channel, or of a contact that is none.
func choiceText(ctx context.Context, name string) string {
	if name == segment.PhoneVerified {
		return ui.T(ctx, "segments.phone_verified")
	}
	return ui.T(ctx, "channel."+name)
}

// DropNames are the names of drops by their ids.
type DropNames map[string]string

// ValueText names a value of a condition: a channel, a language or a drop with its number.
func ValueText(ctx context.Context, kind segment.Value, value string, names DropNames) string {
	switch kind {
	case segment.ContactKind, segment.ChannelName:
		return choiceText(ctx, value)
	case segment.Languages:
		return LanguageName(ctx, value)
	case segment.TemplateIDs:
		if name, ok := names[value]; ok {
			return name + " (#" + value + ")"
		}
	}
	return value
}

// conditionText reads a condition aloud.
func conditionText(ctx context.Context, c segment.Condition, names DropNames) string {
	what := ui.T(ctx, "segments.field."+string(c.Field))
	if c.Name != "" {
		what = ui.T(ctx, "letters.quoted", c.Name)
	}
	v, _ := segment.ValueOf(c.Field, c.Op)
	var values []string
	for _, value := range c.Values {
		values = append(values, ValueText(ctx, v, value, names))
	}
	op, value := OpText(ctx, c.Field, c.Op), strings.Join(values, ", ")
	if strings.Contains(op, "…") { // the value stands inside
		return what + " " + strings.Replace(op, "…", value, 1)
	}
	return strings.TrimSpace(what + " " + op + " " + value)
}
