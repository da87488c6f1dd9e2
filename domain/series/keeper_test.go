package series_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A fakeStore keeps series, their occurrences and templates in memory. Any of its calls can fail before or after
// it has stored its change, as if the program died there.
type fakeStore struct {
	template.Store
	now    time.Time
	series series.Series
	due    time.Time
	days   map[series.Day]series.Occurrence
	drops  map[int64]template.Template
	keys   map[string]int64
	audit  []string
	// fails is asked before and after each change.
	fails func() bool
}

var errDied = errors.New("the program died")

func (f *fakeStore) write(change func() error) error {
	if f.fails != nil && f.fails() {
		return errDied
	}
	if err := change(); err != nil {
		return err
	}
	if f.fails != nil && f.fails() {
		return errDied
	}
	return nil
}

func (f *fakeStore) Template(_ context.Context, id int64) (template.Template, error) {
	t, ok := f.drops[id]
	if !ok {
		return t, template.ErrNotFound
	}
	return t, nil
}

func (f *fakeStore) Insert(_ context.Context, c template.Change) (template.Template, error) {
	t := c.Template
	err := f.write(func() error {
		if id, ok := f.keys[c.RequestKey]; ok {
			t = f.drops[id]
			return nil
		}
		t.ID = int64(len(f.keys) + 1)
		f.keys[c.RequestKey], f.drops[t.ID] = t.ID, t
		f.audit = append(f.audit, c.Entry.Action)
		return nil
	})
	return t, err
}

func (f *fakeStore) Save(_ context.Context, c template.Change) (template.Template, error) {
	t := c.Template
	err := f.write(func() error {
		if f.drops[t.ID].Version != t.Version {
			return fault.ErrStale
		}
		t.Version++
		f.drops[t.ID] = t
		f.audit = append(f.audit, c.Entry.Action)
		return nil
	})
	return t, err
}

func (f *fakeStore) DeleteDraft(_ context.Context, id, version int64, _ staff.Entry) error {
	return f.write(func() error {
		if f.drops[id].Version != version {
			return fault.ErrStale
		}
		delete(f.drops, id)
		return nil
	})
}

func (f *fakeStore) Claim(context.Context, time.Duration) (series.Claim, bool, error) {
	if f.series.State != series.Active || f.due.IsZero() || f.due.After(f.now) {
		return series.Claim{}, false, nil
	}
	f.due = f.now.Add(30 * time.Second)
	return series.Claim{Series: f.series, Now: f.now, Until: f.due}, true, nil
}

func (f *fakeStore) Settle(_ context.Context, c series.Claim, next time.Time) error {
	return f.write(func() error {
		if c.Version == f.series.Version && c.Until.Equal(f.due) {
			f.due = next
		}
		return nil
	})
}

func (f *fakeStore) ToCome(_ context.Context, _ int64, from series.Day) (list []series.Occurrence, err error) {
	for _, d := range slices.Sorted(maps.Keys(f.days)) {
		if d >= from {
			list = append(list, f.days[d])
		}
	}
	return list, nil
}

func (f *fakeStore) Plan(_ context.Context, id int64, d series.Day) (series.Occurrence, error) {
	err := f.write(func() error {
		o, ok := f.days[d]
		if !ok || o.State == series.Removed {
			f.days[d] = series.Occurrence{SeriesID: id, Day: d, Try: o.Try + 1, State: series.Planned}
		}
		return nil
	})
	return f.days[d], err
}

func (f *fakeStore) Note(_ context.Context, o series.Occurrence) error {
	return f.write(func() error { f.days[o.Day] = o; return nil })
}

func (f *fakeStore) Uncopied(context.Context, int) ([]series.Copy, error)   { return nil, nil }
func (f *fakeStore) Copy(context.Context, series.Copy) (n int64, err error) { return 0, nil }

// A world is a series of daily drops with its keeper.
type world struct {
	*fakeStore
	keeper    *series.Keeper
	templates *template.Service
}

var oneDrop = template.Spec{Name: "Evening drop", ShopNumber: 10, Kind: template.AmountOff, AmountOff: money.Amount(500), Currency: "EUR",
	Target: template.WholeShop, Stock: 100, PerUserLimit: 1, ValidHours: 24, Obtain: template.ByClaim, ClaimMode: template.Durable,
	OpensAt: time.Date(2026, 12, 1, 19, 0, 0, 0, time.UTC), ClosesAt: time.Date(2026, 12, 1, 22, 0, 0, 0, time.UTC)}

