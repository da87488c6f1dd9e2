package report

import (
	"context"
	"math"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Span names a period that ends today.
type Span string

// The spans. Chosen is a period from one day to another.
const (
	Days30   Span = "30d"
	Days90   Span = "90d"
	Months12 Span = "12m"
	Chosen   Span = "chosen"
)

// Spans returns every span.
func Spans() []Span { return []Span{Days30, Days90, Months12, Chosen} }

// A Period is consecutive days, from the beginning of the first to the end of the last, in parts of
// days, of weeks or of calendar months. The period before it has as many parts.
type Period struct {
	Span Span
	// Starts are the beginnings of the parts; the last instant is the end of the period.
	Starts []time.Time
	// BeforeStarts are the beginnings of the parts of the period before, likewise.
	BeforeStarts []time.Time
}

// MostDays is how many days a chosen period has at most.
const MostDays = 731

// fewDays is up to how many days a chosen period has a part for each day, fewWeeks up to how many it
// has a part for each week.
const (
	fewDays  = 45
	fewWeeks = 182
)

// PeriodOf returns the period of the span that ends with the day of now in the zone.
func PeriodOf(span Span, now time.Time, zone *time.Location) Period {
	y, m, d := now.In(zone).Date()
	end := time.Date(y, m, d+1, 0, 0, 0, 0, zone)
	switch span {
	case Days90: // all parts are equally long
		return inDays(Days90, end.AddDate(0, 0, -90), 90, 6)
	case Months12:
		p := Period{Span: Months12}
		for i := -11; i <= 1; i++ {
			p.Starts = append(p.Starts, time.Date(y, m+time.Month(i), 1, 0, 0, 0, 0, zone))
			p.BeforeStarts = append(p.BeforeStarts, time.Date(y-1, m+time.Month(i), 1, 0, 0, 0, 0, zone))
		}
		return p
	}
	return inDays(Days30, end.AddDate(0, 0, -30), 30, 1)
}

// PeriodBetween returns the period from the first to the last day, which begin at their midnights in
// their zone. It returns a [fault.Fields] if the last day is before the first, or too far from it.
func PeriodBetween(first, last time.Time) (Period, error) {
	n := int(math.Round(last.Sub(first).Hours()/24)) + 1 // days have 23 to 25 hours
	var broken fault.Fields
	if n <= 0 {
		broken.Add("to", "rule.days_order", "must not be before the first day")
	} else if n > MostDays {
		broken.Add("to", "rule.days_most", "must be at most two years after the first day")
	}
	if err := broken.Err(); err != nil {
		return Period{}, err
	}
	part := 1
	if n > fewWeeks {
		part = 30
	} else if n > fewDays {
		part = 7
	}
	return inDays(Chosen, first, n, part), nil
}

// inDays returns the period of n days in parts of so many days; the last part may be shorter.
func inDays(span Span, from time.Time, n, part int) Period {
	p := Period{Span: span}
	for i := 0; i < n; i += part {
		p.Starts, p.BeforeStarts = append(p.Starts, from.AddDate(0, 0, i)), append(p.BeforeStarts, from.AddDate(0, 0, i-n))
	}
	p.Starts, p.BeforeStarts = append(p.Starts, from.AddDate(0, 0, n)), append(p.BeforeStarts, from)
	return p
}

// From returns the beginning of the period.
func (p Period) From() time.Time { return p.Starts[0] }

// To returns the end of the period, which is not part of it.
func (p Period) To() time.Time { return p.Starts[len(p.Starts)-1] }

// Part returns the part of the instant: of the period, or of the period before.
func (p Period) Part(at time.Time) (i int, before bool) {
	starts := p.Starts
	if at.Before(p.From()) {
		starts, before = p.BeforeStarts, true
	}
	i, found := slices.BinarySearchFunc(starts, at, time.Time.Compare)
	if !found {
		i--
	}
	return min(max(i, 0), len(starts)-2), before
}

// MostDrops is how many drops a trend reads in each of its two periods at most.
const MostDrops = 60

// A Trend is the figures of the drops that opened in a period, and in the period before, the latest first.
type Trend struct {
	List, Before []Figures
	// More is set if more than [MostDrops] drops opened in one of the periods: the earliest are missing.
	More bool
}

// Trend returns the figures of the drops of one shop or, with 0, of all shops that the actor may see.
// Drops that have not opened yet are left out.
func (s *Service) Trend(ctx context.Context, by staff.Actor, shop int64, p Period) (t Trend, err error) {
	q := template.Query{States: over(), Descending: true, Limit: MostDrops + 1}
	if shop != 0 {
		if err := by.May(staff.View, shop); err != nil {
			return t, err
		}
		q.Shops = []int64{shop}
	}
	if t.List, err = s.opened(ctx, by, q, p.From(), p.To(), &t.More); err != nil {
		return t, err
	}
	t.Before, err = s.opened(ctx, by, q, p.BeforeStarts[0], p.From(), &t.More)
	return t, err
}

// opened returns the figures of the drops of the query that opened from from to before to, and sets
// more if it leaves any out.
func (s *Service) opened(ctx context.Context, by staff.Actor, q template.Query, from, to time.Time, more *bool) ([]Figures, error) {
	if now := s.Now(); now.Before(to) {
		to = now.Add(time.Microsecond)
	}
	q.From, q.To = &from, &to
	list, err := s.Templates.Templates(ctx, by, q)
	if err != nil {
		return nil, err
	}
	if len(list) > MostDrops {
		list, *more = list[:MostDrops], true
	}
	out := make([]Figures, len(list))
	for i, t := range list {
		if out[i], err = s.figuresNow(ctx, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}
