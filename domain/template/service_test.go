package template_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// fakeStore is a store of one template that records changes.
type fakeStore struct {
	held    template.Template
	binned  template.Template // the deleted draft
	changes []template.Change
	queries []template.Query
	due     []template.Template
	refuse  map[int64]error
}

func (s *fakeStore) Template(_ context.Context, id int64) (template.Template, error) {
	if id != s.held.ID {
		return template.Template{}, template.ErrNotFound
	}
	return s.held, nil
}

func (s *fakeStore) Templates(_ context.Context, q template.Query) ([]template.Template, error) {
	s.queries = append(s.queries, q)
	return []template.Template{s.held}, nil
}

func (s *fakeStore) Insert(ctx context.Context, c template.Change) (template.Template, error) {
	return s.Save(ctx, c)
}

func (s *fakeStore) Save(_ context.Context, c template.Change) (template.Template, error) {
	if err := s.refuse[c.Template.ID]; err != nil {
		return c.Template, err
	}
	s.changes = append(s.changes, c)
	return c.Template, nil
}

func (s *fakeStore) DeleteDraft(_ context.Context, id, version int64, e staff.Entry) error {
	if s.held.ID != id || s.held.Version != version {
		return fault.ErrStale
	}
	s.changes = append(s.changes, template.Change{Template: s.held, Entry: e})
	s.binned, s.held = s.held, template.Template{}
	return nil
}

func (s *fakeStore) DeletedDraft(_ context.Context, id int64) (staff.DeletedDraft, error) {
	if s.binned.ID != id {
		return staff.DeletedDraft{}, template.ErrNotFound
	}
	return staff.DeletedDraft{ID: id, Shop: s.binned.ShopNumber, Name: s.binned.Name}, nil
}

func (s *fakeStore) RestoreDraft(_ context.Context, id int64, e staff.Entry) error {
	if s.binned.ID != id {
		return template.ErrNotFound
	}
	s.changes = append(s.changes, template.Change{Template: s.binned, Entry: e})
	s.held, s.binned = s.binned, template.Template{}
	s.held.Version++
	return nil
}

func (s *fakeStore) DueToClose(context.Context, int) ([]template.Template, error) { return s.due, nil }

func serviceAt(state template.State) (*template.Service, *fakeStore) {
	tpl, now := inState(state)
	s := &fakeStore{held: tpl, refuse: map[int64]error{}}
	return &template.Service{Store: s, Now: func() time.Time { return now }}, s
}

// busyStore is a store in which concurrent changes come first a few times.
type busyStore struct {
	*fakeStore
	rivals int
}

func (s *busyStore) Save(ctx context.Context, c template.Change) (template.Template, error) {
	if s.rivals > 0 {
		s.rivals--
		s.held.Version++
		return c.Template, fault.ErrStale
	}
	return s.fakeStore.Save(ctx, c)
}

// TestAPauseIsNotBasedOnAVersion: a pause without a version succeeds despite a concurrent edit. A
// pause with an outdated version is refused.
func TestAPauseIsNotBasedOnAVersion(t *testing.T) {
	by := staff.Actor{Label: "staff:1", Role: staff.Marketer}
	for _, c := range []struct {
		rivals  int
		version int64
		want    error
	}{{0, 0, nil}, {3, 0, nil}, {1, 3, fault.ErrStale}, {1000, 0, fault.ErrStale}} {
		service, store := serviceAt(template.Open)
		service.Store = &busyStore{store, c.rivals}
		if _, err := service.Do(t.Context(), by, 7, c.version, template.Pausing, "stop"); !errors.Is(err, c.want) {
			t.Errorf("%d others, version %d: %v", c.rivals, c.version, err)
			continue
		}
		if c.want == nil && (len(store.changes) != 1 || store.changes[0].Template.Version != 3+int64(c.rivals)) {
			t.Errorf("%d others: %+v", c.rivals, store.changes)
		}
	}
}

