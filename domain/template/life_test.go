package template_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

var opens = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

func validSpec() template.Spec {
	s := template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY",
		Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}
	return s.Own()
}

// inState returns a template that is in the state at the instant returned.
func inState(s template.State) (template.Template, time.Time) {
	t := template.Template{ID: 7, Spec: validSpec(), Stored: template.Published, Version: 3, Issued: 5}
	now := opens.Add(-time.Hour)
	switch s {
	case template.Draft, template.Closed, template.Cancelled, template.Paused:
		t.Stored = s
	case template.Open:
		now = opens.Add(time.Minute)
	case template.SoldOut:
		now, t.Issued = opens.Add(time.Minute), t.Stock
	}
	return t, now
}

// actions are the steps of a template's life by name.
var actions = map[string]func(template.Template, time.Time) (template.Template, error){
	"publish": template.Template.Publish,
	"pause":   template.Template.Pause,
	"resume":  template.Template.Resume,
	"close":   template.Template.Close,
	"cancel":  template.Template.Cancel,
	"edit": func(t template.Template, now time.Time) (template.Template, error) {
		s := t.Spec
		s.Name = "Another name"
		return t.Edit(s, now)
	},
}

// legal says which state follows an action; an action that is not here is refused.
var legal = map[string]map[template.State]template.State{
	"publish": {template.Draft: template.Scheduled},
	"pause":   {template.Scheduled: template.Paused, template.Open: template.Paused, template.SoldOut: template.Paused},
	"resume":  {template.Paused: template.Scheduled},
	"close": {template.Scheduled: template.Closed, template.Open: template.Closed, template.SoldOut: template.Closed,
		template.Paused: template.Closed},
	"cancel": {template.Draft: template.Cancelled, template.Scheduled: template.Cancelled, template.Paused: template.Cancelled},
	"edit": {template.Draft: template.Draft, template.Scheduled: template.Scheduled, template.Open: template.Open,
		template.SoldOut: template.SoldOut, template.Paused: template.Paused},
}

func TestEveryActionInEveryState(t *testing.T) {
	for name, act := range actions {
		for _, s := range template.States() {
			before, now := inState(s)
			if got := before.State(now); got != s {
				t.Fatalf("the sample for %s is %s", s, got)
			}
			after, err := act(before, now)
			want, ok := legal[name][s]
			switch {
			case ok && err != nil:
				t.Errorf("%s a template that is %s: %v", name, s, err)
			case ok && after.State(now) != want:
				t.Errorf("%s a template that is %s: now %s, want %s", name, s, after.State(now), want)
			case !ok && !errors.Is(err, template.ErrTransition):
				t.Errorf("%s a template that is %s: %v, want ErrTransition", name, s, err)
			case !ok && (after.Stored != before.Stored || after.Name != before.Name):
				t.Errorf("%s a template that is %s was refused and changed it", name, s)
			}
			if after.Version != before.Version || after.ID != before.ID || after.Issued != before.Issued {
				t.Errorf("%s a template that is %s changed what is not its business: %+v", name, s, after)
			}
		}
	}
}

// The answer of a dialog's check is the answer of the step.
func TestAllowsWhatTheStepsDo(t *testing.T) {
	for _, tr := range []template.Transition{template.Publishing, template.Pausing, template.Resuming, template.Closing, template.Cancelling} {
		for _, s := range template.States() {
			drop, now := inState(s)
			_, legal := legal[string(tr)][s]
			if err := drop.Allows(tr, now); legal != (err == nil) || !legal && !errors.Is(err, template.ErrTransition) {
				t.Errorf("%s a template that is %s: %v", tr, s, err)
			}
		}
	}
	late, _ := inState(template.Draft)
	if err := late.Allows(template.Publishing, opens.Add(time.Minute)); err != nil {
		t.Errorf("a draft whose opening has passed: %v; its state is not what is wrong", err)
	}
}

