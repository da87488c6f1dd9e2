package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// auditScope returns the prefix of the names of a record's fields: one field name means different
// things for a drop and for a job.
func auditScope(r staff.Record) string {
	switch r.Action {
	case "template.announce":
		return "announce"
	case "campaign.limits":
		return "limits"
	}
	scope, _, _ := strings.Cut(r.Action, ".")
	return scope
}

// label names the field as forms do.
func (l changeLine) label(ctx context.Context) string {
	parts := strings.Split(l.name, ".")
	for i, p := range parts {
		parts[i] = l.part(ctx, snake(p))
	}
	return strings.Join(parts, " · ")
}

func (l changeLine) part(ctx context.Context, name string) string {
	switch name {
	case "":
		name = "state" // a value that is no object is the state before and after a step
	case "notify_over":
		name = "notify_channels"
	}
	keys := []string{"field." + l.scope + "_" + name, l.scope + ".field." + name, "field." + name}
	if l.scope == "limits" {
		keys = []string{"limits." + name}
	}
	for _, key := range keys {
		if ui.From(ctx).Locale.Has(key) {
			return ui.T(ctx, key)
		}
	}
	return name
}

// auditFamilies are the message keys that describe the values of a field.
func auditFamilies(scope, field string) []string {
	switch field {
	case "", "state":
		return map[string][]string{"template": {"state.", "audit.value.state."}, "campaign": {"campaign.state."}, "codes": {"codes.state."},
			"coupon": {"coupon.state."}, "review": {"review.state."}, "job": {"jobs.state."}, "dead_letters": {"jobs.state.", "audit.value.state."}}[scope]
	case "kind":
		return map[string][]string{"template": {"kind."}, "announce": {"announce.kind."}, "segment": {"segments.kind."}, "job": {"jobs.kind."}}[scope]
	case "target", "obtain", "claim_mode", "waitlist", "refund_to", "protection", "opening_mode", "refund_rule", "draw_source", "role", "channel":
		return []string{field + "."}
	case "proposed":
		return map[string][]string{"review": {"review."}}[scope]
	case "scopes":
		return []string{"scope."}
	case "reason":
		return map[string][]string{"suppression": {"suppressions.reason."}}[scope]
	case "audience":
		return []string{"campaign.audience."}
	case "action", "to", "variant":
		return []string{"audit.value." + field + "."}
	case "fields":
		return []string{"field."}
	case "second_factor", "confirmed_by":
		return []string{"security.kind."}
	case "second_factor_policy":
		return []string{"staff.policy."}
	}
	return nil
}

// word returns the text for a value; a value without a text stays unchanged.
func (l changeLine) word(ctx context.Context, field, text string) string {
	for _, family := range auditFamilies(l.scope, field) {
		if key := family + text; ui.From(ctx).Locale.Has(key) {
			return ui.T(ctx, key)
		}
	}
	return text
}

// value formats a stored value for display: words, money, instants in the zone of the page, yes or
// no, or nothing.
func (l changeLine) value(ctx context.Context, text, currency string, zone *time.Location) string {
	text = ui.Private(ctx, text)
	field := snake(l.name[strings.LastIndexByte(l.name, '.')+1:])
	switch text {
	case "", "null", `""`, "[]", "{}":
		return OrDash("")
	case "true":
		return ui.T(ctx, "audit.yes")
	case "false":
		return ui.T(ctx, "audit.no")
	}
	locale := ui.From(ctx).Locale
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return locale.DateTime(at, zone) + " " + locale.Zone(at, zone)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return l.number(ctx, field, n, currency)
	}
	switch field {
	case "variants":
		text = versionsText(ctx, text)
	case "rule":
		var rule segment.Rule
		if json.Unmarshal([]byte(text), &rule) == nil {
			text = strings.Join(RuleLines(ctx, rule, "", nil), " ")
		}
	}
	var list []string
	var numbers []int64
	if json.Unmarshal([]byte(text), &list) == nil {
		for i := range list {
			list[i] = l.word(ctx, field, list[i])
		}
		text = strings.Join(list, ", ")
	} else if json.Unmarshal([]byte(text), &numbers) == nil {
		text = strings.Trim(strings.ReplaceAll(text, ",", ", "), "[]")
	}
	if r := []rune(text); len(r) > 200 {
		text = string(r[:199]) + "…"
	}
	return l.word(ctx, field, text)
}

// number writes a value that is stored as a number. Ids have no digit groups.
func (l changeLine) number(ctx context.Context, field string, n int64, currency string) string {
	locale := ui.From(ctx).Locale
	switch field {
	case "amount_off", "threshold", "max_off":
		return locale.Money(money.Amount(n), currency)
	case "percent_off", "hold_out", "hold_out_percent":
		return locale.Percent(n, 100)
	case "valid_hours":
		return ui.T(ctx, "duration.hours", n)
	case "notify_days":
		var days []string
		for _, d := range template.NoticeDays(n).List() {
			days = append(days, ui.N(ctx, "duration.days", int64(d)))
		}
		return OrDash(strings.Join(days, ", "))
	case "notify_over":
		var names []string
		for _, c := range delivery.AllChannels() {
			if delivery.ChannelSet(n).Has(c) {
				names = append(names, ui.T(ctx, "channel."+c.String()))
			}
		}
		return OrDash(strings.Join(names, ", "))
	case "channel":
		return l.word(ctx, field, delivery.Channel(n).String())
	case "stock", "per_user_limit", "household_limit", "entry_minutes", "accept_hours", "count", "codes", "used", "users", "audience_users", "total", "done", "late", "sent", "failed", "rate",
		"rate_per_second", "per_day", "per_week", "approval_above":
		return locale.Number(n)
	}
	return l.word(ctx, field, strconv.FormatInt(n, 10))
}

// versionsText describes the versions of a message, each with its share.
func versionsText(ctx context.Context, raw string) string {
	var list []delivery.Variant
	if json.Unmarshal([]byte(raw), &list) != nil {
		return raw
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.Texts[""].Title + " – " + v.Texts[""].Body
		if len(list) > 1 {
			words[i] = ui.Labelled(ctx, PercentText(ctx, v.Percent), words[i])
		}
	}
	return strings.Join(words, " | ")
}

// keptWhole are fields that make sense as a whole only.
func keptWhole(name string) bool { return slices.Contains([]string{"rule", "variants"}, name) }

// A changeLine is one field of a record whose values before and after differ.
type changeLine struct {
	scope, name, before, after string
	// wasIn and isIn are the currencies of amounts.
	wasIn, isIn string
}

// Changes compares the values before and after in a record. Values that are not objects are
// compared as a whole.
func Changes(r staff.Record) []changeLine {
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
	// On creation everything is new; empty fields are left out.
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

// shown formats a JSON value: strings without quotes.
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