func TestEveryTransitionSaysWhoWhyAndWhat(t *testing.T) {
	by := staff.Actor{Label: "staff:1", Role: staff.Marketer}
	for _, c := range []struct {
		do       template.Transition
		from     template.State
		schedule template.Schedule
		event    string
		stored   template.State
	}{
		{template.Publishing, template.Draft, template.OpenSlots, event.TemplatePublished, template.Published},
		{template.Pausing, template.Scheduled, template.KeepSlots, event.TemplateChanged, template.Paused},
		{template.Resuming, template.Paused, template.KeepSlots, event.TemplateChanged, template.Published},
		{template.Closing, template.Open, template.CloseSlots, event.TemplateClosed, template.Closed},
		{template.Cancelling, template.Scheduled, template.CancelSlots, event.TemplateCancelled, template.Cancelled},
	} {
		service, store := serviceAt(c.from)
		before := store.held.Stored
		if _, err := service.Do(t.Context(), by, 7, 3, c.do, "because"); err != nil || len(store.changes) != 1 {
			t.Errorf("%s: %v, %d changes", c.do, err, len(store.changes))
			continue
		}
		got := store.changes[0]
		if got.Schedule != c.schedule || got.Event != c.event || got.Template.Stored != c.stored || got.Template.Version != 3 {
			t.Errorf("%s: %+v", c.do, got)
		}
		want := staff.Entry{Actor: by, Action: "template." + string(c.do), ObjectKind: "template", ObjectID: "7", ShopNumber: 10,
			Reason: "because", Before: before, After: c.stored}
		if e := got.Entry; e.Actor.Label != "staff:1" || e.Action != want.Action || e.ObjectID != want.ObjectID || e.Reason != want.Reason ||
			e.ShopNumber != want.ShopNumber || e.Before != want.Before || e.After != want.After {
			t.Errorf("%s: entry %+v, want %+v", c.do, e, want)
		}
	}
}

func TestRefusedChangesAreNotStored(t *testing.T) {
	marketer, viewer := staff.Actor{Role: staff.Marketer}, staff.Actor{Role: staff.Viewer}
	elsewhere := staff.Actor{Role: staff.Marketer, Shops: []int64{11}}
	moved := validSpec()
	moved.ShopNumber = 11
	broken := validSpec()
	broken.Name = ""
	for name, c := range map[string]struct {
		try  func(*template.Service) error
		want error
	}{
		"a viewer publishes":   {do(viewer, 7, 0, template.Publishing), staff.ErrForbidden},
		"another shop's staff": {do(elsewhere, 7, 0, template.Publishing), staff.ErrForbidden},
		"no such template":     {do(marketer, 8, 0, template.Publishing), template.ErrNotFound},
		"an old version":       {do(marketer, 7, 2, template.Publishing), fault.ErrStale},
		"an illegal step":      {do(marketer, 7, 3, template.Resuming), template.ErrTransition},
		"an unknown step":      {do(marketer, 7, 3, "explode"), fault.ErrInvalid},
		"a viewer edits":       {edit(viewer, 3, validSpec()), staff.ErrForbidden},
		"an old edit":          {edit(marketer, 2, validSpec()), fault.ErrStale},
		"an edit by version 0": {edit(marketer, 0, validSpec()), fault.ErrStale},
		"a broken edit":        {edit(marketer, 3, broken), fault.ErrInvalid},
		"moving it to a shop one may not manage": {
			edit(staff.Actor{Role: staff.Marketer, Shops: []int64{10}}, 3, moved), staff.ErrForbidden},
		"a viewer creates": {create(viewer, validSpec()), staff.ErrForbidden},
		"creating elsewhere": {
			create(elsewhere, validSpec()), staff.ErrForbidden},
		"creating a broken one": {create(marketer, broken), fault.ErrInvalid},
	} {
		service, store := serviceAt(template.Draft)
		if err := c.try(service); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if len(store.changes) != 0 {
			t.Errorf("%s was refused and stored", name)
		}
	}
}

