package alert

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/domain/wording"
)

// Faults of destinations.
var (
	ErrNoDestination = fault.New(fault.NotFound, "destination_not_found", "there is no such destination; load the page again")
	// ErrTooMany bounds the number of addresses that one shop can make the workers call.
	ErrTooMany = fault.New(fault.Conflict, "too_many_destinations", "a shop has at most 10 destinations; remove one first")
)

// MaxDestinations is how many a shop may have.
const MaxDestinations = 10

// Store keeps alerts, destinations and deliveries.
type Store interface {
	// Conditions returns the conditions that the database knows.
	Conditions(ctx context.Context) ([]Condition, error)
	// Reconcile makes alerts agree with the conditions of the kinds in looked. It
	// raises an alert for each new condition, with a delivery for each destination
	// that wants it, and ends alerts whose condition is over. A condition that grew
	// or came again gets another message if quiet has passed since the last. Of
	// several concurrent callers one does the work.
	Reconcile(ctx context.Context, looked []Kind, conditions []Condition, quiet, deadline time.Duration) error
	// Take leases due deliveries to one caller, and drops deliveries whose deadline
	// has passed.
	Take(ctx context.Context, limit int, lease time.Duration) ([]Delivery, error)
	// Record stores the result of an attempt; a delivery that waits is due after wait.
	Record(ctx context.Context, d Delivery, o Outcome, wait time.Duration) error
	// Alerts lists the alerts that the member may see and has not muted, the newest
	// first.
	Alerts(ctx context.Context, m staff.Member, before int64, limit int) ([]Alert, error)
	// Unread counts the member's alerts that were not read, at most limit.
	Unread(ctx context.Context, m staff.Member, limit int) (int, error)
	// MarkRead marks the member's alerts up to an id as read.
	MarkRead(ctx context.Context, member, upTo int64) error
	// Muted returns the kinds that the member does not want to see, SetMuted stores them.
	Muted(ctx context.Context, member int64) ([]Kind, error)
	SetMuted(ctx context.Context, member int64, kinds []Kind) error
	// Destinations lists the destinations of the shops (none = of all), by name.
	Destinations(ctx context.Context, shops []int64) ([]Destination, error)
	// AddDestination stores d with its audit entry, or returns [ErrTooMany].
	AddDestination(ctx context.Context, d Destination, most int, e staff.Entry) (Destination, error)
	// Destination returns [ErrNoDestination] for a destination that was removed.
	Destination(ctx context.Context, id int64) (Destination, error)
	// RemoveDestination removes a destination and its address; notifications that
	// wait for it are dropped.
	RemoveDestination(ctx context.Context, id int64, e staff.Entry) error
	// Try raises a test for one destination.
	Try(ctx context.Context, d Destination, deadline time.Duration, e staff.Entry) error
	// Deliveries lists the last ones of the shops (none = of all).
	Deliveries(ctx context.Context, shops []int64, limit int) ([]Delivery, error)
}

// Service holds the use cases of staff. Store is required.
type Service struct{ Store Store }

// maxUnread is the largest number that the bell shows.
const maxUnread = 100

// Unread returns how many alerts the member has not read, at most 100.
func (s *Service) Unread(ctx context.Context, m staff.Member) (int, error) {
	return s.Store.Unread(ctx, m, maxUnread)
}

// noticed is how many of the latest alerts [Service.Lasting] looks at.
const noticed = 50

// Lasting returns the member's unread alerts about conditions that last, the newest first, and
// leaves them unread.
func (s *Service) Lasting(ctx context.Context, m staff.Member) ([]Alert, error) {
	list, err := s.Store.Alerts(ctx, m, 0, noticed)
	return slices.DeleteFunc(list, func(a Alert) bool { return a.Read || a.EndedAt != nil }), err
}

// Look lists the member's alerts, the newest first, and marks them as read.
func (s *Service) Look(ctx context.Context, m staff.Member, before int64, limit int) ([]Alert, error) {
	list, err := s.Store.Alerts(ctx, m, before, limit)
	if err != nil || len(list) == 0 || list[0].Read {
		return list, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return list, s.Store.MarkRead(ctx, m.ID, list[0].ID)
}

// Muted returns the kinds that the member does not want to see.
func (s *Service) Muted(ctx context.Context, m staff.Member) ([]Kind, error) {
	return s.Store.Muted(ctx, m.ID)
}

// Choose stores which kinds the member wants to see; unknown ones are left out.
func (s *Service) Choose(ctx context.Context, m staff.Member, wanted []Kind) error {
	muted := slices.DeleteFunc(Kinds(), func(k Kind) bool { return slices.Contains(wanted, k) })
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SetMuted(ctx, m.ID, muted)
}

// manages returns nil if the actor may change the destinations of the shop; shop 0
// means destinations of all shops.
func manages(by staff.Actor, shop int64) error {
	if shop == 0 {
		return by.MayEverywhere(staff.ManageTemplates)
	}
	return by.May(staff.ManageTemplates, shop)
}

// Destinations lists the destinations that the actor may see, and their last deliveries.
func (s *Service) Destinations(ctx context.Context, by staff.Actor, log int) ([]Destination, []Delivery, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, nil, err
	}
	list, err := s.Store.Destinations(ctx, by.Shops)
	if err != nil {
		return nil, nil, err
	}
	deliveries, err := s.Store.Deliveries(ctx, by.Shops, log)
	return list, deliveries, err
}

