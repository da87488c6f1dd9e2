package template

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// A Model is a copy of a drop that was saved under a name, as a starting point for new drops of
// its shop. Later changes of the drop do not change it.
type Model struct {
	ID int64
	// Name is the name of the model. Drop is the drop as it was when the model was saved, with
	// its shop. Drop has no state, and its instants are the instants at that time.
	Name string
	Drop Template
}

// Limits of models.
const (
	MaxModels    = 50 // of a shop
	MaxModelName = 60
)

// Faults of models.
var (
	ErrModelNotFound = fault.New(fault.NotFound, "model_not_found", "there is no such model; load the page again")
	ErrModelTaken    = fault.New(fault.Conflict, "model_taken", "another model of the shop has this name; choose another name")
	ErrTooManyModels = fault.New(fault.Conflict, "too_many_models", "the shop has too many models; delete one first")
)

// ModelStore keeps models. Concurrent changes to the models of one shop are serialized.
type ModelStore interface {
	// Models returns the models of the shops (none = of all shops), by name.
	Models(ctx context.Context, shops []int64) ([]Model, error)
	// Model returns the model with the id. deleted says whether a deleted or an existing model is
	// meant; if there is none, it returns [ErrModelNotFound]. A model that was deleted longer
	// than [staff.DraftsKept] ago does not exist any more.
	Model(ctx context.Context, id int64, deleted bool) (Model, error)
	// SaveModel stores m and returns it with its id. It returns [ErrModelTaken], or
	// [ErrTooManyModels] if the shop has most other models.
	SaveModel(ctx context.Context, m Model, most int, e staff.Entry) (Model, error)
	// RenameModel returns [ErrModelNotFound] and [ErrModelTaken].
	RenameModel(ctx context.Context, id int64, name string, e staff.Entry) error
	// DeleteModel returns [ErrModelNotFound].
	DeleteModel(ctx context.Context, id int64, e staff.Entry) error
	// RestoreModel returns [ErrModelNotFound], [ErrModelTaken] and [ErrTooManyModels].
	RestoreModel(ctx context.Context, id int64, most int, e staff.Entry) error
}

// Models are the use cases of staff around models. Both fields are required.
type Models struct {
	Store     ModelStore
	Templates *Service
}

// Of lists the models of the actor's shops, by name.
func (s Models) Of(ctx context.Context, by staff.Actor) ([]Model, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Models(ctx, by.Shops)
}

// Model returns a model of the actor's shops, or [ErrModelNotFound].
func (s Models) Model(ctx context.Context, by staff.Actor, id int64) (Model, error) {
	return s.visible(ctx, by, id, false)
}

// Save saves a copy of the drop as it is now under a name. It returns a [fault.Fields],
// [ErrModelTaken], [ErrTooManyModels], [ErrNotFound] or [staff.ErrForbidden].
func (s Models) Save(ctx context.Context, by staff.Actor, drop int64, name string) (Model, error) {
	t, err := s.Templates.own(ctx, by, drop)
	if err != nil {
		return Model{}, err
	}
	m := Model{Drop: t}
	if m.Name, err = modelName(name); err != nil {
		return m, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SaveModel(ctx, m, MaxModels, m.entry(by, "model.save", nil, m.Name))
}

func modelName(typed string) (string, error) {
	name, e := strings.TrimSpace(typed), &fault.Fields{}
	if strings.ContainsAny(name, lineBreaks) {
		e.Add("name", "rule.one_line", "must be one line")
	} else {
		checkText(e, "name", name, 1, MaxModelName)
	}
	return name, e.Err()
}

// Rename gives the model another name. It returns a [fault.Fields],
// [ErrModelNotFound], [ErrModelTaken] or [staff.ErrForbidden].
func (s Models) Rename(ctx context.Context, by staff.Actor, id int64, typed string) (Model, error) {
	m, err := s.own(ctx, by, id, false)
	if err != nil {
		return m, err
	}
	name, err := modelName(typed)
	if err != nil || name == m.Name {
		return m, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return m, s.Store.RenameModel(ctx, id, name, m.entry(by, "model.rename", m.Name, name))
}

// Delete deletes the model; it can be restored for [staff.DraftsKept]. It returns
// [ErrModelNotFound] or [staff.ErrForbidden].
func (s Models) Delete(ctx context.Context, by staff.Actor, id int64) (Model, error) {
	m, err := s.own(ctx, by, id, false)
	if err != nil {
		return m, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return m, s.Store.DeleteModel(ctx, id, m.entry(by, "model.delete", m.Name, nil))
}

// Restore restores a deleted model; a second call changes nothing. It returns [ErrModelNotFound]
// if there is nothing to restore, [ErrModelTaken] if another model has the name by now,
// [ErrTooManyModels] or [staff.ErrForbidden].
func (s Models) Restore(ctx context.Context, by staff.Actor, id int64) (Model, staff.Undone, error) {
	if m, err := s.own(ctx, by, id, false); !errors.Is(err, ErrModelNotFound) {
		return m, staff.UndidBefore, err
	}
	m, err := s.own(ctx, by, id, true)
	if err != nil {
		return m, 0, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	err = s.Store.RestoreModel(ctx, id, MaxModels, m.entry(by, "model.restore", nil, m.Name))
	if errors.Is(err, ErrModelNotFound) { // another request was faster
		return m, staff.UndidBefore, nil
	}
	return m, staff.Undid, err
}

// visible returns a model of the actor's shops.
func (s Models) visible(ctx context.Context, by staff.Actor, id int64, deleted bool) (Model, error) {
	m, err := s.Store.Model(ctx, id, deleted)
	if err == nil && by.May(staff.View, m.Drop.ShopNumber) != nil {
		return Model{}, ErrModelNotFound
	}
	return m, err
}

// own returns a model that the actor may change.
func (s Models) own(ctx context.Context, by staff.Actor, id int64, deleted bool) (Model, error) {
	m, err := s.visible(ctx, by, id, deleted)
	if err != nil {
		return m, err
	}
	return m, by.May(staff.ManageTemplates, m.Drop.ShopNumber)
}

func (m Model) entry(by staff.Actor, action string, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "model", ObjectID: strconv.FormatInt(m.ID, 10),
		ShopNumber: m.Drop.ShopNumber, Before: before, After: after}
}

// Opening returns the model's drop with its opening at the given instant. The other instants keep
// their distance from the opening.
func (m Model) Opening(at time.Time) Template {
	t := m.Drop
	shift := at.Sub(t.OpensAt)
	t.OpensAt, t.ClosesAt = at, t.ClosesAt.Add(shift)
	if t.ValidUntil != nil {
		until := t.ValidUntil.Add(shift)
		t.ValidUntil = &until
	}
	return t
}
