package report

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Compared is the number of earlier drops with which a report compares a drop.
const Compared = 3

// curvePoints is how many steps a curve has at most.
const curvePoints = 120

// Templates finds drops that the actor may see.
type Templates interface {
	Template(ctx context.Context, by staff.Actor, id int64) (template.Template, error)
	Templates(ctx context.Context, by staff.Actor, q template.Query) ([]template.Template, error)
}

// Reminders reads the results of a drop's reminders.
type Reminders interface {
	Cockpit(ctx context.Context, templateID int64, known []reminder.CockpitRow) (reminder.Cockpit, error)
}

// Board reads bookings over time, and recounts the balance sheet.
type Board interface {
	Growth(ctx context.Context, templateID int64, points int) ([]reminder.Growth, error)
	Balance(ctx context.Context, templateID int64) ([]reminder.BalanceLine, error)
}

// Stock returns where a drop's coupons are.
type Stock interface {
	Of(ctx context.Context, t template.Template) (gate.Account, error)
}

// Tallies returns the numbers of a drop's coupons by state.
type Tallies interface {
	Tally(ctx context.Context, templateID int64) (coupon.Tally, error)
}

// Forecasts compares the forecasts of drops with the actual numbers.
type Forecasts interface {
	Outcomes(ctx context.Context, templateID int64, c reminder.Cockpit) ([]forecast.Outcome, error)
	Accuracy(ctx context.Context) (forecast.Accuracy, error)
}

// Store reads data that only reports need, and stores the links to reports.
type Store interface {
	// People counts the drop's users; see [People].
	People(ctx context.Context, templateID int64) (People, error)
	// Events returns the changes of the drop by staff, oldest first.
	Events(ctx context.Context, templateID int64) ([]reminder.TemplateStep, error)
	// AddLink stores a link that ends after life by the database's clock, with its
	// audit entry, whose object it fills in. It returns [ErrTooManyLinks] if the
	// drop has most valid links already.
	AddLink(ctx context.Context, templateID int64, life time.Duration, most int, e staff.Entry) (Link, error)
	// RevokeLink ends the link now; a link that has ended stays as it is. It
	// returns [ErrNoLink] if the drop has no such link.
	RevokeLink(ctx context.Context, templateID, id int64, e staff.Entry) error
	// Links returns the drop's links, the latest first, at most limit.
	Links(ctx context.Context, templateID int64, limit int) ([]Link, error)
	// OpenLink returns the drop of a link that is valid by the database's clock, or
	// [ErrNoLink].
	OpenLink(ctx context.Context, id int64) (templateID int64, err error)
}

// Service makes reports. All fields are required unless stated otherwise.
type Service struct {
	Templates Templates
	Reminders Reminders
	Board     Board
	Stock     Stock
	Tallies   Tallies
	Curves    Curves
	Forecasts Forecasts
	Store     Store
	Money     MoneyStore
	// Brakes is asked about protected drops.
	Brakes Brakes
	// Draws is asked about drops whose coupons are drawn.
	Draws draw.Fairer
	// Doors is asked about drops with doors.
	Doors  door.Counter
	Signed Links
	Now    func() time.Time
}

// Report returns the report of a drop that the actor may see. For a draft it
// returns [ErrDraft].
func (s *Service) Report(ctx context.Context, by staff.Actor, templateID int64) (Report, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return Report{}, err
	}
	if t.Stored == template.Draft {
		return Report{}, ErrDraft
	}
	r := Report{At: s.Now()}
	c, err := s.Reminders.Cockpit(ctx, t.ID, nil)
	if err != nil {
		return r, err
	}
	if r.Figures, r.Sales, err = s.figures(ctx, t, c); err != nil {
		return r, err
	}
	if r.Money.Increment, err = s.IncrementOf(ctx, t); err != nil {
		return r, err
	}
	lines, err := s.Board.Balance(ctx, t.ID)
	if err != nil {
		return r, err
	}
	r.Sheets, r.Difference, r.Archived = sheetsOf(lines, c, t)
	if r.People, err = s.people(ctx, r.Figures); err != nil {
		return r, err
	}
	r.People.Partial = r.People.Partial || r.Archived && r.People.CountedAt == nil
	if r.Hours, err = s.Money.Hours(ctx, t.ID); err != nil {
		return r, err
	}
	if r.Growth, err = s.Board.Growth(ctx, t.ID, curvePoints); err != nil {
		return r, err
	}
	if r.Draw, err = s.fairness(ctx, t); err != nil {
		return r, err
	}
	if t.Waits() {
		if r.Wait, err = s.Curves.Waits(ctx, t.ID); err != nil {
			return r, err
		}
	}
	if r.Refused, err = s.RefusedOf(ctx, t); err != nil {
		return r, err
	}
	if r.Brakes, err = s.brakes(ctx, t); err != nil {
		return r, err
	}
	if r.Outcomes, err = s.Forecasts.Outcomes(ctx, t.ID, c); err != nil {
		return r, err
	}
	if r.Accuracy, err = s.Forecasts.Accuracy(ctx); err != nil {
		return r, err
	}
	if r.History, err = s.History(ctx, t); err != nil || len(r.Earlier) == 0 {
		return r, err
	}
	r.Other = &r.Earlier[0]
	r.Other.People, err = s.people(ctx, r.Other.Figures)
	return r, err
}

