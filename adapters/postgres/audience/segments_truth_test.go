package audience_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

func (w *fixture) segment(name string, r segment.Rule) segment.Segment {
	w.Helper()
	g, err := audiencedb.NewSegments(w.DB).CreateSegment(w.Context(), segment.Segment{Name: name, Kind: segment.ByRules, Rule: r}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	return g
}

// fact is one user as the reference sees the user.
type fact struct {
	attributes   map[string]any
	locale, zone string
	contacts     string // letters of email, sms, webpush, phone_verified
	off          uint8
	age          int       // days
	created      time.Time // age days and an hour before one instant that is the same for all
	reserved     map[string]int
	coupons      map[string]string // template → state
	issued       int               // days ago; 0 = never
	ordered      string            // the table with an order of the user
}

// crowd fills the database with users who differ in every property that a rule can test, and
// returns them as the reference sees them.
func (w *fixture) crowd() map[user.ID]fact {
	people := map[user.ID]fact{}
	locales, zones := []string{"", "en", "en-GB", "zh-CN", "ZH", "zha"}, []string{"", "UTC", "Asia/Shanghai"}
	values := []any{nil, "gold", "Gold medal", "7", 7.0, -0.5, true, "2026-11-20", "2026-11-20T10:00:00Z", "2025-01-01", "100%", "it's",
		"2026-11-20T23:30:00-08:00", "2026-11-20T01:00:00+08:00", "2026-11-20T00:00:00.5Z", "2026-99-99 foo", "2026-02-30"}
	now := pgtest.Clock()
	w.Exec(`insert into shops (number, name, timezone) values (10, 'Shop 10', 'UTC') on conflict do nothing`)
	w.Insert("templates", pgtest.Row{"id": 7})
	for i := range 240 {
		f := fact{attributes: map[string]any{}, locale: locales[i%6], zone: zones[i%3], off: uint8(i * 7 % 32), age: 1 + i%90,
			reserved: map[string]int{}, coupons: map[string]string{}}
		f.created = now.Add(-time.Duration(f.age*24+1) * time.Hour)
		if i%4 > 0 {
			f.attributes["tier"] = values[i%len(values)]
		}
		if i%5 == 0 {
			f.attributes["score"] = float64(i)
		}
		for n, c := range "esw" {
			if i>>n&1 == 1 {
				f.contacts += string(c)
			}
		}
		if i&2 > 0 && i%3 > 0 {
			f.contacts += "p"
		}
		id := user.ID(10 + 3*i)
		if i%3 == 0 {
			f.reserved["7"] = 1 + i%40
		}
		if i%7 == 0 {
			f.reserved["8"] = 1 + i%60
		}
		if i%6 == 1 || i%9 == 0 {
			f.coupons["7"] = []string{"unused", "locked", "used", "expired", "revoked", "overdue"}[i/3%6]
			f.issued = 1 + i%50
		}
		if i%4 == 1 {
			f.attributes["first_order"] = i%8 == 1
			f.ordered = []string{"", "orders", "coupon_orders", ""}[i/8%4]
		}
		people[id] = f
		w.store(id, f)
	}
	return people
}

func (w *fixture) store(id user.ID, f fact) {
	w.Helper()
	c := user.Change{ID: id, Locale: &f.locale, Timezone: &f.zone, OptOuts: &f.off, Attributes: &f.attributes}
	if strings.Contains(f.contacts, "e") {
		c.Email = new("u@example.com")
	}
	if strings.Contains(f.contacts, "s") {
		c.Phone, c.PhoneVerified = new("+8613800138000"), new(strings.Contains(f.contacts, "p"))
	}
	if strings.Contains(f.contacts, "w") {
		c.Push = &[]user.PushSubscription{{Endpoint: "https://p.example.com/1"}}
	}
	w.Upsert(c)
	w.Exec(`update users set created_at = $2 where id = $1`, id, f.created)
	for t, days := range f.reserved {
		w.Exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1::text::bigint, $2, 1, now() - make_interval(days => $3, hours => 1))`, t, id, days)
	}
	for t, state := range f.coupons {
		c := pgtest.Row{"template_id": pgtest.SQL(t), "user_id": id, "state": state, "issued_at": time.Now().Add(-time.Duration(24*f.issued+1) * time.Hour)}
		if state == "overdue" { // not swept yet
			c["state"], c["expires_at"] = "unused", pgtest.SQL("now() - interval '1 hour'")
		}
		w.Insert("coupons", c)
	}
	switch f.ordered {
	case "orders":
		w.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, ordered_at) values (10, $1::bigint::text, $1, 'CNY', 100, now())`, id)
	case "coupon_orders":
		w.Exec(`insert into coupon_orders (order_id, user_id, state) values ($1::bigint::text, $1, 'confirmed')`, id)
	}
}

