// Package flight examines a drop before its opening: whether its reminders reach customers in time,
// whether its texts and links work, and whether money and processes suffice. A check only reads.
package flight

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Level is how serious a finding is.
type Level string

// The levels. Red endangers the evening, amber is worth a look before it.
const (
	Green Level = "green"
	Amber Level = "amber"
	Red   Level = "red"
)

// Point is a subject of the check.
type Point string

// The points in the order in which they are shown.
const (
	Users      Point = "users"
	Providers  Point = "providers"
	Texts      Point = "texts"
	Doors      Point = "doors"
	Links      Point = "links"
	Budget     Point = "budget"
	Neighbours Point = "neighbours"
	Capacity   Point = "capacity"
)

// Points returns every point.
func Points() []Point {
	return []Point{Users, Providers, Texts, Doors, Links, Budget, Neighbours, Capacity}
}

// A Finding is the result of one part of a check. Found and Do are English sentences, which the
// console recognises and translates; see said.flight.* of the catalogues.
type Finding struct {
	Point Point  `json:"point"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	// Do is what staff should do; empty if Level is Green.
	Do string `json:"do,omitempty"`
}

// needsReason reports whether a drop with the finding is published only with a reason. Processes may still be started after
// the publication.
func (f Finding) needsReason() bool { return f.Level == Red && f.Point != Capacity }

// A Lane is the reminders of one slot on one channel.
type Lane struct {
	Slot    template.Slot
	Channel delivery.Channel
	DueAt   time.Time
	// Booked are the reserved reminders. Messages are those that will be sent; HeldOut are for users who
	// are held out, and NoContact for users without a contact or who have opted out. Missed of the messages would not
	// be sent before the opening. FinishAt is when the last message is sent. All but Booked are estimates.
	Booked, Messages, HeldOut, NoContact, Missed int64
	FinishAt                                     time.Time
}

// A Check is the result of all points.
type Check struct {
	TemplateID int64
	// Version is the version of the template that was checked.
	Version  int64
	At       time.Time
	Findings []Finding
	// Lanes are empty in a stored check.
	Lanes []Lane
}

// Count returns how many findings have the level.
func (c Check) Count(l Level) (n int) {
	for _, f := range c.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

// Level returns the most serious level of the findings.
func (c Check) Level() Level {
	for _, l := range []Level{Red, Amber} {
		if c.Count(l) > 0 {
			return l
		}
	}
	return Green
}

// ErrRed is the refusal to publish a drop with red findings without a reason.
var ErrRed = fault.New(fault.Conflict, "flight_red", "the flight check of the drop has red points; correct them, or publish with a reason")

// A Link is an address in messages about the drop, and how it answered. Status is the HTTP status, 0 = there was
// no answer.
type Link struct {
	Address string
	Status  int
}

// Store keeps the results of checks and reads what lies around a drop.
type Store interface {
	// Take returns a drop that is to be checked, and hides it from other callers for the lease. A
	// drop that has not opened is checked after each change, a day and an hour before its first opening, and
	// again while it is red. It returns 0 if there is none.
	Take(ctx context.Context, lease time.Duration) (int64, error)
	// Keep stores a check, unless that of a newer version is stored.
	Keep(ctx context.Context, c Check) error
	// Kept returns the last stored check; false if there is none.
	Kept(ctx context.Context, templateID int64) (Check, bool, error)
	// Around returns how many other published drops open within the distance of the drop's opening, and
	// about how many customers have reserved reminders of them.
	Around(ctx context.Context, t template.Template, distance time.Duration) (drops, reserved int64, err error)
}

// Budgets reads budgets.
type Budgets interface {
	// Budget returns [budget.ErrNotFound] if there is none.
	Budget(ctx context.Context, k budget.Key) (budget.Budget, error)
}

// A Caller calls links.
type Caller interface {
	// Call returns the HTTP status of the address, 0 if there was no answer.
	Call(ctx context.Context, address string) int
}

// Service checks drops. All fields but Links are required.
type Service struct {
	Store     Store
	Templates template.Store
	// Doors judges the test persons of doors.
	Doors      *door.Service
	Forecaster *forecast.Forecaster
	Capacities forecast.CapacityStore
	Texts      message.Source
	Budgets    Budgets
	// Channels returns the channels with a sender.
	Channels func(ctx context.Context) (delivery.ChannelSet, error)
	// Links calls the links of messages; nil = links are not called.
	Links Caller
	// Processes returns how many processes of web run.
	Processes func(ctx context.Context) (int, error)
	Now       func() time.Time
}

// Check checks the drop for a member of staff, or returns [template.ErrNotFound] or [staff.ErrForbidden].
func (s *Service) Check(ctx context.Context, by staff.Actor, id int64) (Check, error) {
	t, err := s.Templates.Template(ctx, id)
	if err != nil {
		return Check{}, err
	}
	if err := by.May(staff.View, t.ShopNumber); err != nil {
		return Check{}, err
	}
	return s.check(ctx, t, true)
}

// Kept returns the stored check of the drop, whatever version it is of; false if there is none.
func (s *Service) Kept(ctx context.Context, id int64) (Check, bool, error) {
	return s.Store.Kept(ctx, id)
}

// Reds returns the red findings for which a publication needs a reason. No link is called: findings about links are from the
// stored check of the same version.
func (s *Service) Reds(ctx context.Context, t template.Template) (list []Finding, err error) {
	c, err := s.check(ctx, t, false)
	if err != nil {
		return nil, err
	}
	kept, ok, err := s.Store.Kept(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	if ok && kept.Version == t.Version {
		for _, f := range kept.Findings {
			if f.Point == Links {
				c.Findings = append(c.Findings, f)
			}
		}
	}
	for _, f := range c.Findings {
		if f.needsReason() {
			list = append(list, f)
		}
	}
	return list, nil
}

// Publishable returns [ErrRed] if the drop has red findings and there is no reason.
func (s *Service) Publishable(ctx context.Context, t template.Template, reason string) error {
	if reason != "" {
		return nil
	}
	reds, err := s.Reds(ctx, t)
	if err != nil || len(reds) == 0 {
		return err
	}
	return ErrRed.Because("red points of the flight check: %d; correct them, or publish with a reason", len(reds)).Told("fault.flight_red")
}

const (
	// lease is how long a check may take.
	lease = time.Minute
	// checksAtOnce bounds the drops that one call of Sweep checks.
	checksAtOnce = 20
)

// Sweep checks the drops that are to be checked and stores the results. Any process may call it, any
// number of times.
func (s *Service) Sweep(ctx context.Context) error {
	for range checksAtOnce {
		id, err := s.Store.Take(ctx, lease)
		if err != nil || id == 0 {
			return err
		}
		t, err := s.Templates.Template(ctx, id)
		if errors.Is(err, template.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		c, err := s.check(ctx, t, true)
		if err != nil {
			return err
		}
		if err := s.Store.Keep(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// check reads what is needed and judges it.
func (s *Service) check(ctx context.Context, t template.Template, calling bool) (c Check, err error) {
	f := facts{t: t, now: s.Now()}
	if f.channels, err = s.Channels(ctx); err != nil {
		return c, err
	}
	steps := []func(context.Context, *facts) error{s.readChannels, s.readTexts, s.readDoors, s.readBudgets, s.readAround}
	if calling && s.Links != nil {
		steps = append(steps, s.callLinks)
	}
	for _, step := range steps {
		if err := step(ctx, &f); err != nil {
			return c, err
		}
	}
	return Check{TemplateID: t.ID, Version: t.Version, At: f.now, Findings: f.judge(), Lanes: f.lanes()}, nil
}
