// Package hook holds the rules of events for the servers of shops: the endpoints
// that staff or shops register, the events that endpoints are sent, signed by the
// Standard Webhooks specification, the schedule of retries, and the conditions
// under which an endpoint is held or disabled.
package hook

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/field"
	"dropbell/domain/netrule"
	"dropbell/domain/staff"
	"dropbell/domain/wording"
)

// SealPurpose is the purpose for which the keys that seal secrets are derived.
const SealPurpose = "dropbell webhook secrets"

const (
	// MaxEndpoints is how many endpoints one shop can have.
	MaxEndpoints = 10
	// OldSecretFor is how long the secret before a rotation signs as well.
	OldSecretFor = 24 * time.Hour
	// MaxReplay is how many deliveries one replay of the past starts at most.
	MaxReplay = 100_000
	maxURL    = 2000
	maxText   = 200
)

// Faults of this room.
var (
	ErrNotFound         = fault.New(fault.NotFound, "webhook_not_found", "there is no such webhook endpoint; check its id")
	ErrDeliveryNotFound = fault.New(fault.NotFound, "delivery_not_found", "there is no such delivery, or its retention is over; check its id")
	ErrTooMany          = fault.New(fault.Conflict, "too_many_webhooks", "the shop has as many endpoints as it can; remove one first").Told("hooks.too_many")
	// ErrRepeated is the answer to a second creation with one request key: the
	// secret of the first endpoint was shown, or the answer was lost.
	ErrRepeated = fault.New(fault.Conflict, "webhook_repeated",
		"the request was sent twice, and one endpoint was made; if you have not seen its secret, rotate it").Told("hooks.repeated")
	ErrDisabled = fault.New(fault.Conflict, "webhook_disabled", "the endpoint is disabled; enable it first").Told("hooks.is_disabled")
)

// Why an endpoint is disabled.
type Why string

// The reasons.
const (
	ByStaff   Why = "staff"
	ByFailing Why = "failing" // every attempt failed for days
	ByGone    Why = "gone"    // it answered 410
)

// An Endpoint is an address of a shop's server that events are posted to.
type Endpoint struct {
	ID   int64
	Shop int64
	Input
	Why        Why // "" while enabled
	DisabledAt *time.Time
	// Failures counts failures in a row; FailingSince is nil after a success.
	Failures      int
	FailingSince  *time.Time
	HeldUntil     *time.Time
	LastSuccessAt *time.Time
	LastFailureAt *time.Time
	LastError     string
	// OldUntil is until when the secret before the last rotation signs as well.
	OldUntil  *time.Time
	Version   int64
	CreatedAt time.Time
	CreatedBy string
	// Secrets are sealed: the present secret, then the previous secret while it signs.
	Secrets [][]byte
	// Waiting deliveries, as far as they were counted.
	Waiting int64
}

// Wants reports whether the endpoint chose the type.
func (e Endpoint) Wants(t Type) bool { return len(e.Types) == 0 || slices.Contains(e.Types, t) }

// State is how an endpoint does.
type State string

// The states.
const (
	Disabled State = "disabled"
	Failing  State = "failing"
	Working  State = "working"
	Unused   State = "unused" // nothing was sent yet
)

// State returns how the endpoint does.
func (e Endpoint) State() State {
	switch {
	case !e.Enabled:
		return Disabled
	case e.FailingSince != nil:
		return Failing
	case e.LastSuccessAt != nil:
		return Working
	}
	return Unused
}

// Input is the part of an endpoint that staff and shops set.
type Input struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	Types       []Type `json:"types,omitempty"` // none = all
	Enabled     bool   `json:"enabled"`
	// Rehearsals says that the endpoint is also told of rehearsals of the shop's drops. These events are marked.
	Rehearsals bool `json:"rehearsals,omitempty"`
}

// Fields are the fields of an [Input].
var Fields = field.Tagged[Input]("json", "omitempty")