func newWorld(spec series.Spec, zone string, now time.Time) *world {
	spec.ShopNumber, spec.Drop = 10, oneDrop
	f := &fakeStore{now: now, series: series.Series{ID: 1, Spec: spec, ShopTimezone: zone, State: series.Active, Version: 1}, due: now,
		days: map[series.Day]series.Occurrence{}, drops: map[int64]template.Template{}, keys: map[string]int64{}}
	templates := &template.Service{Store: f, Now: func() time.Time { return f.now }}
	return &world{f, &series.Keeper{Store: f, Templates: templates}, templates}
}

// edited stores changed settings of the series, as staff do.
func (w *world) edited(change func(*series.Series)) {
	change(&w.series)
	w.series.Version++
	w.due = w.now
}

// sweeps sweeps until nothing fails; each failure ends a process, and its claim has ended when another begins.
func (w *world) sweeps(t interface{ Fatalf(string, ...any) }) {
	for range 200 {
		err := w.keeper.Sweep(context.Background())
		if err == nil {
			return
		}
		if !errors.Is(err, errDied) {
			t.Fatalf("%v", err)
		}
		if w.due.Equal(w.now.Add(30 * time.Second)) {
			w.due = w.now
		}
	}
	t.Fatalf("the sweep does not end")
}

// years is how many years are drawn in a run, each with other changes.
const years = "4"

// TestAYearAgainstAModel: a daily series over a year, in which staff skip days, name holidays, change all drops to
// come and single drops, and programs die at any call. On every day the drops to come are those of a model that
// knows neither rules nor versions: the days of the calendar, one by one, and what staff said about each.
func TestAYearAgainstAModel(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	t.Cleanup(func() { _ = checks.Set(usual) })
	if err := checks.Set(years); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		zone, _ := time.LoadLocation(rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone"))
		day := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		clock, stock := 20*60, int64(100)
		publishes := rapid.Bool().Draw(t, "publishes")
		w := newWorld(series.Spec{Name: "Daily", Recurrence: series.Recurrence{Rule: "FREQ=DAILY", Starts: "2027-01-01"},
			Clock: series.Clock(clock * 60), SkipsHolidays: true, Publishes: publishes}, zone.String(), opens("2026-12-31", 23*60, zone))
		// The times between deaths differ, so that not every attempt dies at the same call.
		die := rapid.IntRange(3, 12).Draw(t, "calls until a death")
		calls, deaths := 0, 0
		w.fails = func() bool {
			if calls++; calls < die+deaths%5 {
				return false
			}
			calls, deaths = 0, deaths+1
			return true
		}

		gone := map[string]bool{}    // days without a drop
		alone := map[string]int64{}  // stock of drops that staff changed alone
		fixed := map[string]string{} // what an opened drop was
		for range 365 {
			name := day.Format(time.DateOnly)
			w.now = opens(name, 60, zone) // one in the night
			next := day
			for range 6 {
				next = next.AddDate(0, 0, 1)
				if n := next.Format(time.DateOnly); !gone[n] {
					break
				}
			}
			switch rapid.IntRange(0, 14).Draw(t, "what staff do") {
			case 0: // the series has no drop on one of the next days
				d := day.AddDate(0, 0, rapid.IntRange(0, 6).Draw(t, "skipped")).Format(time.DateOnly)
				if w.left(d) {
					break
				}
				gone[d] = true
				delete(fixed, d)
				w.edited(func(s *series.Series) { s.Skips = append(slices.Clone(s.Skips), series.Day(d)) })
			case 1:
				d := day.AddDate(0, 0, rapid.IntRange(0, 6).Draw(t, "holiday")).Format(time.DateOnly)
				if w.left(d) || gone[d] {
					break
				}
				gone[d] = true
				delete(fixed, d)
				w.series.Holidays = append(slices.Clone(w.series.Holidays), series.Day(d))
				w.due = w.now
			case 2: // all to come
				stock = int64(rapid.IntRange(int(stock), int(stock)+10).Draw(t, "stock"))
				w.edited(func(s *series.Series) { s.Drop.Stock = stock })
			case 3:
				clock = rapid.SampledFrom([]int{2*60 + 30, 12 * 60, 19*60 + 45, 23 * 60}).Draw(t, "clock")
				w.edited(func(s *series.Series) { s.Clock = series.Clock(clock * 60) })
			case 4: // this one
				n := next.Format(time.DateOnly)
				if o, ok := w.days[series.Day(n)]; ok && o.TemplateID != 0 && !gone[n] {
					d := w.drops[o.TemplateID]
					d.Stock += 1000
					d.Version++
					w.drops[d.ID], alone[n] = d, d.Stock
				}
			case 5: // a holiday that is taken back
				for _, d := range slices.Sorted(maps.Keys(gone)) {
					i := slices.Index(w.series.Holidays, series.Day(d))
					if d > name && i >= 0 && !slices.Contains(w.series.Skips, series.Day(d)) {
						w.series.Holidays = slices.Delete(slices.Clone(w.series.Holidays), i, i+1)
						w.due = w.now
						delete(gone, d)
						break
					}
				}
			}
			w.sweeps(t)
			w.compare(t, day, clock, stock, zone, gone, alone, fixed)
			day = day.AddDate(0, 0, 1)
		}
		if len(fixed) < 200 {
			t.Fatalf("only %d drops in a year", len(fixed))
		}
		for name, was := range fixed { // what has opened stays as it was
			if is := w.shown(name); is != was {
				t.Fatalf("%s: %s, was %s", name, is, was)
			}
		}
		if n := len(w.keys); n != countOf(w.audit, "template.create") {
			t.Fatalf("%d drops, %d creations in the audit log", n, countOf(w.audit, "template.create"))
		}
	})
}

