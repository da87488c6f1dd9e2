package reminder

import (
	"context"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// AnnouncementState is where an announcement is between waiting and finished.
type AnnouncementState string

// The states of an announcement.
const (
	AnnouncementWaiting  AnnouncementState = "waiting"
	AnnouncementCutting  AnnouncementState = "cutting"
	AnnouncementSending  AnnouncementState = "sending"
	AnnouncementFinished AnnouncementState = "finished"
)

// An Announcement is one message to users who were told, or expect, something that is no longer
// true: a [delivery.KindCorrection] after a moved opening, or a [delivery.KindCancelled] after a
// cancelled drop.
type Announcement struct {
	ID         int64
	TemplateID int64
	Kind       delivery.Kind
	// OpensAt is the opening that the announcement contains.
	OpensAt time.Time
	State   AnnouncementState
	// StopReason says why the remaining users are skipped: the opening moved again, or the drop
	// was cancelled.
	StopReason     string
	CreatedBy      string
	CreatedAt      time.Time
	WorthlessAfter time.Time
	// PerPerson applies to corrections: a user who has been sent this many earlier corrections of
	// the template gets no further one.
	PerPerson  int
	CutAt      *time.Time
	FinishedAt *time.Time
}

// AnnouncementStatus is an announcement with the outcomes of its recipients.
type AnnouncementStatus struct {
	Announcement
	Channels [delivery.Channels]delivery.Counts
}

// Audience is the number of users that an announcement has per channel. A user counts once on
// each channel, however many reminders the user had there.
type Audience [delivery.Channels]int64

// Messages returns the sum over the channels.
func (a Audience) Messages() int64 {
	var sum int64
	for _, n := range a {
		sum += n
	}
	return sum
}

// A Reach is the users an announcement would be sent to.
type Reach struct {
	Audience
	// Users is how many users the audience is, on whatever number of channels.
	Users int64
	// Again is the number of these users who have been sent a correction of the template before.
	Again int64
	// LeftOut is the number of users who are left out because they have been sent
	// [Announcement.PerPerson] corrections already.
	LeftOut int64
}

// MaxCorrections is the most corrections of one drop that a user is sent, however often the
// opening moves.
const MaxCorrections = 3

// An Order is the announcement that staff request.
type Order struct {
	Kind delivery.Kind
	// NobodyAgain leaves out users who have been sent a correction of the template before.
	NobodyAgain bool
}

// noticeLife is how long a notice of cancellation is still worth sending.
const noticeLife = 24 * time.Hour

// announcementFor returns the announcement that o requests for t at now. It returns
// [template.ErrTransition] if the state of t does not fit, or a [fault.Fields] for an unknown
// kind.
func announcementFor(t template.Template, o Order, now time.Time) (Announcement, error) {
	a := Announcement{TemplateID: t.ID, Kind: o.Kind, OpensAt: t.OpensAt, State: AnnouncementWaiting, PerPerson: MaxCorrections}
	if o.NobodyAgain {
		a.PerPerson = 1
	}
	switch o.Kind {
	case delivery.KindCorrection:
		if t.Stored != template.Published && t.Stored != template.Paused || !now.Before(t.OpensAt) {
			return a, template.ErrTransition.Because("a correction tells about an opening that lies ahead; this drop is %s", t.State(now))
		}
		a.WorthlessAfter = t.OpensAt
	case delivery.KindCancelled:
		if t.Stored != template.Cancelled || t.PublishedAt == nil {
			return a, template.ErrTransition.Because("only a published drop that was cancelled has anybody to notify; this one is %s", t.State(now))
		}
		a.WorthlessAfter = now.Add(noticeLife)
	default:
		e := &fault.Fields{}
		e.Add("kind", "rule.announcement_kind", "must be correction or cancelled")
		return a, e
	}
	return a, nil
}

// AnnouncementStore keeps announcements.
type AnnouncementStore interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
	// Misled reports whether reminders were sent for an opening of the template other than
	// opensAt.
	Misled(ctx context.Context, templateID int64, opensAt time.Time) (bool, error)
	// Reach counts the users a would be sent to.
	Reach(ctx context.Context, a Announcement) (Reach, error)
	// CreateAnnouncement stores a for the workers, with e and an event. If an announcement exists
	// for the same template, kind and opening, it returns that announcement. If the template has
	// changed and a no longer fits it, it returns [fault.ErrStale].
	CreateAnnouncement(ctx context.Context, a Announcement, e staff.Entry) (Announcement, error)
	// Announcements lists the template's announcements, newest first.
	Announcements(ctx context.Context, templateID int64) ([]AnnouncementStatus, error)
}