// check returns the normal form of in. Insecure allows http and addresses that
// are not public, for development.
func (in Input) check(insecure bool) (Input, error) {
	e := &fault.Fields{}
	in.URL, in.Description = strings.TrimSpace(in.URL), strings.TrimSpace(in.Description)
	if key, text := CheckURL(in.URL, insecure); key != "" {
		e.Add("url", key, "%s", text)
	} else {
		in.URL = lowered(in.URL)
	}
	switch {
	case !wording.OneLine(in.Description):
		e.Add("description", "rule.text", "must be valid text without control characters")
	case utf8.RuneCountInString(in.Description) > maxText:
		e.Add("description", "rule.too_long", "must have at most %d characters", maxText)
	}
	chosen := []Type{}
	for _, t := range Types() { // in their order, each once
		if slices.Contains(in.Types, t) {
			chosen = append(chosen, t)
		}
	}
	if slices.ContainsFunc(in.Types, func(t Type) bool { return !t.Valid() }) {
		e.Add("types", "rule.hook_type", "must be among the event types of the catalogue")
	}
	in.Types = chosen
	return in, e.Err()
}

// lowered returns an address that [CheckURL] accepts, with its scheme and host in lower
// case.
func lowered(address string) string {
	host := strings.Index(address, "://") + len("://")
	end := len(address)
	if i := strings.IndexAny(address[host:], "/?#"); i >= 0 {
		end = host + i
	}
	return strings.ToLower(address[:end]) + address[end:]
}

// CheckURL returns the message key and the English text of the mistake in an
// endpoint's address, empty if there is none. Whether a name leads to a public
// address is checked again at each connection.
func CheckURL(raw string, insecure bool) (key, text string) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "rule.required", "is required"
	case len(raw) > maxURL || !utf8.ValidString(raw) || strings.ContainsAny(raw, " \t\r\n\x00"):
		return "rule.hook_url", "must be an https address such as https://shop.example.com/hooks"
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "" || u.Scheme != "https" && (!insecure || u.Scheme != "http"):
		return "rule.hook_url", "must be an https address such as https://shop.example.com/hooks"
	case u.User != nil:
		return "rule.hook_user", "must have no user name or password; the signature tells you that a call is genuine"
	}
	if !insecure && inside(u.Hostname()) {
		return "rule.hook_private", "must be a public address"
	}
	return "", ""
}

// inside reports whether no host of the internet has the name: a private address, a name
// without a domain, or one of a domain for private networks. A name whose last label is a
// number is refused as well: some resolvers read it as an IPv4 address.
func inside(host string) bool {
	host = strings.TrimSuffix(narrowed(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return !netrule.Public(ip)
	}
	if host == "home.arpa" || strings.HasSuffix(host, ".home.arpa") { // RFC 8375
		return true
	}
	dot := strings.LastIndexByte(host, '.')
	switch last := host[dot+1:]; last {
	case "localhost", "local", "internal":
		return true
	default:
		return dot < 0 || strings.TrimFunc(last, unicode.IsNumber) == "" || strings.HasPrefix(last, "0x")
	}
}

// narrowed returns the host in lower case, with ASCII in place of full-width
// characters and of other full stops that separate labels, as HTTP clients read them
// (UTS #46, section 4).
func narrowed(host string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～': // U+FF01 to U+FF5E
			r -= '！' - '!'
		case r == '。' || r == '｡':
			return '.'
		}
		return unicode.ToLower(r)
	}, host)
}

// A Shown holds the fields of an endpoint that the audit log keeps: never a secret.
type Shown struct {
	Input
	Why Why `json:"disabled_reason,omitempty"`
}

// Shown returns the fields of e that the audit log keeps.
func (e Endpoint) Shown() Shown { return Shown{e.Input, e.Why} }

// Entry returns the audit record of an action on the endpoint.
func (e Endpoint) Entry(by staff.Actor, action string, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: "webhook." + action, ObjectKind: "webhook", ObjectID: itoa(e.ID), ShopNumber: e.Shop, Before: before, After: after}
}