// figures returns the drop's figures and the curve that some are taken from.
func (s *Service) figures(ctx context.Context, t template.Template, c reminder.Cockpit) (f Figures, curve claim.Curve, err error) {
	f = figuresOf(t, c)
	a, err := s.Stock.Of(ctx, t)
	if err != nil {
		return f, curve, err
	}
	f.Total, f.Issued, f.Writing = a.Total, a.Issued, a.Writing
	if f.Tally, err = s.Tallies.Tally(ctx, t.ID); err != nil {
		return f, curve, err
	}
	if f.Money, err = s.money(ctx, f); err != nil {
		return f, curve, err
	}
	if curve, err = s.Curves.Curve(ctx, t.ID, curvePoints); err == nil && f.Total <= f.Issued+a.Held {
		f.SoldOutAfter = curve.GoneAfter(t.OpensAt)
	}
	return f, curve, err
}

// over are the states of drops that have opened.
func over() []template.State {
	return []template.State{template.Open, template.SoldOut, template.Closed}
}

// earlierRead is how many closed drops are looked at to find drops with reminders.
const earlierRead = 20

// Before returns up to most closed drops of the same shop that opened before t and had reminders, the
// latest first. The first is the drop that t is compared with unless another is chosen.
func (s *Service) Before(ctx context.Context, t template.Template, most int) (found []template.Template, err error) {
	list, err := s.Templates.Templates(ctx, staff.System(), template.Query{States: []template.State{template.Closed}, Shops: []int64{t.ShopNumber}, To: &t.OpensAt, Descending: true, Limit: earlierRead})
	for _, e := range list {
		if e.ID == t.ID || len(found) == most {
			continue
		}
		c, err := s.Reminders.Cockpit(ctx, e.ID, nil)
		if err != nil {
			return nil, err
		}
		if c.Progress().Booked > 0 {
			found = append(found, e)
		}
	}
	return found, err
}

// Earlier returns the drops of [Service.Before] with their curves.
func (s *Service) Earlier(ctx context.Context, t template.Template) ([]Past, error) {
	list, err := s.Before(ctx, t, Compared)
	if err != nil {
		return nil, err
	}
	var out []Past
	for _, e := range list {
		p, err := s.PastOf(ctx, e)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// PastOf returns the figures and curves of a drop that another drop is compared with, without its
// users.
func (s *Service) PastOf(ctx context.Context, t template.Template) (p Past, err error) {
	c, err := s.Reminders.Cockpit(ctx, t.ID, nil)
	if err != nil {
		return p, err
	}
	if p.Figures, p.Sales, err = s.figures(ctx, t, c); err != nil {
		return p, err
	}
	p.Growth, err = s.Board.Growth(ctx, t.ID, curvePoints)
	return p, err
}

// people counts the drop's users. f are its figures.
func (s *Service) people(ctx context.Context, f Figures) (People, error) {
	p, err := s.Store.People(ctx, f.Template.ID)
	p.Partial = p.Partial || p.Booked == 0 && f.Progress.Booked > 0
	return p, err
}

// Comparable is how many drops a report can be compared with at most.
const Comparable = 100

// Others returns the drops that the drop can be compared with: closed drops with the same way of opening that the actor may see, the
// latest first.
func (s *Service) Others(ctx context.Context, by staff.Actor, templateID int64) ([]template.Template, error) {
	own, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	list, err := s.Templates.Templates(ctx, by, template.Query{States: []template.State{template.Closed}, To: &now, Descending: true, Limit: Comparable + 1})
	list = slices.DeleteFunc(list, func(t template.Template) bool {
		return t.ID == templateID || t.OpeningMode.Drawn() != own.OpeningMode.Drawn()
	})
	return list[:min(len(list), Comparable)], err
}

// Other returns the drop that a report is compared with. The actor must be allowed to see it.
// For a draft it returns [ErrDraft].
func (s *Service) Other(ctx context.Context, by staff.Actor, templateID int64) (Past, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return Past{}, err
	}
	if t.Stored == template.Draft {
		return Past{}, ErrDraft
	}
	p, err := s.PastOf(ctx, t)
	if err == nil {
		p.People, err = s.people(ctx, p.Figures)
	}
	return p, err
}

// A History is the context in which a drop's curves are shown.
type History struct {
	// Events are the changes of the drop by staff, oldest first.
	Events []reminder.TemplateStep
	// Earlier are the shop's drops before this one, the latest first.
	Earlier []Past
}

// History returns the changes of the drop by staff and the shop's drops before it.
func (s *Service) History(ctx context.Context, t template.Template) (h History, err error) {
	if h.Events, err = s.Store.Events(ctx, t.ID); err != nil {
		return h, err
	}
	h.Earlier, err = s.Earlier(ctx, t)
	return h, err
}

// FiguresOf returns the figures of one drop that the actor may see. For a draft it returns
// [ErrDraft].
func (s *Service) FiguresOf(ctx context.Context, by staff.Actor, templateID int64) (Figures, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return Figures{}, err
	}
	if t.Stored == template.Draft {
		return Figures{}, ErrDraft
	}
	return s.figuresNow(ctx, t)
}

// figuresNow returns the figures of a drop that is no draft.
func (s *Service) figuresNow(ctx context.Context, t template.Template) (Figures, error) {
	c, err := s.Reminders.Cockpit(ctx, t.ID, nil)
	if err != nil {
		return Figures{}, err
	}
	f, _, err := s.figures(ctx, t, c)
	return f, err
}
