package series

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Store keeps series.
type Store interface {
	// Series returns [ErrNotFound] if there is none.
	Series(ctx context.Context, id int64) (Series, error)
	// List returns the series of the shops (none = of all shops), those that have not ended first.
	List(ctx context.Context, shops []int64) ([]Series, error)
	// Insert stores a series and returns it with its id. A second call with the same request key returns the
	// series of the first. It returns [ErrTooMany] if the shop has most others that have not ended.
	Insert(ctx context.Context, s Series, most int, requestKey string, e staff.Entry) (Series, error)
	// Save stores the spec and the state of s if s.Version is current, and makes the sweep look at the series;
	// otherwise it returns [fault.ErrStale].
	Save(ctx context.Context, s Series, e staff.Entry) (Series, error)
	// Occurrences returns the occurrences of the series from the day on, in order.
	Occurrences(ctx context.Context, id int64, from Day, limit int) ([]Listed, error)
	// SetHolidays replaces the holidays of a shop, and makes the sweep look at its series.
	SetHolidays(ctx context.Context, shop int64, days []Day, e staff.Entry) error
	// Holidays returns the holidays of a shop.
	Holidays(ctx context.Context, shop int64) ([]Day, error)
	// Standing returns how many users have a standing reservation of the series.
	Standing(ctx context.Context, id int64) (int64, error)
}

// Service holds the use cases of staff around series. All fields are required.
type Service struct {
	Store     Store
	Models    template.Models
	Templates *template.Service
	Now       func() time.Time
}

// A Start says from which drop a series takes the settings of its drops: from a saved drop, or from a drop
// as it is now. Both 0 = the settings stay.
type Start struct{ ModelID, TemplateID int64 }

// drop returns the drop that the start names, with its shop.
func (s *Service) drop(ctx context.Context, by staff.Actor, from Start) (template.Template, error) {
	if from.ModelID != 0 {
		m, err := s.Models.Model(ctx, by, from.ModelID)
		return m.Drop, err
	}
	return s.Templates.Template(ctx, by, from.TemplateID)
}

// Create stores a series of the shop of the drop that it starts from. It returns a [fault.Fields],
// [ErrTooMany], [staff.ErrForbidden], [template.ErrModelNotFound] or [template.ErrNotFound].
func (s *Service) Create(ctx context.Context, by staff.Actor, spec Spec, from Start, requestKey string) (Series, error) {
	t, err := s.drop(ctx, by, from)
	if err != nil {
		return Series{}, err
	}
	if err := by.May(staff.ManageTemplates, t.ShopNumber); err != nil {
		return Series{}, err
	}
	spec.ShopNumber, spec.Drop = t.ShopNumber, t.Spec
	if spec, err = spec.clean(t.ShopTimezone); err != nil {
		return Series{}, err
	}
	n := Series{Spec: spec, State: Active, Version: 1}
	return detach.Write(ctx, func(ctx context.Context) (Series, error) {
		return s.Store.Insert(ctx, n, MaxSeries, requestKey, n.entry(by, "series.create", "", nil, spec.shown()))
	})
}

// clean returns the spec in normal form, or its broken rules.
func (s Spec) clean(zone string) (Spec, error) {
	s.Name, s.Rule = strings.TrimSpace(s.Name), strings.ToUpper(strings.TrimSpace(s.Rule))
	s.Rule = strings.TrimPrefix(s.Rule, "RRULE:")
	slices.Sort(s.Skips)
	s.Skips = slices.Compact(s.Skips)
	if err := s.check(zone); err != nil {
		return s, err
	}
	s.Rule = s.Normal()
	return s, nil
}

// Series returns a series of the actor's shops, or [ErrNotFound].
func (s *Service) Series(ctx context.Context, by staff.Actor, id int64) (Series, error) {
	found, err := s.Store.Series(ctx, id)
	if err == nil && by.May(staff.View, found.ShopNumber) != nil {
		return Series{}, ErrNotFound
	}
	return found, err
}

// own returns a series that the actor may change.
func (s *Service) own(ctx context.Context, by staff.Actor, id int64) (Series, error) {
	found, err := s.Series(ctx, by, id)
	if err != nil {
		return found, err
	}
	return found, by.May(staff.ManageTemplates, found.ShopNumber)
}

// List returns the series of the actor's shops.
func (s *Service) List(ctx context.Context, by staff.Actor) ([]Series, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, by.Shops)
}

// A View is a series with its drops and its users.
type View struct {
	Series
	// Occurrences are those of the last days and those to come, in order.
	Occurrences []Listed
	// Next are the next days.
	Next []Day
	// Standing is how many users have a standing reservation.
	Standing int64
}

const (
	shownDays  = 10
	shownPast  = 7 // days
	shownDrops = 50
)

// View returns a series of the actor's shops with its drops, or [ErrNotFound].
func (s *Service) View(ctx context.Context, by staff.Actor, id int64) (v View, err error) {
	if v.Series, err = s.Series(ctx, by, id); err != nil {
		return v, err
	}
	now := s.Now()
	v.Next = v.Upcoming(now, shownDays)
	if v.Occurrences, err = s.Store.Occurrences(ctx, id, DayOf(now.In(v.Zone())).Add(-shownPast), shownDrops); err != nil {
		return v, err
	}
	v.Standing, err = s.Store.Standing(ctx, id)
	return v, err
}