// Announcements holds the use cases of staff around corrections and notices.
type Announcements struct {
	Store AnnouncementStore
	Now   func() time.Time
}

// Preview returns how many users Send would reach now. It has the same errors as Send.
func (s *Announcements) Preview(ctx context.Context, by staff.Actor, templateID int64, o Order) (Reach, error) {
	list, _, err := s.prepare(ctx, by, templateID, o)
	if err != nil {
		return Reach{}, err
	}
	var sum Reach
	for _, a := range list {
		one, err := s.Store.Reach(ctx, a)
		if err != nil {
			return Reach{}, err
		}
		sum.add(one)
	}
	return sum, nil
}

func (r *Reach) add(o Reach) {
	for c, n := range o.Audience {
		r.Audience[c] += n
	}
	r.Users, r.Again, r.LeftOut = r.Users+o.Users, r.Again+o.Again, r.LeftOut+o.LeftOut
}

// Send begins to send the correction or notice in the background, once per template, kind and
// opening: a repeated call returns the existing announcement. A correction of a drop whose doors
// open at several instants is an announcement for each opening ahead; Send returns the last one. It
// returns [template.ErrNotFound], [staff.ErrForbidden], or [template.ErrTransition] if there is
// nothing to correct or no cancellation to announce.
func (s *Announcements) Send(ctx context.Context, by staff.Actor, templateID int64, o Order) (sent Announcement, err error) {
	list, t, err := s.prepare(ctx, by, templateID, o)
	if err != nil {
		return Announcement{}, err
	}
	storing, cancel := detach.Context(ctx)
	defer cancel()
	for _, a := range list {
		a.CreatedBy = by.Label + " " + by.Name
		sent, err = s.Store.CreateAnnouncement(storing, a, staff.Entry{Actor: by, Action: "template.announce", ObjectKind: "template",
			ObjectID: strconv.FormatInt(templateID, 10), ShopNumber: t.ShopNumber,
			After: map[string]any{"kind": o.Kind, "opens_at": a.OpensAt, "nobody_again": o.NobodyAgain}})
		if err != nil {
			return Announcement{}, err
		}
	}
	return sent, nil
}

// List returns the template's announcements with their balance, newest first.
func (s *Announcements) List(ctx context.Context, by staff.Actor, templateID int64) ([]AnnouncementStatus, error) {
	t, err := s.Store.Template(ctx, templateID)
	if err != nil {
		return nil, err
	}
	if err := by.May(staff.View, t.ShopNumber); err != nil {
		return nil, err
	}
	return s.Store.Announcements(ctx, templateID)
}

// prepare returns the announcements that o requests, at least one.
func (s *Announcements) prepare(ctx context.Context, by staff.Actor, templateID int64, o Order) (list []Announcement, t template.Template, err error) {
	if t, err = s.Store.Template(ctx, templateID); err != nil {
		return nil, t, err
	}
	if err = by.May(staff.ManageTemplates, t.ShopNumber); err != nil {
		return nil, t, err
	}
	now := s.Now()
	a, err := announcementFor(t, o, now)
	if err != nil || o.Kind != delivery.KindCorrection {
		return []Announcement{a}, t, err
	}
	misled, err := s.Store.Misled(ctx, templateID, t.OpensAt)
	if err == nil && !misled {
		err = template.ErrTransition.Because("nobody was reminded of another opening; there is nothing to correct")
	}
	for _, opening := range t.Openings() {
		if a.OpensAt, a.WorthlessAfter = opening.At, opening.At; now.Before(opening.At) {
			list = append(list, a)
		}
	}
	return list, t, err
}
