package reminder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Change adds reminders to a user's reservation or removes them.
type Change struct {
	TemplateID int64
	UserID     user.ID
	Bits       Bitmap // empty in a cancellation = all that can still be cancelled
	// Possible changes a cancellation: it removes the reminders of Bits that are reserved and can
	// still be cancelled. Without Possible a cancellation removes all of Bits or nothing.
	Possible bool
	// Once, if set, is the idempotency key of a reservation. The key is stored with the
	// reservation, or with its refusal, in one transaction. If the key is known already, nothing
	// is decided or changed.
	Once *Once
	// Door is the place of the user's door; 0 = the drop has no doors, or the user comes through
	// none. The slots of this door decide what is open; with 0 all slots of the drop do.
	Door int
}

// Store keeps reservations.
type Store interface {
	// Reserve adds all of c.Bits or nothing, durably. The statement that stores the reminders
	// also decides, by the database's clock, whether they are in time.
	Reserve(ctx context.Context, c Change) (Decision, error)
	// Cancel removes all of c.Bits or nothing, and decides like Reserve. With c.Possible it
	// removes the reminders of c.Bits that can still be cancelled.
	Cancel(ctx context.Context, c Change) (Decision, error)
	// SetConsent stores whether the user has consented to the message of the slot's push
	// reminder, and returns the reservation; see [Service.SetConsent].
	SetConsent(ctx context.Context, templateID int64, by user.ID, s template.Slot, given bool) (Reservation, error)
	// Reservation returns [ErrNotReserved] if there is none.
	Reservation(ctx context.Context, templateID int64, by user.ID) (Reservation, error)
	// Reservations lists a user's reservations by descending template id. It begins below the
	// template id before; 0 = with the newest.
	Reservations(ctx context.Context, by user.ID, before int64, limit int) ([]Reservation, error)
	// Delivered returns the outcomes of the user's fired reminders of these templates.
	Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]Delivered, error)
}

// Templates looks templates up, through a cache; see [template.ErrNotFound].
type Templates interface {
	Template(ctx context.Context, id int64) (template.Template, error)
}

// Service holds the use cases of end users around reminders.
type Service struct {
	Store     Store
	Templates Templates
	Channels  delivery.Available
	// Doors knows the doors of users; nil = no drop has doors.
	Doors Doors
	// Erased reports whether a user was erased; nil = none was.
	Erased func(user.ID) bool
	Now    func() time.Time
}

// Doors know the doors through which users come.
type Doors interface {
	// Door returns the place of the user's door, from 1. It returns a [fault.Conflict] if the user
	// comes through none.
	Door(ctx context.Context, t *template.Template, by user.ID) (int, error)
}

// door returns the place of the user's door of a drop that has doors. Its error is that of [Doors].
// It takes a copy, which is put on the heap: reservations of drops without doors do not call it.
func (s *Service) door(ctx context.Context, t template.Template, by user.ID) (int, error) {
	if s.Doors == nil {
		return 0, nil
	}
	return s.Doors.Door(ctx, &t, by)
}

// doorOrNone is door for users with a reservation, who may have lost their door: 0 = none.
func (s *Service) doorOrNone(ctx context.Context, t template.Template, by user.ID) (int, error) {
	if len(t.Doors) == 0 {
		return 0, nil
	}
	place, err := s.door(ctx, t, by)
	if err != nil && fault.KindOf(err) == fault.Conflict {
		return 0, nil
	}
	return place, err
}

// Drop returns a template as users may see it, at most a second out of date. It returns
// [template.ErrNotFound] for drafts too, which only staff may see.
func (s *Service) Drop(ctx context.Context, id int64) (template.Template, error) {
	t, err := s.Templates.Template(ctx, id)
	if err == nil && t.Stored == template.Draft {
		err = template.ErrNotFound
	}
	if err != nil {
		return template.Template{}, err
	}
	return t, nil
}

// A Request is a request for reminders of one template.
type Request struct {
	TemplateID int64
	UserID     user.ID
	ShopNumber int64
	Reminders  []Reminder
}

