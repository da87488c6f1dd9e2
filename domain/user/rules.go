package user

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/wording"
)

// Limits of what is kept about a user.
const (
	MaxName       = 200
	MaxEmail      = 254 // RFC 5321 §4.5.3.1.3
	MaxPush       = 20
	MaxAttributes = 50
	MaxAttribute  = 500
)

var (
	phoneForm  = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	localeForm = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$`)
	hourForm   = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
	// householdForm has hashes and random names, and no addresses, which have spaces.
	householdForm = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)
	attrForm      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
)

// ParseQuietHours reads a span such as "22:00" to "08:00"; it returns false
// if either end is not a time of day.
func ParseQuietHours(from, to string) (QuietHours, bool) {
	if !hourForm.MatchString(from) || !hourForm.MatchString(to) {
		return QuietHours{}, false
	}
	return QuietHours{minutes(from), minutes(to)}, true
}

// minutes converts what hourForm has matched.
func minutes(s string) int {
	h, _ := strconv.Atoi(s[:2])
	m, _ := strconv.Atoi(s[3:])
	return h*60 + m
}

// Clock returns both ends in the form that [ParseQuietHours] reads.
func (q QuietHours) Clock() (from, to string) {
	return fmt.Sprintf("%02d:%02d", q.From/60, q.From%60), fmt.Sprintf("%02d:%02d", q.To/60, q.To%60)
}

// rules checks changes. It keeps the zones of one batch, because looking up a zone
// costs more than all other checks.
type rules struct {
	localPush bool
	zones     map[string]bool
}

// check returns a [fault.Fields] that names every rule c breaks, or nil.
func (r *rules) check(c Change) error {
	e := &fault.Fields{}
	if c.ID <= 0 {
		e.Add("id", "rule.user_id", "must be a positive decimal number")
	}
	if c.Name != nil {
		checkText(e, "name", *c.Name, MaxName)
		if strings.ContainsFunc(*c.Name, wording.TurnsAround) {
			e.Add("name", "rule.text", "must not contain characters that turn text around")
		}
	}
	if set(c.Email) && !validEmail(*c.Email) {
		e.Add("email", "rule.email", "must be an e-mail address such as ann@example.com")
	}
	if set(c.Phone) && !phoneForm.MatchString(*c.Phone) {
		e.Add("phone", "rule.phone", "must be an E.164 number such as +8613800138000")
	}
	if set(c.Locale) && (!localeForm.MatchString(*c.Locale) || len(*c.Locale) > 35) {
		e.Add("locale", "rule.locale", "must be a BCP 47 language tag such as zh-CN")
	}
	if set(c.Timezone) && !r.zone(*c.Timezone) {
		e.Add("timezone", "rule.timezone", "must be an IANA time zone such as Asia/Shanghai")
	}
	if set(c.Household) && !householdForm.MatchString(*c.Household) {
		e.Add("household", "rule.household", "must be a keyed hash of 16 to 64 letters, digits, - or _")
	}
	if q := c.Quiet; q != nil && (q.From < 0 || q.To < 0 || q.From >= 24*60 || q.To >= 24*60) {
		e.Add("quiet_hours", "rule.quiet_hours", "must be two times of day")
	}
	if c.Push != nil {
		r.checkPush(e, *c.Push)
	}
	if c.Attributes != nil {
		checkAttributes(e, *c.Attributes)
	}
	if c.Patch != nil {
		checkAttributes(e, c.Patch)
	}
	return e.Err()
}

func set(s *string) bool { return s != nil && *s != "" }

func checkText(e *fault.Fields, name, text string, most int) {
	switch {
	case !clean(text):
		e.Add(name, "rule.text", "must be valid text without control characters")
	case utf8.RuneCountInString(text) > most:
		e.Add(name, "rule.too_long", "must have at most %d characters", most)
	}
}

func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// validEmail accepts a bare address; a display name or comment is none.
func validEmail(s string) bool {
	if len(s) > MaxEmail || !clean(s) || strings.ContainsAny(s, " <>\"(),;") {
		return false
	}
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func (r *rules) zone(name string) bool {
	if r.zones[name] {
		return true
	}
	if !ValidZone(name) {
		return false
	}
	r.zones[name] = true
	return true
}

// Check returns a [fault.Fields] that names the fields with values that no browser's
// PushManager returns, or nil. local permits push services on this machine, for
// tests.
func (p PushSubscription) Check(local bool) error {
	e, r := &fault.Fields{}, &rules{localPush: local}
	r.checkSubscription(e, "", p)
	return e.Err()
}

func (r *rules) checkPush(e *fault.Fields, subs []PushSubscription) {
	if len(subs) > MaxPush {
		e.Add("push", "rule.too_many", "must have at most %d entries", MaxPush)
		return
	}
	for i, p := range subs {
		r.checkSubscription(e, fmt.Sprintf("push[%d].", i), p)
	}
}

// checkSubscription adds an error for each field that breaks a rule; at goes before the fields' names.
func (r *rules) checkSubscription(e *fault.Fields, at string, p PushSubscription) {
	if !r.endpoint(p.Endpoint) {
		e.Add(at+"endpoint", "rule.push_endpoint", "must be the https address that the browser's push service gave")
	}
	// An uncompressed P-256 point and 16 random bytes, RFC 8291 §3.1 and §3.2.
	if !bytesOf(p.P256dh, 65) {
		e.Add(at+"p256dh", "rule.push_key", "must be the browser's public key in base64")
	}
	if !bytesOf(p.Auth, 16) {
		e.Add(at+"auth", "rule.push_key", "must be the browser's authentication secret in base64")
	}
}

// endpoint keeps users from aiming the sender at hosts inside the network:
// push services have names and certificates.
func (r *rules) endpoint(s string) bool {
	u, err := url.Parse(s)
	if err != nil || len(s) > 2000 || !clean(s) || u.Host == "" || u.User != nil {
		return false
	}
	if r.localPush {
		return u.Scheme == "https" || u.Scheme == "http"
	}
	_, notAddress := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" && notAddress != nil && strings.Contains(strings.Trim(u.Hostname(), "."), ".")
}

func bytesOf(s string, n int) bool {
	if !clean(s) {
		return false // the decoder would skip line breaks
	}
	s = strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(s), "=")
	b, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && len(b) == n
}

func checkAttributes(e *fault.Fields, attrs map[string]any) {
	if len(attrs) > MaxAttributes {
		e.Add("attributes", "rule.too_many", "must have at most %d entries", MaxAttributes)
		return
	}
	for name, value := range attrs {
		if !attrForm.MatchString(name) {
			e.Add("attributes", "rule.attribute_name", "names must be 1 to 64 letters, digits, dots, dashes or underscores, a letter first")
			return
		}
		if !validAttribute(value) {
			e.Add("attributes."+name, "rule.attribute", "must be a text of at most %d characters, a number, true, false or null", MaxAttribute)
		}
	}
}

func validAttribute(value any) bool {
	switch v := value.(type) {
	case nil, bool:
		return true
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	case string:
		return clean(v) && utf8.RuneCountInString(v) <= MaxAttribute
	}
	return false
}