// truth judges a rule the slow and simple way.
func truth(r segment.Rule, f fact) bool {
	if r.Match == "" {
		return holds(r.Condition, f)
	}
	n := 0
	for _, sub := range r.Rules {
		if truth(sub, f) {
			n++
		}
	}
	switch r.Match {
	case segment.All:
		return n == len(r.Rules)
	case segment.Any:
		return n > 0
	}
	return n == 0
}

func holds(c segment.Condition, f fact) bool {
	days := func() int { n, _ := strconv.Atoi(c.Values[0]); return n }
	switch c.Field {
	case segment.Attribute:
		return attributeHolds(c, f.attributes[c.Name])
	case segment.Locale:
		found := slices.ContainsFunc(c.Values, func(tag string) bool {
			l, tag := strings.ToLower(f.locale), strings.ToLower(tag)
			return l == tag || strings.HasPrefix(l, tag+"-")
		})
		return found == (c.Op == segment.OneOf)
	case segment.Timezone:
		return slices.Contains(c.Values, f.zone) == (c.Op == segment.OneOf)
	case segment.Contact:
		return strings.Contains(f.contacts, c.Values[0][:1]) == (c.Op == segment.Has)
	case segment.OptedOut:
		bit := slices.Index(segment.ChannelNames(), c.Values[0])
		return (f.off>>bit&1 == 1) == (c.Op == segment.Is)
	case segment.Created:
		return dated(c, f, days)
	case segment.Reserved:
		return reservedHolds(c, f, days)
	case segment.Coupon:
		return couponHolds(c, f)
	case segment.ReservedNotClaimed:
		return slices.ContainsFunc(c.Values, func(t string) bool { return f.reserved[t] > 0 && f.coupons[t] == "" })
	case segment.Claimed:
		return (f.issued > 0 && f.issued < days()) == (c.Op == segment.WithinDays)
	case segment.NeverUsedHere: // template 7 is of shop 10
		return f.coupons["7"] != "used" || !slices.Contains(c.Values, "10")
	case segment.FirstOrder:
		return (f.attributes["first_order"] == true && f.ordered == "") == (c.Op == segment.Is)
	}
	panic("a field that the reference does not know")
}

func dated(c segment.Condition, f fact, days func() int) bool {
	switch c.Op {
	case segment.WithinDays:
		return f.age < days()
	case segment.NotWithinDays:
		return f.age >= days()
	}
	at, _ := segment.ParseDate(c.Values[0])
	if c.Op == segment.Before {
		return f.created.Before(at)
	}
	if len(c.Values[0]) > len(time.DateOnly) {
		return f.created.After(at)
	}
	return !f.created.Before(at.AddDate(0, 0, 1))
}

func reservedHolds(c segment.Condition, f fact, days func() int) bool {
	some := func(is func(t string, age int) bool) bool {
		for t, age := range f.reserved {
			if is(t, age) {
				return true
			}
		}
		return false
	}
	if c.Op == segment.Template || c.Op == segment.NotTemplate {
		return some(func(t string, _ int) bool { return slices.Contains(c.Values, t) }) == (c.Op == segment.Template)
	}
	return some(func(_ string, age int) bool { return age < days() }) == (c.Op == segment.WithinDays)
}

func couponHolds(c segment.Condition, f fact) bool {
	states := map[segment.Op]string{segment.Holds: "unused locked", segment.Used: "used", segment.Expired: "expired overdue",
		segment.Had: "unused locked used expired revoked overdue", segment.NeverHad: "unused locked used expired revoked overdue"}[c.Op]
	found := slices.ContainsFunc(c.Values, func(t string) bool {
		return f.coupons[t] != "" && slices.Contains(strings.Fields(states), f.coupons[t])
	})
	return found == (c.Op != segment.NeverHad)
}