// Reserve adds the reminders, all or none, and reports whether the reservation is new. When it
// returns nil the reservation is committed. It returns [template.ErrNotFound],
// [template.ErrNotOpen], [template.ErrOpened], [delivery.ErrChannelUnavailable], a
// [fault.Fields], or a [Refusal] with every reminder that is already due or already reserved. It
// returns [user.ErrErased] for a user who was erased.
func (s *Service) Reserve(ctx context.Context, r Request) (View, bool, error) {
	known, err := s.terms(ctx, r)
	if err != nil {
		return View{}, false, err
	}
	d, err := s.store(ctx, Change{TemplateID: r.TemplateID, UserID: r.UserID, Bits: BitmapOf(r.Reminders...), Door: known.door})
	if err != nil {
		return View{}, false, err
	}
	a := known.answer(r, d)
	return a.View, a.Created, a.Refused
}

// terms checks the request before it reaches the store.
func (s *Service) terms(ctx context.Context, r Request) (terms, error) {
	if s.Erased != nil && s.Erased(r.UserID) {
		return terms{}, user.ErrErased
	}
	t, err := s.Templates.Template(ctx, r.TemplateID)
	if err != nil {
		return terms{}, err
	}
	now := s.Now()
	known := terms{name: t.Name, opensAt: t.OpensAt, at: now.Truncate(time.Microsecond)}
	if err = s.check(now, t, r); err != nil || len(t.Doors) == 0 {
		return known, err
	}
	if known.door, err = s.door(ctx, t, r.UserID); err != nil {
		return known, err
	}
	if known.opensAt = t.OpensFor(known.door); !now.Before(known.opensAt) {
		return known, template.ErrOpened
	}
	return known, nil
}

// store continues when the caller disconnects.
func (s *Service) store(ctx context.Context, c Change) (Decision, error) {
	storing, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Reserve(storing, c)
}

// CheckNamed adds an error to e if the list is empty or names a reminder twice.
func CheckNamed(e *fault.Fields, list []Reminder) {
	if len(list) == 0 {
		e.Add("reminders", "rule.required", "name at least one reminder")
	}
	for i, rem := range list {
		if slices.Contains(list[:i], rem) {
			e.Add(fmt.Sprintf("reminders[%d]", i), "rule.repeated", "the same reminder is named twice")
		}
	}
}

func (s *Service) check(now time.Time, t template.Template, r Request) error {
	if err := t.AcceptsReservations(now); err != nil {
		return err
	}
	e := &fault.Fields{}
	if t.ShopNumber != r.ShopNumber {
		e.Add("shop_number", "rule.other_shop", "is not the shop of this template")
	}
	CheckNamed(e, r.Reminders)
	if err := e.Err(); err != nil {
		return err
	}
	var missing Bitmap
	for _, rem := range r.Reminders {
		if !s.Channels.Has(rem.Channel) {
			missing = missing.Union(BitmapOf(rem))
		}
	}
	return refuse(delivery.ErrChannelUnavailable.Because("this channel has no configured sender"), missing)
}

// Cancel removes the reminders, all or none; if rs is empty, it removes all reminders that are
// not due yet. It returns the reservation that remains. It works for templates in every state. It
// returns [ErrNotReserved] or [ErrAlreadyDue], as a [Refusal] if particular reminders are the
// cause.
func (s *Service) Cancel(ctx context.Context, by user.ID, templateID int64, rs []Reminder) (View, error) {
	t, err := s.Templates.Template(ctx, templateID)
	if err != nil {
		return View{}, err
	}
	return s.remove(ctx, t, Change{TemplateID: templateID, UserID: by, Bits: BitmapOf(rs...)})
}

// CancelChannel removes the reminders of the channel that are not due yet. It returns the
// reservation that remains, or the errors of [Service.Cancel].
func (s *Service) CancelChannel(ctx context.Context, by user.ID, templateID int64, c delivery.Channel) (View, error) {
	t, err := s.Templates.Template(ctx, templateID)
	if err != nil {
		return View{}, err
	}
	return s.remove(ctx, t, Change{TemplateID: templateID, UserID: by, Bits: ChannelMask(c), Possible: true})
}