func do(by staff.Actor, id, version int64, tr template.Transition) func(*template.Service) error {
	return func(s *template.Service) error {
		_, err := s.Do(context.Background(), by, id, version, tr, "")
		return err
	}
}

func edit(by staff.Actor, version int64, spec template.Spec) func(*template.Service) error {
	return func(s *template.Service) error {
		_, err := s.Edit(context.Background(), by, 7, template.Edition{Version: version, Spec: spec})
		return err
	}
}

func create(by staff.Actor, spec template.Spec) func(*template.Service) error {
	return func(s *template.Service) error {
		_, err := s.Create(context.Background(), by, spec, "")
		return err
	}
}

func TestOnlyAMoveOfAPublishedOpeningMovesSlots(t *testing.T) {
	for _, c := range []struct {
		from   template.State
		move   time.Duration
		want   template.Schedule
		event  string
		action string
	}{
		{template.Scheduled, time.Minute, template.MoveSlots, event.TemplateMoved, "template.move"},
		{template.Paused, time.Minute, template.MoveSlots, event.TemplateMoved, "template.move"},
		{template.Scheduled, 0, template.KeepSlots, event.TemplateChanged, "template.edit"},
		{template.Draft, time.Minute, template.KeepSlots, event.TemplateChanged, "template.edit"},
	} {
		service, store := serviceAt(c.from)
		s := store.held.Spec
		s.OpensAt, s.Name = s.OpensAt.Add(c.move), "Another name"
		if err := edit(staff.System(), 3, s)(service); err != nil {
			t.Errorf("%s by %v: %v", c.from, c.move, err)
			continue
		}
		if got := store.changes[0]; got.Schedule != c.want || got.Event != c.event || got.Entry.Action != c.action {
			t.Errorf("%s by %v: %+v", c.from, c.move, got)
		}
	}
}

func TestListsShowOnlyTheActorsShops(t *testing.T) {
	for _, c := range []struct {
		name         string
		mine, asked  []int64
		want         []int64
		nothingAsked bool
	}{
		{"everybody's", nil, nil, nil, false},
		{"asked for", nil, []int64{10}, []int64{10}, false},
		{"mine", []int64{10, 11}, nil, []int64{10, 11}, false},
		{"mine among those asked for", []int64{10, 11}, []int64{11, 12}, []int64{11}, false},
		{"none of mine", []int64{10}, []int64{12}, nil, true},
	} {
		service, store := serviceAt(template.Draft)
		got, err := service.Templates(t.Context(), staff.Actor{Role: staff.Viewer, Shops: c.mine}, template.Query{Shops: c.asked})
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.nothingAsked && (len(store.queries) != 0 || len(got) != 0):
			t.Errorf("%s: asked %+v", c.name, store.queries)
		case !c.nothingAsked && (len(store.queries) != 1 || !slices.Equal(store.queries[0].Shops, c.want)):
			t.Errorf("%s: asked %+v", c.name, store.queries)
		}
	}
	service, _ := serviceAt(template.Draft)
	if _, err := service.Templates(t.Context(), staff.Actor{}, template.Query{}); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("somebody without a role: %v", err)
	}
	if _, err := service.Template(t.Context(), staff.Actor{Role: staff.Viewer, Shops: []int64{11}}, 7); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("another shop's viewer: %v", err)
	}
}