func TestWhenADropIsOver(t *testing.T) {
	early, late, closes := opens.Add(time.Minute), opens.Add(2*time.Hour), opens.Add(time.Hour)
	for _, c := range []struct {
		name    string
		stored  template.State
		endedAt *time.Time
		valid   *time.Time
		want    time.Time
		early   bool
	}{
		{"planned", template.Published, nil, nil, closes, false},
		{"with its coupons", template.Published, nil, &early, early, false},
		{"closed by staff", template.Closed, &early, nil, early, true},
		{"closed by the clock", template.Closed, &closes, nil, closes, false},
		{"closed late by a sweep", template.Closed, &late, nil, closes, false},
		{"cancelled", template.Cancelled, &early, nil, closes, false},
	} {
		drop := template.Template{Spec: validSpec(), Stored: c.stored, EndedAt: c.endedAt}
		drop.ValidUntil = c.valid
		if got := drop.OverAt(); !got.Equal(c.want) || drop.ClosedEarly() != c.early {
			t.Errorf("%s: over at %v, early %v", c.name, got, drop.ClosedEarly())
		}
	}
}

func TestStateAtExactInstants(t *testing.T) {
	closes := opens.Add(time.Hour)
	for _, c := range []struct {
		name   string
		stored template.State
		issued int64
		now    time.Time
		want   template.State
	}{
		{"a moment before the opening", template.Published, 0, opens.Add(-1), template.Scheduled},
		{"at the opening", template.Published, 0, opens, template.Open},
		{"one left", template.Published, 99, opens, template.Open},
		{"none left", template.Published, 100, opens, template.SoldOut},
		{"more gone than there were", template.Published, 101, opens, template.SoldOut},
		{"none left before the opening", template.Published, 100, opens.Add(-1), template.Scheduled},
		{"a moment before the end", template.Published, 0, closes.Add(-1), template.Open},
		{"at the end", template.Published, 0, closes, template.Closed},
		{"sold out at the end", template.Published, 100, closes, template.Closed},
		{"paused before the opening", template.Paused, 0, opens.Add(-1), template.Paused},
		{"paused and none left", template.Paused, 100, opens, template.Paused},
		{"paused a moment before the end", template.Paused, 0, closes.Add(-1), template.Paused},
		{"paused at the end", template.Paused, 0, closes, template.Closed},
		{"a draft for ever", template.Draft, 0, closes.Add(time.Hour), template.Draft},
		{"closed before its time", template.Closed, 0, opens.Add(-1), template.Closed},
		{"cancelled for ever", template.Cancelled, 0, closes, template.Cancelled},
	} {
		tpl := template.Template{Spec: validSpec(), Stored: c.stored, Issued: c.issued}
		if got := tpl.State(c.now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAcceptsReservations(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored template.State
		now    time.Time
		want   error
	}{
		{"draft", template.Draft, opens.Add(-time.Hour), template.ErrNotFound},
		{"scheduled", template.Published, opens.Add(-1), nil},
		{"paused before the opening", template.Paused, opens.Add(-1), nil},
		{"at the opening", template.Published, opens, template.ErrOpened},
		{"paused at the opening", template.Paused, opens, template.ErrOpened},
		{"ended by the clock", template.Published, opens.Add(time.Hour), template.ErrNotOpen},
		{"closed", template.Closed, opens.Add(-1), template.ErrNotOpen},
		{"cancelled", template.Cancelled, opens.Add(-1), template.ErrNotOpen},
	} {
		tpl := template.Template{Spec: validSpec(), Stored: c.stored}
		if got := tpl.AcceptsReservations(c.now); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPublishRemembersWhen(t *testing.T) {
	draft, now := inState(template.Draft)
	got, err := draft.Publish(now)
	if err != nil || got.PublishedAt == nil || !got.PublishedAt.Equal(now) || got.EndedAt != nil {
		t.Errorf("%+v %v", got, err)
	}
	for name, end := range map[string]func(template.Template, time.Time) (template.Template, error){
		"close": template.Template.Close, "cancel": template.Template.Cancel} {
		ended, err := end(got, now.Add(time.Minute))
		if err != nil || ended.EndedAt == nil || !ended.EndedAt.Equal(now.Add(time.Minute)) || !ended.PublishedAt.Equal(now) {
			t.Errorf("%s: %+v %v", name, ended, err)
		}
	}
}

func TestPublishChecksTheOpening(t *testing.T) {
	for _, c := range []struct {
		name string
		now  time.Time
		ok   bool
	}{
		{"a moment ahead", opens.Add(-1), true},
		{"now", opens, false},
		{"past", opens.Add(time.Minute), false},
		{"two years ahead", opens.Add(-template.MaxHorizon), true},
		{"more than two years ahead", opens.Add(-template.MaxHorizon - 1), false},
	} {
		draft := template.Template{Spec: validSpec(), Stored: template.Draft}
		_, err := draft.Publish(c.now)
		if named := brokenFields(err); (err == nil) != c.ok || !c.ok && len(named) != 1 || !c.ok && named[0] != "opens_at" {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := draft.CheckOpening(c.now); (err == nil) != c.ok {
			t.Errorf("%s: CheckOpening %v", c.name, err)
		}
	}
	broken := template.Template{Spec: validSpec(), Stored: template.Draft}
	broken.Stock = 0
	if _, err := broken.Publish(opens.Add(-time.Hour)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a draft without stock was published: %v", err)
	}
}

// TestCancelEndsAtTheOpening: after the opening users may hold coupons.
func TestCancelEndsAtTheOpening(t *testing.T) {
	for _, stored := range []template.State{template.Published, template.Paused} {
		tpl := template.Template{Spec: validSpec(), Stored: stored}
		if _, err := tpl.Cancel(opens.Add(-1)); err != nil {
			t.Errorf("%s a moment before the opening: %v", stored, err)
		}
		if got, err := tpl.Cancel(opens); !errors.Is(err, template.ErrTransition) || got.Stored != stored {
			t.Errorf("%s at the opening: %v, stored %s", stored, err, got.Stored)
		}
	}
	draft := template.Template{Spec: validSpec(), Stored: template.Draft}
	if _, err := draft.Cancel(opens.Add(time.Hour)); err != nil {
		t.Errorf("a draft whose opening went by: %v", err)
	}
}

func TestResumeGoesOnWhereTheClockIs(t *testing.T) {
	paused := template.Template{Spec: validSpec(), Stored: template.Paused, Issued: 100}
	for now, want := range map[time.Time]template.State{opens.Add(-1): template.Scheduled, opens: template.SoldOut} {
		got, err := paused.Resume(now)
		if err != nil || got.State(now) != want {
			t.Errorf("at %v: %s %v, want %s", now, got.State(now), err, want)
		}
	}
	if _, err := paused.Resume(opens.Add(time.Hour)); !errors.Is(err, template.ErrTransition) {
		t.Errorf("after the end: %v", err)
	}
}

func TestDraftMayChangeInEveryWay(t *testing.T) {
	draft := template.Template{Spec: validSpec(), Stored: template.Draft}
	until := opens.Add(48 * time.Hour)
	next := template.Spec{ShopNumber: 11, Name: "Other", Description: "d", Kind: template.PercentOff, PercentOff: 20, MaxOff: 5,
		Currency: "JPY", Target: template.Product, Product: "p", Stock: 1, PerUserLimit: 2, OpensAt: opens.Add(-time.Hour),
		ClosesAt: opens, ValidUntil: &until, Obtain: template.ByCode, ClaimMode: template.Gate, ClaimURL: "https://shop.example/c"}
	next = next.Own()
	got, err := draft.Edit(next, opens.Add(time.Hour)) // a draft may lie in the past
	if err != nil || got.Spec != next {
		t.Errorf("%+v %v", got.Spec, err)
	}
	next.Name = ""
	if _, err := draft.Edit(next, opens); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an invalid draft: %v", err)
	}
}

// TestADropEndsWithItsCoupons: once a coupon would expire as soon as it is issued, the drop is no
// longer open.
func TestADropEndsWithItsCoupons(t *testing.T) {
	closes := opens.Add(time.Hour)
	for _, c := range []struct {
		name  string
		until time.Time
		want  time.Time
	}{
		{"before the closing", closes.Add(-time.Minute), closes.Add(-time.Minute)},
		{"at the closing", closes, closes},
		{"after the closing", closes.Add(time.Minute), closes},
	} {
		for stored, running := range map[template.State]template.State{template.Published: template.Open, template.Paused: template.Paused} {
			tpl := template.Template{Spec: validSpec(), Stored: stored}
			tpl.ValidHours, tpl.ValidUntil = 0, &c.until
			if got := tpl.EndsAt(); !got.Equal(c.want) {
				t.Errorf("%s: ends at %v, want %v", c.name, got, c.want)
			}
			if before, at := tpl.State(c.want.Add(-1)), tpl.State(c.want); before != running || at != template.Closed {
				t.Errorf("%s: %s, and at the end %s", c.name, before, at)
			}
		}
	}
}

// A draft's opening may have just passed. An opening that lies further back is refused when it is
// set; a draft that has it already can be edited and moved ahead.
func TestDraftsRefuseAnOpeningInThePast(t *testing.T) {
	for _, c := range []struct {
		name string
		now  time.Time
		ok   bool
	}{
		{"ahead", opens.Add(-time.Hour), true},
		{"an hour ago", opens.Add(time.Hour), true},
		{"a day ago", opens.Add(template.MaxBehind), true},
		{"more than a day ago", opens.Add(template.MaxBehind + 1), false},
		{"years ago", opens.AddDate(6, 0, 0), false},
	} {
		draft := template.Template{Spec: validSpec(), Stored: template.Draft}
		s := validSpec()
		draft.OpensAt = opens.Add(-time.Minute)
		_, err := draft.Edit(s, c.now)
		if named := brokenFields(err); (err == nil) != c.ok || !c.ok && (len(named) != 1 || named[0] != "opens_at") {
			t.Errorf("%s: edited: %v", c.name, err)
		}
		s.Name, s.OpensAt = "A new name", draft.OpensAt
		if edited, err := draft.Edit(s, c.now); err != nil || edited.Name != s.Name {
			t.Errorf("%s: a new name: %v", c.name, err)
		}
		service := template.Service{Store: &fakeStore{}, Now: func() time.Time { return c.now }}
		if _, err := service.Create(t.Context(), staff.System(), validSpec(), ""); (err == nil) != c.ok {
			t.Errorf("%s: created: %v", c.name, err)
		}
	}
}

// TestStageOfADraw: a drop with a draw is never shown as open or sold out, and any other drop as its state.
func TestStageOfADraw(t *testing.T) {
	published := opens.Add(-3 * time.Hour)
	for _, c := range []struct {
		name         string
		mode         template.OpeningMode
		minutes      int
		at           time.Duration // from the opening on
		issued, held int64
		want         template.State
	}{
		{"before the entries of a shuffled opening", template.Shuffled, 30, -time.Hour, 0, 0, template.Scheduled},
		{"the first instant of its entries", template.Shuffled, 30, -30 * time.Minute, 0, 0, template.EntriesOpen},
		{"a draw from its publication on", template.ByDraw, 0, -3 * time.Hour, 0, 0, template.EntriesOpen},
		{"the close of entries", template.ByDraw, 0, 0, 0, 0, template.Sealed},
		{"the first coupon", template.ByDraw, 0, time.Minute, 1, 0, template.Drawn},
		{"the first offer", template.ByDraw, 0, time.Minute, 0, 1, template.Drawn},
		{"all coupons", template.ByDraw, 0, time.Minute, 100, 0, template.Drawn},
		{"the end", template.ByDraw, 0, time.Hour, 100, 0, template.Closed},
		{"no draw", template.FirstCome, 0, time.Minute, 100, 0, template.SoldOut},
	} {
		d, _ := inState(template.Scheduled)
		d.OpeningMode, d.EntryMinutes, d.Issued, d.Held, d.PublishedAt = c.mode, c.minutes, c.issued, c.held, &published
		if got := d.Stage(opens.Add(c.at)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