func countOf(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// left reports whether the drop of the day stays when the day is taken out of the series: it is published, or
// staff changed it.
func (w *world) left(day string) bool {
	d, ok := w.drops[w.days[series.Day(day)].TemplateID]
	return ok && (d.Stored != template.Draft || d.Stock > 900 || !d.OpensAt.After(w.now))
}

func (w *world) shown(day string) string {
	d := w.drops[w.days[series.Day(day)].TemplateID]
	return fmt.Sprint(d.OpensAt.UTC(), d.Stock, d.Stored)
}

// compare compares the drops of the next days with the model.
func (w *world) compare(t *rapid.T, day time.Time, clock int, stock int64, zone *time.Location, gone map[string]bool, alone map[string]int64, fixed map[string]string) {
	ahead := 0
	for d := day; ahead < series.Ahead; d = d.AddDate(0, 0, 1) {
		name := d.Format(time.DateOnly)
		at := opens(name, clock, zone)
		if gone[name] || !at.After(w.now) {
			continue
		}
		ahead++
		drop, ok := w.drops[w.days[series.Day(name)].TemplateID]
		if !ok {
			t.Fatalf("at %s there is no drop on %s: %+v", w.now, name, w.days[series.Day(name)])
		}
		wanted := stock
		if n, own := alone[name]; own {
			wanted = n
		} else if !drop.OpensAt.Equal(at) {
			t.Fatalf("at %s the drop of %s opens at %s, want %s", w.now, name, drop.OpensAt.UTC(), at.UTC())
		}
		if drop.Stock != wanted {
			t.Fatalf("at %s the drop of %s has a stock of %d, want %d (%+v)", w.now, name, drop.Stock, wanted, w.days[series.Day(name)])
		}
		if published := drop.Stored == template.Published; published != w.series.Publishes {
			t.Fatalf("the drop of %s is %s", name, drop.Stored)
		}
		if drop.ClosesAt.Sub(drop.OpensAt) != 3*time.Hour {
			t.Fatalf("the drop of %s lasts %s", name, drop.ClosesAt.Sub(drop.OpensAt))
		}
		if drop.OpensAt.Before(w.now.Add(24 * time.Hour)) {
			fixed[name] = w.shown(name)
		}
	}
	total := 0
	for name, o := range w.days {
		if d, ok := w.drops[o.TemplateID]; ok && o.State != series.Removed && d.OpensAt.After(w.now) {
			if total++; gone[string(name)] {
				t.Fatalf("at %s there is a drop on %s", w.now, name)
			}
		}
	}
	if total > series.Ahead+2 { // a later clock makes a day of today's drop again
		t.Fatalf("%d drops to come", total)
	}
}
