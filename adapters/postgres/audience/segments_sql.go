package audience

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/segment"
)

// A filter is a rule translated into a condition on the row u of users. Input is in args, never
// in the text.
type filter struct {
	text string
	args []any
}

// compile translates r, which [segment.Rule.Check] has accepted, into a condition. The
// condition's parameters follow args.
func compile(r segment.Rule, args ...any) filter {
	c := &compiler{args: args}
	return filter{text: c.rule(r), args: c.args} // in this order: rule adds to args
}

type compiler struct{ args []any }

// arg returns the placeholder of a new parameter.
func (c *compiler) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

// joins has, for each kind of group, the SQL around and between its conditions, and the value of
// an empty group.
var joins = map[segment.Match]struct{ before, between, empty string }{
	segment.All:  {"", " and ", "true"},
	segment.Any:  {"", " or ", "false"},
	segment.None: {"not ", " or ", "true"},
}

// rule returns a condition that is true or false, never null, so that its negation with "not" is
// the opposite.
func (c *compiler) rule(r segment.Rule) string {
	if r.Match == "" {
		return "(" + c.condition(r.Condition) + ")"
	}
	j := joins[r.Match]
	if len(r.Rules) == 0 {
		return j.empty
	}
	parts := make([]string, len(r.Rules))
	for i, sub := range r.Rules {
		parts[i] = c.rule(sub)
	}
	return j.before + "(" + strings.Join(parts, j.between) + ")"
}

func (c *compiler) condition(x segment.Condition) string {
	switch x.Field {
	case segment.Attribute:
		return c.attribute(x)
	case segment.Locale:
		return negated(x.Op == segment.NotOneOf, c.locale(x.Values))
	case segment.Timezone:
		return negated(x.Op == segment.NotOneOf, "u.timezone = any("+c.arg(x.Values)+"::text[])")
	case segment.Contact:
		return negated(x.Op == segment.HasNot, contacts[x.Values[0]])
	case segment.OptedOut:
		return negated(x.Op == segment.IsNot, "u.opt_outs & "+c.arg(channelBit(x.Values[0]))+"::smallint <> 0")
	case segment.Created:
		return c.when("u.created_at", x)
	case segment.Reserved:
		return c.reserved(x)
	case segment.Coupon:
		return c.coupon(x)
	case segment.ReservedNotClaimed:
		list := c.arg(x.Values)
		return `exists (select from reservations r where r.user_id = u.id and r.template_id = any(` + list + `::text[]::bigint[])
			and not exists (select from coupons k where k.user_id = u.id and k.template_id = r.template_id))`
	case segment.Claimed:
		return negated(x.Op == segment.NotWithinDays,
			`exists (select from coupons k where k.user_id = u.id and k.issued_at > `+c.ago(x)+`)`)
	case segment.NeverUsedHere:
		return `not exists (select from coupons k join templates t on t.id = k.template_id where k.user_id = u.id and k.state = 'used' and t.shop_number = any(` +
			c.arg(x.Values) + `::text[]::bigint[]))`
	case segment.FirstOrder:
		return negated(x.Op == segment.IsNot, firstOrder)
	}
	return "false"
}

// firstOrder is true of users whose attribute first_order is true and of whom no order is stored.
const firstOrder = `coalesce(lower(u.attributes ->> 'first_order') in ('true', 'yes', '1'), false) and not exists (select from orders o where o.user_id = u.id)
	and not exists (select from coupon_orders o where o.user_id = u.id and o.state in ('confirmed', 'refunded'))`

var contacts = map[string]string{"email": "u.email <> ''", "sms": "u.phone <> ''", "webpush": "(u.push <> '[]' or u.devices <> '[]')",
	segment.PhoneVerified: "u.phone_verified_at is not null"}