// Preview returns the next days of a spec as it is typed, of a shop with these holidays.
func (s *Service) Preview(spec Spec, zone string, holidays []Day) (Series, []Day) {
	typed := Series{Spec: spec, ShopTimezone: zone, Holidays: holidays}
	return typed, typed.Upcoming(s.Now(), shownDays)
}

// An Edition are new settings for the version that they are based on. Its settings of drops and its shop
// are those of the series, or of the drop that From names, which must be of the same shop.
type Edition struct {
	Version int64
	Spec    Spec
	From    Start
}

// Edit changes the series and, by the sweep, its drops that have not opened and were not changed by staff.
// It returns a [fault.Fields], [ErrNotFound], [ErrTransition] for a series that has ended, [fault.ErrStale]
// or [staff.ErrForbidden].
func (s *Service) Edit(ctx context.Context, by staff.Actor, id int64, e Edition) (Series, error) {
	old, err := s.own(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.State == Ended {
		return old, ErrTransition
	}
	if old.Version != e.Version {
		return old, fault.ErrStale
	}
	spec := e.Spec
	spec.ShopNumber, spec.Drop = old.ShopNumber, old.Drop
	if e.From != (Start{}) {
		t, err := s.drop(ctx, by, e.From)
		if err != nil {
			return old, err
		}
		if t.ShopNumber != old.ShopNumber {
			broken := &fault.Fields{}
			broken.Add("model", "rule.series_shop", "belongs to another shop")
			return old, broken
		}
		spec.Drop = t.Spec
	}
	if spec, err = spec.clean(old.ShopTimezone); err != nil {
		return old, err
	}
	return s.save(ctx, by, old, spec, "series.edit")
}

func (s *Service) save(ctx context.Context, by staff.Actor, old Series, spec Spec, action string) (Series, error) {
	next := old
	next.Spec = spec
	return detach.Write(ctx, func(ctx context.Context) (Series, error) {
		return s.Store.Save(ctx, next, old.entry(by, action, "", old.shown(), spec.shown()))
	})
}

// EditAll changes a drop of a series, the series, and so all its drops to come. Of a moved opening the series
// takes the time of day; the day is that of this drop alone. The series is stored first: should the program end
// before the drop is stored, the sweep changes the drop too. It returns the errors of [template.Service.Edit],
// [ErrNotFound] if the drop is of no series, and [ErrTransition] if the series has ended.
func (s *Service) EditAll(ctx context.Context, by staff.Actor, templateID int64, e template.Edition) (template.Template, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return t, err
	}
	old, err := s.own(ctx, by, t.SeriesID)
	switch {
	case err != nil:
		return t, err
	case old.State == Ended:
		return t, ErrTransition
	case t.Version != e.Version:
		return t, fault.ErrStale
	}
	if _, err := t.Edit(e.Spec, s.Now()); err != nil {
		return t, err
	}
	spec := old.Spec
	spec.Drop, spec.Clock = e.Spec, ClockOf(e.Spec.OpensAt.In(old.Zone()))
	if spec, err = spec.clean(old.ShopTimezone); err != nil {
		return t, err
	}
	if _, err := s.save(ctx, by, old, spec, "series.edit"); err != nil {
		return t, err
	}
	return s.Templates.Edit(ctx, by, templateID, e)
}

// A Step is a change of the state of a series.
type Step string

// The steps.
const (
	Pausing  Step = "pause"
	Resuming Step = "resume"
	Ending   Step = "end"
)

// steps are the states from which a step is taken, and the state to which it leads.
var steps = map[Step]struct {
	from []State
	to   State
}{Pausing: {[]State{Active}, Paused}, Resuming: {[]State{Paused}, Active}, Ending: {[]State{Active, Paused}, Ended}}

// Take takes the step; a second call changes nothing. It returns [ErrTransition], [ErrNotFound],
// [fault.ErrStale] or [staff.ErrForbidden].
func (s *Service) Take(ctx context.Context, by staff.Actor, id int64, step Step, reason string) (Series, error) {
	old, err := s.own(ctx, by, id)
	if err != nil {
		return old, err
	}
	how, known := steps[step]
	if known && old.State == how.to {
		return old, nil
	}
	if !known || !slices.Contains(how.from, old.State) {
		return old, ErrTransition
	}
	next := old
	next.State = how.to
	return detach.Write(ctx, func(ctx context.Context) (Series, error) {
		return s.Store.Save(ctx, next, old.entry(by, "series."+string(step), reason, old.State, next.State))
	})
}

// SetHolidays replaces the holidays of a shop, on which its series have no drops if they are set so. It
// returns a [fault.Fields] or [staff.ErrForbidden].
func (s *Service) SetHolidays(ctx context.Context, by staff.Actor, shop int64, days []Day) error {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return err
	}
	if len(days) > MaxSkips {
		e := &fault.Fields{}
		e.Add("holidays", "rule.series_skips", "must be at most %d days", MaxSkips)
		return e
	}
	old, err := s.Store.Holidays(ctx, shop)
	if err != nil || slices.Equal(old, days) {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SetHolidays(ctx, shop, days, staff.Entry{Actor: by, Action: "shop.holidays", ObjectKind: "shop",
		ObjectID: idText(shop), ShopNumber: shop, Before: old, After: days})
}

// Holidays returns the holidays of a shop of the actor.
func (s *Service) Holidays(ctx context.Context, by staff.Actor, shop int64) ([]Day, error) {
	if err := by.May(staff.View, shop); err != nil {
		return nil, err
	}
	return s.Store.Holidays(ctx, shop)
}

func idText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}
