// Package user holds end users: their identity, their contacts, and their opt-outs
// from messages.
package user

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones must not depend on the machine

	"dropbell/domain/fault"
)

// ID identifies an end user; it is the decimal `sub` of the shop's tokens.
type ID int64

// ErrNotFound is returned when no such user is known.
var ErrNotFound = fault.New(fault.NotFound, "user_not_found", "there is no such user; check the id, or import the user first")

// ParseID reads a positive decimal id that fits 63 bits.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != s {
		return 0, fault.ErrInvalid.Because("user id must be a positive decimal number")
	}
	return ID(n), nil
}

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// QuietHours is a daily span in the user's zone, in minutes after midnight;
// it may wrap over midnight. From == To means no quiet hours.
type QuietHours struct{ From, To int }

// Contains reports whether t, seen in zone, lies inside the span.
func (q QuietHours) Contains(t time.Time, zone *time.Location) bool {
	if q.From == q.To {
		return false
	}
	local := t.In(zone)
	m := local.Hour()*60 + local.Minute()
	if q.From < q.To {
		return q.From <= m && m < q.To
	}
	return m >= q.From || m < q.To
}

// End returns the first instant after t outside the span, seen in zone. If clocks
// are put forward over the end, this is the instant of the jump. If clocks are put
// back over the end, the end occurs twice, and this is the second occurrence.
func (q QuietHours) End(t time.Time, zone *time.Location) time.Time {
	at := t.Add(time.Nanosecond).In(zone)
	for q.Contains(at, zone) {
		// Within one offset the clock reaches the end without a jump.
		h, m, s := at.Clock()
		left := (q.To*60 - h*3600 - m*60 - s + 24*3600) % (24 * 3600)
		end := at.Add(time.Duration(left)*time.Second - time.Duration(at.Nanosecond()))
		if _, jump := at.ZoneBounds(); !jump.IsZero() && jump.Before(end) {
			end = jump
		}
		at = end
	}
	return at
}

// A PushSubscription is one browser's web push registration (RFC 8030).
type PushSubscription struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"`
	Auth     string `json:"auth"`
}

// Pushable reports whether a push message can reach the user: a browser or a phone
// is known.
func (u User) Pushable() bool { return len(u.Push)+len(u.Devices) > 0 }

// OneTime reports whether one of the user's devices takes only messages to which the
// user has consented one by one; see [Platform.OneTime].
func (u User) OneTime() bool {
	return slices.ContainsFunc(u.Devices, func(d Device) bool { return d.Platform.OneTime() })
}

// A User is one person with contacts and preferences. Empty contact = none.
type User struct {
	ID    ID
	Name  string
	Email string
	// Suppressed says that nothing is to be sent to Email. It is set only for the
	// recipients of mails.
	Suppressed bool
	Phone      string // E.164
	// PhoneVerifiedAt is when the user proved Phone, or the shop said that Phone was
	// proved; zero = Phone was not proved.
	PhoneVerifiedAt time.Time
	Locale          string // BCP 47, e.g. "en", "zh-CN"
	Timezone        string // IANA, e.g. "Asia/Shanghai"
	Push            []PushSubscription
	Devices         []Device
	// Household is a keyed hash that the shop sends: users of one household have the same. Empty = not known.
	Household string
	// OptOuts is a bit per channel (1<<channel).
	OptOuts uint8
	Quiet   QuietHours
	// Attributes are the shop's own data: texts, numbers and booleans. Stores may
	// leave them out of results that do not need them.
	Attributes map[string]any
	UpdatedAt  time.Time
}

// pseudoZones are names in zone files that name no place: they differ from machine
// to machine, or mean that no zone is set.
var pseudoZones = []string{"Local", "localtime", "posixrules", "Factory"}

// ValidZone reports whether name is the name of an IANA time zone that is the same
// on every machine.
func ValidZone(name string) bool {
	if name == "" || len(name) > 64 || strings.Contains(name, "//") || strings.Contains(name, "./") || slices.Contains(pseudoZones, name) ||
		strings.HasPrefix(name, "right/") || strings.HasPrefix(name, "posix/") {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

// Zone returns the user's time zone, UTC when unknown.
func (u User) Zone() *time.Location {
	if u.Timezone == "" || u.Timezone == "Local" {
		return time.UTC
	}
	if loc := zones.of(u.Timezone); loc != nil {
		return loc
	}
	return time.UTC
}

// zoneTable caches the zones that were used. Reading a zone parses its rules, which takes
// longer than making the message for which the zone is read.
type zoneTable struct {
	mu   sync.RWMutex
	used map[string]*time.Location
}

var zones = zoneTable{used: map[string]*time.Location{}}

// mostZones bounds how many zones are kept. About 600 exist.
const mostZones = 1000

// of returns the zone of that name, nil if there is none.
func (z *zoneTable) of(name string) *time.Location {
	z.mu.RLock()
	loc := z.used[name]
	z.mu.RUnlock()
	if loc != nil {
		return loc
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(z.used) < mostZones {
		z.used[name] = loc
	}
	return loc
}

// Sleeps reports whether t lies in the user's quiet hours, and until when.
func (u User) Sleeps(t time.Time) (until time.Time, asleep bool) {
	zone := u.Zone()
	if !u.Quiet.Contains(t, zone) {
		return time.Time{}, false
	}
	return u.Quiet.End(t, zone), true
}