func channelBit(name string) int16 {
	for i, n := range segment.ChannelNames() {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

func negated(yes bool, condition string) string {
	if yes {
		return "not (" + condition + ")"
	}
	return condition
}

// locale matches a language with all of its regions: zh means zh-CN as well.
func (c *compiler) locale(tags []string) string {
	exact, regions := make([]string, len(tags)), make([]string, len(tags))
	for i, t := range tags {
		exact[i] = strings.ToLower(t)
		regions[i] = exact[i] + "-%" // a tag has letters, digits and dashes only
	}
	return fmt.Sprintf("lower(u.locale) = any(%s::text[]) or lower(u.locale) like any(%s::text[])", c.arg(exact), c.arg(regions))
}

// attribute reads values as the operator needs them. A value that is not a number is never above
// or below a number. An attribute that is null is missing.
func (c *compiler) attribute(x segment.Condition) string {
	name := c.arg(x.Name)
	text := "u.attributes ->> " + name + "::text"
	number := "case when jsonb_typeof(u.attributes -> " + name + "::text) = 'number' then (" + text + ")::numeric %s %s::text::numeric else false end"
	date := "coalesce(" + fmt.Sprintf(instantOf, "("+text+")") + " %s %s::timestamptz, false)"
	one := func() string { return c.arg(x.Values[0]) }
	switch x.Op {
	case segment.Exists:
		return text + " is not null"
	case segment.Missing:
		return text + " is null"
	case segment.Is:
		return "coalesce(" + text + " = " + one() + "::text, false)"
	case segment.IsNot:
		return "coalesce(" + text + " <> " + one() + "::text, true)"
	case segment.OneOf:
		return "coalesce(" + text + " = any(" + c.arg(x.Values) + "::text[]), false)"
	case segment.NotOneOf:
		return "coalesce(" + text + " <> all(" + c.arg(x.Values) + "::text[]), true)"
	case segment.Contains:
		return "coalesce(strpos(lower(" + text + "), lower(" + one() + "::text)) > 0, false)"
	case segment.Above:
		return fmt.Sprintf(number, ">", one())
	case segment.AtLeast:
		return fmt.Sprintf(number, ">=", one())
	case segment.Below:
		return fmt.Sprintf(number, "<", one())
	case segment.AtMost:
		return fmt.Sprintf(number, "<=", one())
	case segment.Before, segment.After:
		op, at := bound(x)
		return fmt.Sprintf(date, op, c.arg(at))
	}
	return "false"
}

// dateForm matches existing days, and RFC 3339 instants on these days. It matches no text that a
// cast would refuse, such as an offset of sixteen hours.
const dateForm = `^(?!0000)([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))` +
	`|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)` +
	`(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?(Z|[+-](0[0-9]|1[0-5]):[0-5][0-9]))?$`

// instantOf is the instant in the text %[1]s. It is truncated to the microsecond, which a cast
// would round. A day is its midnight UTC. Any other text is null, never an error.
const instantOf = `case when %[1]s ~ '` + dateForm + `' then case
	when length(%[1]s) = 10 then %[1]s || ' 00:00Z'
	when substr(%[1]s, 27, 1) between '0' and '9' and substr(%[1]s, 20, 1) = '.' then regexp_replace(%[1]s, '([.][0-9]{6})[0-9]+', '\1')
	else %[1]s end::timestamptz end`

// bound returns the operator and the instant of x's comparison. A day begins and ends in UTC;
// instants of the day itself are not after the day.
func bound(x segment.Condition) (op string, at time.Time) {
	at, _ = segment.ParseDate(x.Values[0])
	switch {
	case x.Op == segment.Before:
		return "<", at
	case len(x.Values[0]) == len("2026-11-20"):
		return ">=", at.AddDate(0, 0, 1)
	}
	return ">", at
}

// when compares an instant; see bound.
func (c *compiler) when(column string, x segment.Condition) string {
	switch x.Op {
	case segment.WithinDays:
		return column + " > " + c.ago(x)
	case segment.NotWithinDays:
		return column + " <= " + c.ago(x)
	}
	op, at := bound(x)
	return column + " " + op + " " + c.arg(at)
}

// ago is the instant so many days before now, by the database's clock.
func (c *compiler) ago(x segment.Condition) string {
	days, _ := strconv.Atoi(x.Values[0])
	return "now() - make_interval(days => " + c.arg(days) + "::int)"
}

func (c *compiler) reserved(x segment.Condition) string {
	const some = `exists (select from reservations r where r.user_id = u.id and `
	switch x.Op {
	case segment.Template, segment.NotTemplate:
		return negated(x.Op == segment.NotTemplate, some+`r.template_id = any(`+c.arg(x.Values)+`::text[]::bigint[]))`)
	}
	return negated(x.Op == segment.NotWithinDays, some+`r.created_at > `+c.ago(x)+`)`)
}

// couponStates are the conditions of the operators; an operator without a condition means any
// state. The clock decides which coupons have expired, also while the sweep that stores the
// expiry is late.
var couponStates = map[segment.Op]string{
	segment.Holds:   ` and k.state in ('unused', 'locked') and k.expires_at > now()`,
	segment.Used:    ` and k.state = 'used'`,
	segment.Expired: ` and (k.state = 'expired' or k.state = 'unused' and k.expires_at <= now())`,
}

func (c *compiler) coupon(x segment.Condition) string {
	text := `exists (select from coupons k where k.user_id = u.id and k.template_id = any(` + c.arg(x.Values) + `::text[]::bigint[])` + couponStates[x.Op]
	return negated(x.Op == segment.NeverHad, text+`)`)
}
