package template

import (
	"context"
	"errors"
	"strconv"
	"time"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
)

// A Change is everything one save stores in one transaction.
type Change struct {
	// Template is the new value; Template.Version is the version it is based on.
	Template Template
	// Schedule is the effect on the reminder slots.
	Schedule Schedule
	Event    string // name of the event to announce
	Entry    staff.Entry
	// RequestKey makes a creation repeatable: a second creation with the same key returns the
	// template of the first. Empty = not repeatable.
	RequestKey string
}

// Schedule is the effect of a change on the reminder slots.
type Schedule int

// The effects on the slots.
const (
	KeepSlots   Schedule = iota
	OpenSlots            // published: twelve slots; those already past stay silent
	MoveSlots            // the opening moved: waiting slots are replaced, running ones stop
	CloseSlots           // ended: waiting slots are removed, running ones continue until the opening
	ReopenSlots          // reopened: slots that ended wait again
	CancelSlots          // called off: waiting slots are removed, running ones stop
)

// A Query selects templates, soonest opening first or last.
type Query struct {
	Search     string
	IDs        []int64 // empty = all
	States     []State // empty = all
	Shops      []int64 // empty = all
	From, To   *time.Time
	Descending bool
	After      Cursor
	Limit      int
}

// A Cursor is the last row of the page before; the zero Cursor is the start.
type Cursor struct {
	OpensAt time.Time
	ID      int64
}

// Store keeps templates.
type Store interface {
	DraftStore
	// Template returns [ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (Template, error)
	Templates(ctx context.Context, q Query) ([]Template, error)
	// Insert creates a draft and returns it with its id.
	Insert(ctx context.Context, c Change) (Template, error)
	// Save stores the change if the version is still current, otherwise it returns
	// [fault.ErrStale].
	Save(ctx context.Context, c Change) (Template, error)
	// DueToClose returns published templates whose end has passed; see
	// [Spec.EndsAt].
	DueToClose(ctx context.Context, limit int) ([]Template, error)
}

// Service holds the use cases of staff around templates.
type Service struct {
	Store Store
	Now   func() time.Time
	// NoPasses says that no passes can be issued, so that no drop can be protected.
	NoPasses bool
	// Texts has the texts of drops and shops; nil = all drops have the built-in texts.
	Texts message.Source
	// Ready, if set, refuses to publish a drop whose doors do not treat its test persons as expected.
	Ready func(ctx context.Context, t Template) error
	// Flight, if set, refuses to publish a drop whose flight check is red without a reason.
	Flight func(ctx context.Context, t Template, reason string) error
	// Draws refuses a source of randomness that this installation does not have; nil = it has no draws.
	Draws func(Opening) error
}

// Create stores a draft. It returns a [fault.Fields] that names every broken rule, or
// [staff.ErrForbidden].
func (s *Service) Create(ctx context.Context, by staff.Actor, spec Spec, requestKey string) (Template, error) {
	if err := by.May(staff.ManageTemplates, spec.ShopNumber); err != nil {
		return Template{}, err
	}
	if err := spec.Check(); err != nil {
		return Template{}, err
	}
	if err := spec.CheckDraftOpening(s.Now()); err != nil {
		return Template{}, err
	}
	if err := s.checkProtection(Unprotected, spec); err != nil {
		return Template{}, err
	}
	spec = spec.Own()
	t := Template{Spec: spec, Stored: Draft, Version: 1}
	return s.Store.Insert(ctx, Change{
		Template: t, Event: event.TemplateChanged, RequestKey: requestKey,
		Entry: entry(by, "template.create", t, "", nil, spec),
	})
}

// checkProtection refuses a protection that was not there before if no passes can be issued.
func (s *Service) checkProtection(before Protection, spec Spec) error {
	e := &fault.Fields{}
	if s.NoPasses && spec.Protected() && spec.Protection != before {
		e.Add("protection", "rule.no_passes", "needs passes, for which this server has no key; set PASS_SECRET")
	}
	return e.Err()
}

