package campaign

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Planned is one entry of the calendar: a campaign that starts, or a drop that opens.
type Planned struct {
	// Drop is true for a drop. DropState is set for drops only; the fields after DropState are
	// set for campaigns only.
	Drop      bool
	ID        int64
	Name      string
	At        time.Time
	Zone      string // of its shop; "" if it belongs to none
	ShopName  string
	DropState template.State

	State    State
	Awaiting bool // a second person's consent
	Channel  delivery.Channel
	EndsAt   time.Time
}

// A CalendarDay has the entries of one day, the earliest first.
type CalendarDay struct {
	Date time.Time // midnight UTC of the date
	List []Planned
	// More is how many entries there are beyond List. Many means that there are even more.
	More int
	Many bool
}

// A CalendarQuery selects the entries on the days from From to before To, both midnight UTC of a
// date. An entry belongs to the date that it has in its shop's zone.
type CalendarQuery struct {
	From, To time.Time
	Shops    []int64 // empty = all, and entries of no shop
	// Zone is the zone of entries that belong to no shop.
	Zone *time.Location
	// PerDay is how many entries of a day are listed.
	PerDay int
}

// A Span is one day in one zone.
type Span struct {
	Day      int    // days since the query's first
	Zone     string // as shops name it; "" = no shop
	From, To time.Time
}

// A PlannedOn is an entry found in a span.
type PlannedOn struct {
	Day int
	Planned
}

// CalendarStore reads the entries of the calendar.
type CalendarStore interface {
	// Zones returns the zones of the shops, each once; of all without shops.
	Zones(ctx context.Context, shops []int64) ([]string, error)
	// Planned returns the entries in the spans, at most limit campaigns and limit drops of each
	// span. Cancelled drops are left out.
	Planned(ctx context.Context, spans []Span, shops []int64, limit int) ([]PlannedOn, error)
}

// JoinDays adds the entries of another database to the same days. At most perDay entries of a day are
// listed.
func JoinDays(days, other []CalendarDay, perDay int) []CalendarDay {
	for i, o := range other {
		d := &days[i]
		d.List = slices.Concat(d.List, o.List)
		slices.SortStableFunc(d.List, func(a, b Planned) int { return a.At.Compare(b.At) })
		over := max(0, len(d.List)-perDay)
		d.List, d.More, d.Many = d.List[:len(d.List)-over], d.More+o.More+over, d.Many || o.Many
	}
	return days
}

// Limits of one look at the calendar.
const (
	MaxCalendarDays = 62
	// countedMore bounds the entries that are counted beyond the list of a day.
	countedMore = 100
)

// Calendar returns the days of the query with the entries that the actor may see.
func (s *Service) Calendar(ctx context.Context, by staff.Actor, q CalendarQuery) ([]CalendarDay, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	if len(by.Shops) > 0 {
		asked := q.Shops
		q.Shops = slices.DeleteFunc(slices.Clone(by.Shops), func(n int64) bool { return len(asked) > 0 && !slices.Contains(asked, n) })
		if len(q.Shops) == 0 {
			return q.arrange(nil, 0), nil
		}
	}
	zones, err := s.Store.Zones(ctx, q.Shops)
	if err != nil {
		return nil, err
	}
	limit := q.PerDay + countedMore
	found, err := s.Store.Planned(ctx, q.spans(zones), q.Shops, limit)
	return q.arrange(found, limit), err
}

// days is how many days the query is about.
func (q CalendarQuery) days() int {
	return max(0, min(MaxCalendarDays, int(q.To.Sub(q.From)/(24*time.Hour))))
}

// spans returns every day in every zone. Days on which clocks change are 23 or
// 25 hours long, so their ends are computed in the zone.
func (q CalendarQuery) spans(zones []string) []Span {
	if len(q.Shops) == 0 && !slices.Contains(zones, "") {
		zones = append(slices.Clone(zones), "")
	}
	var list []Span
	for _, name := range zones {
		zone := q.zone(name)
		midnight := func(day int) time.Time {
			return time.Date(q.From.Year(), q.From.Month(), q.From.Day()+day, 0, 0, 0, 0, zone)
		}
		for day := range q.days() {
			list = append(list, Span{day, name, midnight(day), midnight(day + 1)})
		}
	}
	return list
}

func (q CalendarQuery) zone(name string) *time.Location { return zoneOr(name, q.Zone) }

// spans returns the selected time in every zone. An open end is later than any possible start of
// a campaign.
func (q Query) spans(zones []string) []Span {
	if !slices.Contains(zones, "") {
		zones = append(slices.Clone(zones), "")
	}
	list := make([]Span, len(zones))
	for i, name := range zones {
		zone := zoneOr(name, q.Zone)
		list[i] = Span{Zone: name, From: time.Unix(0, 0), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
		if q.FirstDay != nil {
			list[i].From = time.Date(q.FirstDay.Year(), q.FirstDay.Month(), q.FirstDay.Day(), 0, 0, 0, 0, zone)
		}
		if q.AfterDay != nil {
			list[i].To = time.Date(q.AfterDay.Year(), q.AfterDay.Month(), q.AfterDay.Day(), 0, 0, 0, 0, zone)
		}
	}
	return list
}

func zoneOr(name string, other *time.Location) *time.Location {
	if loc, err := time.LoadLocation(name); err == nil && name != "" {
		return loc
	}
	return other
}

// arrange distributes the entries over their days. limit is the most campaigns, and the most
// drops, that were read for a day; a day with that many entries may have more.
func (q CalendarQuery) arrange(found []PlannedOn, limit int) []CalendarDay {
	days := make([]CalendarDay, q.days())
	for i := range days {
		days[i].Date = q.From.AddDate(0, 0, i)
	}
	for _, p := range found {
		days[p.Day].List = append(days[p.Day].List, p.Planned)
	}
	for i := range days {
		d := &days[i]
		slices.SortFunc(d.List, func(a, b Planned) int {
			return cmp.Or(a.At.Compare(b.At), boolOrder(a.Drop, b.Drop), cmp.Compare(a.ID, b.ID))
		})
		if d.More = max(0, len(d.List)-q.PerDay); d.More > 0 {
			d.Many = len(d.List) >= limit
			d.List = d.List[:q.PerDay]
		}
	}
	return days
}

// boolOrder puts true first.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
