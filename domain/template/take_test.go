package template_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// overtakenStore is a store in which one concurrent change comes first.
type overtakenStore struct {
	*fakeStore
	by func(*template.Template)
}

func (s *overtakenStore) Save(ctx context.Context, c template.Change) (template.Template, error) {
	if s.by != nil {
		s.by(&s.held)
		s.held.Version, s.by = s.held.Version+1, nil
		return c.Template, fault.ErrStale
	}
	return s.fakeStore.Save(ctx, c)
}

// TestTakingAStep: a wish is carried out, was carried out already, or finds a template that
// differs from the form. A refusal comes with its template.
func TestTakingAStep(t *testing.T) {
	by := staff.Actor{Label: "staff:1", Role: staff.Marketer}
	publish := template.Wish{Step: template.Publishing, Version: 3}
	published := func(t *template.Template) { *t, _ = t.Publish(t.OpensAt.Add(-1)) }
	for name, c := range map[string]struct {
		from    template.State
		wish    template.Wish
		rival   func(*template.Template)
		outcome template.Outcome
		want    error
		stored  int
	}{
		"publish":                    {from: template.Draft, wish: publish, outcome: template.Taken, stored: 1},
		"publish what nobody saw":    {from: template.Draft, wish: template.Wish{Step: template.Publishing}, outcome: template.Changed},
		"publish an older version":   {from: template.Draft, wish: template.Wish{Step: template.Publishing, Version: 2}, outcome: template.Changed},
		"publish twice":              {from: template.Scheduled, wish: publish, outcome: template.AlreadyTaken},
		"publish with a colleague":   {from: template.Draft, wish: publish, rival: published, outcome: template.AlreadyTaken},
		"publish what is edited":     {from: template.Draft, wish: publish, rival: func(t *template.Template) { t.Name = "other" }, outcome: template.Changed},
		"pause":                      {from: template.Open, wish: template.Wish{Step: template.Pausing}, outcome: template.Taken, stored: 1},
		"pause an older version":     {from: template.Open, wish: template.Wish{Step: template.Pausing, Version: 1}, outcome: template.Taken, stored: 1},
		"pause twice":                {from: template.Paused, wish: template.Wish{Step: template.Pausing}, outcome: template.AlreadyTaken},
		"resume":                     {from: template.Paused, wish: template.Wish{Step: template.Resuming}, outcome: template.Taken, stored: 1},
		"resume what was not paused": {from: template.Open, wish: template.Wish{Step: template.Resuming}, want: template.ErrTransition},
		"pause a draft":              {from: template.Draft, wish: template.Wish{Step: template.Pausing}, want: template.ErrTransition},
		"cancel twice":               {from: template.Cancelled, wish: template.Wish{Step: template.Cancelling}, outcome: template.AlreadyTaken},
		"close twice":                {from: template.Closed, wish: template.Wish{Step: template.Closing}, outcome: template.AlreadyTaken},
	} {
		service, store := serviceAt(c.from)
		service.Store = &overtakenStore{store, c.rival}
		got, outcome, err := service.Take(t.Context(), by, 7, c.wish)
		if outcome != c.outcome || !errors.Is(err, c.want) || got.ID != 7 || len(store.changes) != c.stored {
			t.Errorf("%s: outcome %d, %v, template %d, %d changes", name, outcome, err, got.ID, len(store.changes))
		}
	}
	service, store := serviceAt(template.Draft)
	viewer := staff.Actor{Label: "staff:2", Role: staff.Viewer}
	if _, _, err := service.Take(t.Context(), viewer, 7, publish); !errors.Is(err, staff.ErrForbidden) || len(store.changes) > 0 {
		t.Errorf("a viewer publishes: %v", err)
	}
}

// TestRedo: a repeated attempt succeeds if the first attempt was stored. Otherwise it is refused
// with the error of the first attempt.
func TestRedo(t *testing.T) {
	by := staff.Actor{Label: "staff:1", Role: staff.Marketer}
	for _, c := range []struct {
		from template.State
		step template.Transition
		want error
	}{
		{template.Draft, template.Publishing, nil}, {template.Scheduled, template.Publishing, nil}, {template.Open, template.Resuming, nil},
		{template.Closed, template.Publishing, template.ErrTransition}, {template.Draft, template.Pausing, template.ErrTransition},
	} {
		service, _ := serviceAt(c.from)
		if _, err := service.Redo(t.Context(), by, 7, 0, c.step, ""); !errors.Is(err, c.want) {
			t.Errorf("%s of what is %s: %v, want %v", c.step, c.from, err, c.want)
		}
	}
}