// Template returns one template as staff may see it, or [ErrNotFound].
func (s *Service) Template(ctx context.Context, by staff.Actor, id int64) (Template, error) {
	t, err := s.Store.Template(ctx, id)
	if err != nil {
		return t, err
	}
	return t, by.May(staff.View, t.ShopNumber)
}

// Templates lists the templates that the actor may see.
func (s *Service) Templates(ctx context.Context, by staff.Actor, q Query) ([]Template, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	if len(by.Shops) > 0 {
		q.Shops = intersect(by.Shops, q.Shops)
		if len(q.Shops) == 0 {
			return nil, nil
		}
	}
	return s.Store.Templates(ctx, q)
}

// An Edition is a new spec for the version that it is based on.
type Edition struct {
	Version int64
	Spec    Spec
	// Reason is the reason in the audit log; it is required for a moved opening.
	Reason string
	// RemindOnce sets [Template.RemindOnce] if the spec moves a published opening.
	RemindOnce bool
}

// Edit replaces the spec of a version; [Template.Edit] says which fields may change in which
// state. A spec without changes makes no new version. Edit returns [fault.ErrStale] if the
// version is no longer current.
func (s *Service) Edit(ctx context.Context, by staff.Actor, id int64, e Edition) (Template, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.Version != e.Version {
		return old, fault.ErrStale
	}
	if err := by.May(staff.ManageTemplates, e.Spec.ShopNumber); err != nil {
		return old, err
	}
	if err := s.checkProtection(old.Protection, e.Spec); err != nil {
		return old, err
	}
	edited, err := old.Edit(e.Spec, s.Now())
	if err != nil {
		return old, err
	}
	if edited.same(old.Own()) {
		return old, nil // an unchanged template causes no reload
	}
	c := Change{Template: edited, Event: event.TemplateChanged,
		Entry: entry(by, "template.edit", old, e.Reason, old.Spec, edited.Spec)}
	if old.Stored != Draft && !edited.OpensAt.Equal(old.OpensAt) {
		c.Schedule, c.Event, c.Entry.Action = MoveSlots, event.TemplateMoved, "template.move"
		c.Template.RemindOnce = e.RemindOnce
	}
	return s.Store.Save(ctx, c)
}

// A Transition is one step in a template's life that staff can take.
type Transition string

// The transitions.
const (
	Publishing Transition = "publish"
	Pausing    Transition = "pause"
	Resuming   Transition = "resume"
	Closing    Transition = "close"
	Cancelling Transition = "cancel"
)

// Do takes a step of template id for the given reason. It returns [ErrTransition] if the state
// does not allow the step. A version other than 0 must be current, otherwise [fault.ErrStale] is
// returned. With version 0 a concurrent change does not prevent the step.
func (s *Service) Do(ctx context.Context, by staff.Actor, id, version int64, tr Transition, reason string) (Template, error) {
	for try := 1; ; try++ {
		t, err := s.doOnce(ctx, by, id, version, tr, reason)
		if version != 0 || try == doTries || !errors.Is(err, fault.ErrStale) {
			return t, err
		}
	}
}

// doTries is how often a step is tried again after a concurrent change was stored.
const doTries = 10

func (s *Service) doOnce(ctx context.Context, by staff.Actor, id, version int64, tr Transition, reason string) (Template, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if version != 0 && old.Version != version {
		return old, fault.ErrStale
	}
	next, err := old.step(tr, s.Now())
	if err != nil {
		return old, err
	}
	if tr == Publishing {
		if err := s.checkDraw(old.Opening); err != nil {
			return old, err
		}
		if err := s.CheckLinks(ctx, old); err != nil {
			return old, err
		}
		if s.Ready != nil {
			if err := s.Ready(ctx, old); err != nil {
				return old, err
			}
		}
		if s.Flight != nil {
			if err := s.Flight(ctx, old, reason); err != nil {
				return old, err
			}
		}
	}
	return s.Store.Save(ctx, changeOf(by, tr, old, next, reason))
}