// TestCloseEndedSkipsWhatSomebodyElseChanged: if several sweeps run at once, each template is
// closed by one of them. A failure leaves the following templates for the next sweep.
func TestCloseEndedSkipsWhatSomebodyElseChanged(t *testing.T) {
	service, store := serviceAt(template.Open)
	for id := range int64(4) {
		tpl := store.held
		tpl.ID = id + 1
		store.due = append(store.due, tpl)
	}
	store.refuse[2] = fault.ErrStale
	if n, err := service.CloseEnded(t.Context(), 10); n != 3 || err != nil {
		t.Errorf("%d closed, %v", n, err)
	}
	for _, c := range store.changes {
		if c.Template.Stored != template.Closed || c.Template.EndedAt == nil || c.Schedule != template.CloseSlots ||
			c.Event != event.TemplateClosed || c.Entry.Actor.Label != "system" {
			t.Errorf("%+v", c)
		}
	}
	broken := errors.New("disk full")
	store.refuse[3] = broken
	if n, err := service.CloseEnded(t.Context(), 10); n != 1 || !errors.Is(err, broken) {
		t.Errorf("%d closed, %v", n, err)
	}
}

// TestCloseEndedBehindTheDatabasesClock: the templates that a worker with a slow clock closes are
// not recorded as closed early by staff.
func TestCloseEndedBehindTheDatabasesClock(t *testing.T) {
	service, store := serviceAt(template.Open)
	store.due = []template.Template{store.held, store.held}
	store.due[0].ClosesAt, store.due[1].ClosesAt = service.Now().Add(time.Second), service.Now().Add(-time.Second)
	if n, err := service.CloseEnded(t.Context(), 10); n != 2 || err != nil {
		t.Fatalf("%d closed, %v", n, err)
	}
	slow, right := store.changes[0].Template, store.changes[1].Template
	if !slow.EndedAt.Equal(slow.ClosesAt) || !right.EndedAt.Equal(service.Now()) {
		t.Errorf("ended at %v and %v, closes at %v", slow.EndedAt, right.EndedAt, slow.ClosesAt)
	}
}

// TestCloseEndedWhenTheCouponsHaveExpired: the sweep says which end it was.
func TestCloseEndedWhenTheCouponsHaveExpired(t *testing.T) {
	service, store := serviceAt(template.Open)
	expired, early := store.held, store.held
	expired.ValidUntil, early.ValidUntil = new(service.Now().Add(-time.Second)), new(service.Now().Add(time.Second))
	store.due = []template.Template{expired, early}
	if n, err := service.CloseEnded(t.Context(), 10); n != 2 || err != nil {
		t.Fatalf("%d closed, %v", n, err)
	}
	for i, want := range []time.Time{service.Now(), *early.ValidUntil} {
		if c := store.changes[i]; !c.Template.EndedAt.Equal(want) || c.Entry.Reason != staff.ReasonValidUntil {
			t.Errorf("ended at %v because %s, want %v", c.Template.EndedAt, c.Entry.Reason, want)
		}
	}
}

// TestAnEditThatChangesNothing: an edit without changes makes no version, whatever zone its
// instants are written in. If it is based on an old version, it is refused nevertheless.
func TestAnEditThatChangesNothing(t *testing.T) {
	for _, state := range []template.State{template.Draft, template.Scheduled, template.Open, template.Paused} {
		service, store := serviceAt(state)
		store.held.Threshold = 5 // as programs before this one kept it
		store.held.ValidHours, store.held.ValidUntil = 0, new(opens.Add(48*time.Hour))
		shanghai := time.FixedZone("", 8*3600)
		s := store.held.Spec
		s.OpensAt, s.ClosesAt, s.ValidUntil = s.OpensAt.In(shanghai), s.ClosesAt.In(shanghai), new(s.ValidUntil.In(shanghai))
		got, err := service.Edit(t.Context(), staff.System(), 7, template.Edition{Version: 3, Spec: s})
		if err != nil || got.Version != 3 || len(store.changes) != 0 {
			t.Errorf("%s: version %d, %d changes, %v", state, got.Version, len(store.changes), err)
		}
		if err := edit(staff.System(), 2, s)(service); !errors.Is(err, fault.ErrStale) {
			t.Errorf("%s, an old version: %v", state, err)
		}
	}
}
