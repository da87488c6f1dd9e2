package segment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

var (
	attributeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
	languageForm  = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$`)
	numberForm    = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`)
)

func refusal(place, key, format string, args ...any) error {
	e := &fault.Fields{}
	e.Add(place, key, format, args...)
	return e
}

// Check returns a [fault.Fields] that names, by its place in the tree, every part
// of the rule that is invalid or beyond a limit; nil if there is none.
func (r Rule) Check() error {
	c := &checker{}
	c.rule("rule", r, 1)
	if c.conditions > MaxConditions {
		c.broken.Add("rule", "rule.segment_size", "must have at most %d conditions", MaxConditions)
	}
	return c.broken.Err()
}

type checker struct {
	broken     fault.Fields
	conditions int
}

// maxComplaints bounds the errors reported for a rule: enough to correct a form.
const maxComplaints = 20

func (c *checker) add(place, key, format string, args ...any) {
	if len(c.broken.List) < maxComplaints {
		c.broken.Add(place, key, format, args...)
	}
}

func (c *checker) rule(path string, r Rule, level int) {
	if r.Match == "" {
		c.conditions++
		c.condition(path, r.Condition)
		return
	}
	switch {
	case !slices.Contains(Matches(), r.Match):
		c.add(path, "rule.segment_form", "must be all, any, none or a condition")
	case level > MaxDepth:
		c.add(path, "rule.segment_depth", "groups may be nested at most %d deep", MaxDepth)
	case level > 1 && len(r.Rules) == 0:
		c.add(path, "rule.segment_empty", "a group inside a group needs a condition")
	default:
		for i, sub := range r.Rules {
			c.rule(fmt.Sprintf("%s.%s[%d]", path, r.Match, i), sub, level+1)
		}
	}
}

func (c *checker) condition(path string, x Condition) {
	if opsOf(x.Field) == nil {
		c.add(path+".field", "rule.segment_field", "is not a field that can be asked for")
		return
	}
	value, ok := ValueOf(x.Field, x.Op)
	if !ok {
		c.add(path+".op", "rule.segment_op", "is not an operator of this field")
		return
	}
	if x.Field == Attribute && !attributeForm.MatchString(x.Name) {
		c.add(path+".name", "rule.attribute_name", "must be 1 to 64 letters, digits, dots, dashes or underscores, a letter first")
	}
	if x.Field != Attribute && x.Name != "" {
		c.add(path+".name", "rule.segment_name", "only attributes have a name")
	}
	c.values(path, value, x.Values)
}

func (c *checker) values(path string, kind Value, values []string) {
	most, place := 1, path+".values"
	switch {
	case kind == NoValue:
		most = 0
	case kind == TemplateIDs || kind == ShopNumbers:
		most = MaxTemplates
	case kind.many():
		most = MaxValues
	}
	if len(values) > most {
		c.add(place, "rule.too_many", "must have at most %d entries", most)
		return
	}
	if len(values) == 0 && most > 0 {
		c.add(place, "rule.required", "is required")
	}
	for i, v := range values {
		if why := kind.refuses(v); why != nil {
			c.add(fmt.Sprintf("%s[%d]", place, i), why.Key, "%s", why.Message)
		}
	}
}

// Takes reports whether s is such a value.
func (v Value) Takes(s string) bool { return v.refuses(s) == nil }

// refuses returns the error of one value, or nil.
func (v Value) refuses(s string) *fault.Field {
	ok, key, text := true, "", ""
	switch v {
	case Text, Texts:
		ok = s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxValue && !strings.ContainsFunc(s, unicode.IsControl)
		key, text = "rule.segment_text", "must be a text of 1 to 500 characters"
	case Number:
		ok, key, text = numberForm.MatchString(s), "rule.segment_number", "must be a number such as 12 or 0.5"
	case Date:
		_, ok = ParseDate(s)
		key, text = "rule.segment_date", "must be a day such as 2026-11-20 or an RFC 3339 instant"
	case Days:
		n, err := strconv.Atoi(s)
		ok = err == nil && n >= 1 && n <= MaxDays && strconv.Itoa(n) == s
		key, text = "rule.segment_days", "must be a whole number of days from 1 to 3650"
	case Languages:
		ok, key, text = languageForm.MatchString(s) && len(s) <= 35, "rule.locale", "must be a BCP 47 language tag such as zh-CN"
	case Zones:
		ok, key, text = user.ValidZone(s), "rule.timezone", "must be an IANA time zone such as Asia/Shanghai"
	case ContactKind:
		ok, key, text = slices.Contains(ContactKinds(), s), "rule.segment_contact", "must be email, sms, webpush or phone_verified"
	case ChannelName:
		ok, key, text = slices.Contains(ChannelNames(), s), "rule.channel_name", "must be app, email, sms, webpush or webhook"
	case TemplateIDs:
		n, err := strconv.ParseInt(s, 10, 64)
		ok = err == nil && n > 0 && n < math.MaxInt64 && strconv.FormatInt(n, 10) == s
		key, text = "rule.segment_template", "must be the id of a template"
	case ShopNumbers:
		n, err := strconv.ParseInt(s, 10, 64)
		ok = err == nil && n > 0 && strconv.FormatInt(n, 10) == s
		key, text = "rule.segment_shop", "must be the number of a shop"
	}
	if ok {
		return nil
	}
	return &fault.Field{Key: key, Message: text}
}

// PhoneVerified is the contact kind of users with a verified phone number.
const PhoneVerified = "phone_verified"

// ContactKinds returns the channels whose contact a user has or has not, and
// [PhoneVerified].
func ContactKinds() []string { return []string{"email", "sms", "webpush", PhoneVerified} }

// ChannelNames returns the channels that can be opted out of, in the order of
// their bits.
func ChannelNames() []string { return user.ChannelNames() }

// ParseDate reads a day, which begins at midnight UTC, or an instant.
func ParseDate(s string) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, s); err == nil && t.Year() >= 1970 && t.Year() < 9000 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