// CheckLinks returns a [fault.Fields] if a message about the drop would show a link that leads
// nowhere: a text contains {{link}}, and the drop has no claim address.
func (s *Service) CheckLinks(ctx context.Context, t Template) error {
	if s.Texts == nil || message.Followed(t.ClaimAddress()) {
		return nil
	}
	book, err := s.Texts.Book(ctx, message.Place{Shop: t.ShopNumber, Template: t.ID}, message.Newest)
	if err != nil {
		return err
	}
	e := &fault.Fields{}
	if gaps := book.Gaps(); len(gaps) > 0 {
		e.Add("claim_url", "rule.empty_reminder_link", "is empty, and the %s over %s in %s contains {{link}}: enter an address, or write [[ {{link}} ]] in the text",
			gaps[0].Kind, gaps[0].Channel, gaps[0].Language)
	}
	return e.Err()
}

// CloseEnded closes up to limit templates whose end has passed, and returns how many it closed.
// Any process may call it, any number of times.
func (s *Service) CloseEnded(ctx context.Context, limit int) (int, error) {
	due, err := s.Store.DueToClose(ctx, limit)
	if err != nil {
		return 0, err
	}
	closed := 0
	for _, old := range due {
		// The database's clock has decided that the template is due. By a slower local clock the
		// template would be recorded as closed early.
		next, ended, why := old, s.Now(), staff.ReasonClosesAt
		if ended.Before(old.EndsAt()) {
			ended = old.EndsAt()
		}
		if old.EndsAt().Before(old.ClosesAt) {
			why = staff.ReasonValidUntil
		}
		next.Stored, next.EndedAt = Closed, &ended
		_, err := s.Store.Save(ctx, changeOf(staff.System(), Closing, old, next, why))
		switch {
		case err == nil:
			closed++
		case fault.KindOf(err) != fault.Conflict:
			return closed, err
		}
	}
	return closed, nil
}

func (s *Service) load(ctx context.Context, by staff.Actor, id int64) (Template, error) {
	t, err := s.Store.Template(ctx, id)
	if err != nil {
		return t, err
	}
	return t, by.May(staff.ManageTemplates, t.ShopNumber)
}

func (t Template) step(tr Transition, now time.Time) (Template, error) {
	switch tr {
	case Publishing:
		return t.Publish(now)
	case Pausing:
		return t.Pause(now)
	case Resuming:
		return t.Resume(now)
	case Closing:
		return t.Close(now)
	case Cancelling:
		return t.Cancel(now)
	}
	return t, fault.ErrInvalid.Because("unknown transition %q", tr)
}

// Allows returns [ErrTransition] with the reason if the state of t does not allow the step at
// now. It does not check whether a draft's spec can be published.
func (t Template) Allows(tr Transition, now time.Time) error {
	if _, err := t.step(tr, now); errors.Is(err, ErrTransition) {
		return err
	}
	return nil
}

func changeOf(by staff.Actor, tr Transition, old, next Template, reason string) Change {
	c := Change{Template: next, Event: event.TemplateChanged,
		Entry: entry(by, "template."+string(tr), old, reason, old.Stored, next.Stored)}
	switch tr {
	case Publishing:
		c.Schedule, c.Event = OpenSlots, event.TemplatePublished
	case Closing:
		c.Schedule, c.Event = CloseSlots, event.TemplateClosed
	case Reopening:
		c.Schedule, c.Event = ReopenSlots, event.TemplatePublished
	case Cancelling:
		c.Schedule, c.Event = CancelSlots, event.TemplateCancelled
	}
	return c
}

func entry(by staff.Actor, action string, t Template, reason string, before, after any) staff.Entry {
	id := ""
	if t.ID != 0 {
		id = strconv.FormatInt(t.ID, 10)
	}
	return staff.Entry{Actor: by, Action: action, ObjectKind: "template", ObjectID: id,
		ShopNumber: t.ShopNumber, Reason: reason, Before: before, After: after}
}

func intersect(allowed, asked []int64) []int64 {
	if len(asked) == 0 {
		return allowed
	}
	var both []int64
	for _, a := range asked {
		for _, b := range allowed {
			if a == b {
				both = append(both, a)
			}
		}
	}
	return both
}