func (s *Service) remove(ctx context.Context, t template.Template, c Change) (View, error) {
	var err error
	if c.Door, err = s.doorOrNone(ctx, t, c.UserID); err != nil {
		return View{}, err
	}
	storing, cancel := detach.Context(ctx)
	defer cancel()
	v, err := s.Store.Cancel(storing, c)
	if err != nil {
		return View{}, err
	}
	if !v.Applied && c.Possible {
		return View{}, v.possibleError(c.Bits)
	}
	if !v.Applied {
		return View{}, v.cancelError(c.Bits)
	}
	templateID, by := c.TemplateID, c.UserID
	left := Reservation{TemplateID: templateID, UserID: by, Slots: v.After}
	if v.After.IsEmpty() {
		return compose(s.Now(), t, c.Door, left, nil), nil
	}
	return s.view(ctx, t, left)
}

// Reservation returns the user's reservation, or [ErrNotReserved], or
// [template.ErrNotFound].
func (s *Service) Reservation(ctx context.Context, by user.ID, templateID int64) (View, error) {
	t, err := s.Templates.Template(ctx, templateID)
	if err != nil {
		return View{}, err
	}
	r, err := s.Store.Reservation(ctx, templateID, by)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, t, r)
}

// Reservations lists the user's reservations, newest template first. before is the last template
// id of the previous page; 0 for the first page.
func (s *Service) Reservations(ctx context.Context, by user.ID, before int64, limit int) ([]View, error) {
	rs, err := s.Store.Reservations(ctx, by, before, limit)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	ids := make([]int64, len(rs))
	for i, r := range rs {
		ids[i] = r.TemplateID
	}
	done, err := s.Store.Delivered(ctx, by, ids)
	if err != nil {
		return nil, err
	}
	views := make([]View, 0, len(rs))
	for _, r := range rs {
		t, err := s.Templates.Template(ctx, r.TemplateID)
		if err != nil {
			return nil, err
		}
		door, err := s.doorOrNone(ctx, t, by)
		if err != nil {
			return nil, err
		}
		views = append(views, compose(s.Now(), t, door, r, done))
	}
	return views, nil
}

func (s *Service) view(ctx context.Context, t template.Template, r Reservation) (View, error) {
	done, err := s.Store.Delivered(ctx, r.UserID, []int64{t.ID})
	if err != nil {
		return View{}, err
	}
	door, err := s.doorOrNone(ctx, t, r.UserID)
	return compose(s.Now(), t, door, r, done), err
}

// compose builds the view at now of a reservation of a user who comes through the door with this place,
// 0 = none. A reminder without an outcome for the current
// opening is waiting, or due once its instant has passed. It is cancelled if the drop ended
// before its instant.
func compose(now time.Time, t template.Template, door int, r Reservation, done []Delivered) View {
	t.OpensAt = t.OpensFor(door)
	v := View{Reservation: r, ShopNumber: t.ShopNumber, TemplateName: t.Name, OpensAt: t.OpensAt, Items: make([]Item, 0, r.Slots.Len())}
	for _, rem := range r.Slots.Reminders() {
		it := Item{Reminder: rem, DueAt: rem.DueAt(t.OpensAt), State: string(Waiting)}
		switch {
		case t.EndedAt != nil && t.EndedAt.Before(it.DueAt):
			it.State = string(SlotEnded)
		case !now.Before(it.DueAt):
			it.State = "due"
		}
		if t.RemindOnce && remindedBefore(t, rem, done) {
			it.State = string(delivery.Sent)
		}
		round := int64(0) // of several, the last one says what became of it
		for _, d := range done {
			if d.TemplateID == t.ID && d.Slot == rem.Slot && d.Channel == rem.Channel && d.OpensAt.Equal(t.OpensAt) && d.SlotID >= round {
				it.State, it.Reason, round = string(d.Outcome), d.Reason, d.SlotID
			}
		}
		if it.State == string(delivery.Recovered) {
			it.State = string(delivery.Sent)
		}
		v.Items = append(v.Items, it)
	}
	return v
}

// remindedBefore reports whether the reminder was sent for another opening of t.
func remindedBefore(t template.Template, rem Reminder, done []Delivered) bool {
	return slices.ContainsFunc(done, func(d Delivered) bool {
		return d.Kind == delivery.KindReminder && d.TemplateID == t.ID && d.Slot == rem.Slot && d.Channel == rem.Channel &&
			!d.OpensAt.Equal(t.OpensAt) && (d.Outcome == delivery.Sent || d.Outcome == delivery.Recovered)
	})
}