func attributeHolds(c segment.Condition, v any) bool {
	text, is := "", v != nil
	switch x := v.(type) {
	case string:
		text = x
	case float64:
		text = strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		text = strconv.FormatBool(x)
	}
	at, isDate := instant(text)
	number := func(compare func(a, b float64) bool) bool {
		x, ok := v.(float64)
		y, _ := strconv.ParseFloat(c.Values[0], 64)
		return ok && compare(x, y)
	}
	switch c.Op {
	case segment.Exists, segment.Missing:
		return is == (c.Op == segment.Exists)
	case segment.Is, segment.IsNot:
		return (is && text == c.Values[0]) == (c.Op == segment.Is)
	case segment.OneOf, segment.NotOneOf:
		return (is && slices.Contains(c.Values, text)) == (c.Op == segment.OneOf)
	case segment.Contains:
		return is && strings.Contains(strings.ToLower(text), strings.ToLower(c.Values[0]))
	case segment.Above:
		return number(func(a, b float64) bool { return a > b })
	case segment.AtLeast:
		return number(func(a, b float64) bool { return a >= b })
	case segment.Below:
		return number(func(a, b float64) bool { return a < b })
	case segment.AtMost:
		return number(func(a, b float64) bool { return a <= b })
	case segment.Before, segment.After:
		bound, _ := instant(c.Values[0])
		if c.Op == segment.Before {
			return isDate && at.Before(bound)
		}
		if len(c.Values[0]) == len(time.DateOnly) {
			return isDate && !at.Before(bound.AddDate(0, 0, 1))
		}
		return isDate && at.After(bound)
	}
	panic("an operator that the reference does not know")
}

// instant reads a day or an RFC 3339 instant, which has no comma and an offset
// of less than sixteen hours.
func instant(s string) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		t, err := time.Parse(form, s)
		offset := strings.ContainsAny(s[max(0, len(s)-6):], "+") || len(s) > 16 && s[len(s)-6] == '-'
		if err == nil && t.Year() != 0 && !strings.Contains(s, ",") && !(offset && (s[len(s)-5:] >= "16:00" || s[len(s)-2:] > "59")) {
			return t, true
		}
	}
	return time.Time{}, false
}

// anyRule draws rules of every field and operator.
func anyRule(depth int) *rapid.Generator[segment.Rule] {
	return rapid.Custom(func(t *rapid.T) segment.Rule {
		if depth > 1 && rapid.IntRange(0, 2).Draw(t, "group") == 0 {
			g := segment.Rule{Match: rapid.SampledFrom(segment.Matches()).Draw(t, "match")}
			g.Rules = rapid.SliceOfN(anyRule(depth-1), 1, 3).Draw(t, "rules")
			return g
		}
		field := rapid.SampledFrom(segment.Fields()).Draw(t, "field")
		op := rapid.SampledFrom(segment.Ops(field)).Draw(t, "op")
		kind, _ := segment.ValueOf(field, op)
		c := segment.Condition{Field: field, Op: op}
		if field == segment.Attribute {
			c.Name = rapid.SampledFrom([]string{"tier", "score", "unknown"}).Draw(t, "name")
		}
		choices := map[segment.Value][]string{
			segment.Text: {"gold", "7", "true", "GOLD", "100%", "it's", "_", "2026-11-20"}, segment.Texts: {"gold", "7", "true", "-0.5"},
			segment.Number: {"7", "-1", "100", "0.5"}, segment.Date: {"2026-11-20", "2025-06-01", time.Now().UTC().AddDate(0, 0, -45).Format(time.DateOnly), "2026-11-20T00:00:00Z", "2026-11-20T23:00:00.25+08:00"}, segment.Days: {"1", "30", "365"},
			segment.Languages: {"en", "zh", "zh-CN", "fr"}, segment.Zones: {"UTC", "Asia/Shanghai", "Europe/Berlin"},
			segment.ContactKind: segment.ContactKinds(), segment.ChannelName: segment.ChannelNames(), segment.TemplateIDs: {"7", "8", "9"}, segment.ShopNumbers: {"10", "20"}}[kind]
		switch {
		case kind == segment.NoValue:
		case kind.Many():
			c.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(choices), 1, 2, rapid.ID[string]).Draw(t, "values")
		default:
			c.Values = []string{rapid.SampledFrom(choices).Draw(t, "value")}
		}
		return segment.Rule{Condition: c}
	})
}
