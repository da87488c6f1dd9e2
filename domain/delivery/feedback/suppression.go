package feedback

import (
	"context"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// SoftBounces is the number of successive soft bounces after which an address is suppressed.
const SoftBounces = 5

// ByStaff is the reason of an address that a member suppressed. The other reasons are statuses
// that providers report.
const ByStaff = "staff"

// MaxCause bounds the cause that a member may write for a suppression, in characters.
const MaxCause = 200

// Reasons returns the reasons of suppressions, in the order in which a list offers them.
func Reasons() []string {
	return []string{string(Bounced), string(SoftBounced), string(Complained), ByStaff}
}

// ErrNotSuppressed is returned for an address that is not on the list.
var ErrNotSuppressed = fault.New(fault.NotFound, "suppression_not_found", "the address is not suppressed; look it up in the list of suppressions")

// A Suppression is a mail address that nothing is sent to.
type Suppression struct {
	// Address is in lower case, personal data: not to be logged.
	Address string
	// Reason is [Bounced], [SoftBounced] or [Complained], or [ByStaff].
	Reason   string
	Provider string // empty for ByStaff
	Cause    string // the provider's words, or the member's
	Since    time.Time
}

// A Place is the end of a page of the list, which is sorted by time, the latest first. It does
// not reveal the address at its position. The zero Place is the beginning of the list; as the
// next page it means that there is none.
type Place struct {
	Since time.Time
	Hash  int64 // of the address, for addresses suppressed at one time
}

// SuppressionStore keeps the list.
type SuppressionStore interface {
	// Suppressions returns the suppressions whose addresses begin with prefix, in order of their
	// addresses. It begins after the address after.
	Suppressions(ctx context.Context, prefix, after string, limit int) ([]Suppression, error)
	// Latest returns the suppressions with the reason ("" = all), the latest first. It begins
	// behind the place after, and returns the place where the next page begins.
	Latest(ctx context.Context, reason string, after Place, limit int) (list []Suppression, next Place, err error)
	// Suppression returns the suppression of one address, or [ErrNotSuppressed].
	Suppression(ctx context.Context, address string) (Suppression, error)
	// Suppress adds an address. If the address is on the list already, its suppression is left
	// unchanged, added is false, and nothing is written.
	Suppress(ctx context.Context, s Suppression, e staff.Entry) (kept Suppression, added bool, err error)
	// Release takes an address off the list, or returns [ErrNotSuppressed].
	Release(ctx context.Context, address string, e staff.Entry) error
}

// Suppressions holds the use cases of staff around the list. Addresses belong to users of all
// shops: listing by address, adding and releasing need [staff.ManageUsers] for all shops.
// [Suppressions.Latest] and [Suppressions.Find] are for staff who may see users; callers mask the
// returned addresses unless [staff.Actor.SeesContacts].
type Suppressions struct{ Store SuppressionStore }

// Address returns a mail address as the list has it, or [fault.ErrInvalid].
func Address(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text || len(text) > 254 {
		e := &fault.Fields{}
		e.Add("address", "rule.email", "must be an e-mail address such as ann@example.com")
		return "", e
	}
	return text, nil
}

// List returns the suppressed addresses that begin with prefix.
func (s *Suppressions) List(ctx context.Context, by staff.Actor, prefix, after string, limit int) ([]Suppression, error) {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return nil, err
	}
	return s.Store.Suppressions(ctx, strings.ToLower(strings.TrimSpace(prefix)), after, limit)
}

// Latest returns a page of the list, the latest first; see [SuppressionStore].
func (s *Suppressions) Latest(ctx context.Context, by staff.Actor, reason string, after Place, limit int) ([]Suppression, Place, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, Place{}, err
	}
	return s.Store.Latest(ctx, reason, after, limit)
}

// Find returns the suppression of a complete address. It returns [ErrNotSuppressed] if there is
// none, also for a text that is no address.
func (s *Suppressions) Find(ctx context.Context, by staff.Actor, address string) (Suppression, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Suppression{}, err
	}
	return s.Store.Suppression(ctx, strings.ToLower(strings.TrimSpace(address)))
}

// Add suppresses an address; cause says why. Repeating it changes nothing.
func (s *Suppressions) Add(ctx context.Context, by staff.Actor, address, cause string) (Suppression, bool, error) {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return Suppression{}, false, err
	}
	address, err := Address(address)
	if utf8.RuneCountInString(cause) > MaxCause {
		e := &fault.Fields{}
		if broken, ok := err.(*fault.Fields); ok {
			e = broken
		}
		e.Add("cause", "rule.too_long", "must have at most %d characters", MaxCause)
		err = e
	}
	if err != nil {
		return Suppression{}, false, err
	}
	return s.Store.Suppress(ctx, Suppression{Address: address, Reason: ByStaff, Cause: cause}, staff.Entry{Actor: by, Action: "suppression.add",
		ObjectKind: "suppression", After: map[string]string{"address": address}, Reason: cause})
}

// Release lets an address be sent to again; until a later report suppresses it anew.
func (s *Suppressions) Release(ctx context.Context, by staff.Actor, address string) error {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return err
	}
	address, err := Address(address)
	if err != nil {
		return err
	}
	return s.Store.Release(ctx, address, staff.Entry{Actor: by, Action: "suppression.release", ObjectKind: "suppression",
		Before: map[string]string{"address": address}})
}