// Add stores a destination, or returns a [fault.Fields] that names every broken
// rule, [ErrTooMany] or [staff.ErrForbidden].
func (s *Service) Add(ctx context.Context, by staff.Actor, d Destination) (Destination, error) {
	if err := manages(by, d.Shop); err != nil {
		return d, err
	}
	d.Name, d.URL, d.Secret = strings.TrimSpace(d.Name), strings.TrimSpace(d.URL), strings.TrimSpace(d.Secret)
	if err := d.check(); err != nil {
		return d, err
	}
	d.CreatedBy = by.Label + " " + by.Name
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.AddDestination(ctx, d, MaxDestinations, entry(by, "destination.add", d))
}

// Remove removes a destination.
func (s *Service) Remove(ctx context.Context, by staff.Actor, id int64) error {
	d, err := s.own(ctx, by, id)
	if err != nil {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.RemoveDestination(ctx, id, entry(by, "destination.remove", d))
}

// Try sends a test to a destination.
func (s *Service) Try(ctx context.Context, by staff.Actor, id int64) (Destination, error) {
	d, err := s.own(ctx, by, id)
	if err != nil {
		return d, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return d, s.Store.Try(ctx, d, testDeadline, entry(by, "destination.test", d))
}

// testDeadline is how long a test is tried: its member waits for it.
const testDeadline = 2 * time.Minute

func (s *Service) own(ctx context.Context, by staff.Actor, id int64) (Destination, error) {
	d, err := s.Store.Destination(ctx, id)
	if err != nil {
		return d, err
	}
	if by.May(staff.View, d.Shop) != nil || d.Shop == 0 && len(by.Shops) > 0 {
		return d, ErrNoDestination // it is another shop's
	}
	return d, manages(by, d.Shop)
}

// entry is the audit entry of a change; an address is not part of it.
func entry(by staff.Actor, action string, d Destination) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "destination", ObjectID: strconv.FormatInt(d.ID, 10), ShopNumber: d.Shop,
		After: map[string]any{"name": d.Name, "form": d.Form, "at": d.Hint(), "kinds": d.Kinds, "signed": d.Secret != ""}}
}

const (
	maxDestinationName = 60
	maxAddress         = 500
	maxSecret          = 100
)

func (d Destination) check() error {
	e := &fault.Fields{}
	switch {
	case d.Name == "":
		e.Add("name", "rule.required", "is required")
	case utf8.RuneCountInString(d.Name) > maxDestinationName:
		e.Add("name", "rule.too_long", "must have at most %d characters", maxDestinationName)
	case !utf8.ValidString(d.Name) || strings.ContainsAny(d.Name, "\r\n\t\x00") || strings.ContainsFunc(d.Name, wording.TurnsAround):
		e.Add("name", "rule.text", "contains characters that cannot be stored")
	}
	if !slices.Contains(Forms(), d.Form) {
		e.Add("form", "rule.kind", "must be one of the choices")
	}
	u, err := url.Parse(d.URL)
	if d.Form == Email {
		if len(d.URL) > maxAddress || !user.ValidEmail(d.URL) {
			e.Add("url", "rule.email", "must be an e-mail address")
		}
	} else if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(d.URL) > maxAddress || !utf8.ValidString(d.URL) {
		e.Add("url", "rule.claim_url", "must be an http or https address of at most %d characters", maxAddress)
	}
	if len(d.Secret) > maxSecret || !utf8.ValidString(d.Secret) {
		e.Add("secret", "rule.too_long", "must have at most %d characters", maxSecret)
	}
	if d.Language != "en" && d.Language != "zh-CN" {
		e.Add("language", "rule.kind", "must be one of the choices")
	}
	if len(d.Kinds) == 0 {
		e.Add("kinds", "rule.required", "is required")
	}
	for _, k := range d.Kinds {
		if !slices.Contains(Kinds(), k) {
			e.Add("kinds", "rule.kind", "must be one of the choices")
			break
		}
	}
	return e.Err()
}
