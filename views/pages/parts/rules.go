package parts

import (
	"context"
	"strings"

	"dropbell/domain/segment"
	"dropbell/views/ui"
)

// emSpace sets inner rules off; browsers drop ordinary spaces before a line.
const emSpace = "\u2003"

// RuleLines writes a rule as lines of text, each part of it indented further.
func RuleLines(ctx context.Context, r segment.Rule, indent string) []string {
	switch {
	case r.Match == "":
		return []string{indent + "• " + conditionText(ctx, r.Condition)}
	case len(r.Rules) == 0:
		return []string{indent + ui.T(ctx, "segments.everybody."+string(r.Match))}
	}
	list := []string{indent + ui.T(ctx, "segments.match."+string(r.Match))}
	for _, sub := range r.Rules {
		list = append(list, RuleLines(ctx, sub, indent+emSpace)...)
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

// conditionText reads a condition aloud.
func conditionText(ctx context.Context, c segment.Condition) string {
	what := ui.T(ctx, "segments.field."+string(c.Field))
	if c.Name != "" {
		what = ui.T(ctx, "letters.quoted", c.Name)
	}
	v, _ := segment.ValueOf(c.Field, c.Op)
	values := c.Values
	if choices := ValueChoices(ctx, v); choices != nil {
		values = nil
		for _, name := range c.Values {
			values = append(values, choiceText(ctx, name))
		}
	}
	op, value := OpText(ctx, c.Field, c.Op), strings.Join(values, ", ")
	if strings.Contains(op, "…") { // the value stands inside
		return what + " " + strings.Replace(op, "…", value, 1)
	}
	return strings.TrimSpace(what + " " + op + " " + value)
}
