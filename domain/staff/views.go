package staff

import (
	"context"
	"strings"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
)

// A SavedView is a list's filters that a member saved under a name.
type SavedView struct {
	ID    int64
	Owner int64 // the member's id
	By    string
	// List names the list, and Query are its filters as in an address.
	List, Name, Query string
	// Shared views are offered to every member.
	Shared bool
}

// Limits of views.
const (
	MaxViews     = 30 // of a member and list
	MaxViewName  = 60
	MaxViewQuery = 1000
)

// Faults of views.
var (
	ErrViewNotFound = fault.New(fault.NotFound, "view_not_found", "there is no such view; load the page again")
	ErrViewTaken    = fault.New(fault.Conflict, "view_taken", "another of your views has this name; choose another name")
	ErrTooManyViews = fault.New(fault.Conflict, "too_many_views", "there are too many views; delete one first")
)

// ViewStore keeps views.
type ViewStore interface {
	// Views returns the member's own views of the list and the shared views of
	// other members, by name.
	Views(ctx context.Context, member int64, list string) ([]SavedView, error)
	// View returns [ErrViewNotFound] if there is none.
	View(ctx context.Context, id int64) (SavedView, error)
	// SaveView stores a view of v.Owner; it replaces a view with the same name. It
	// returns [ErrTooManyViews] if the owner has already most other views of the
	// list.
	SaveView(ctx context.Context, v SavedView, most int) error
	// RenameView returns [ErrViewNotFound], and [ErrViewTaken].
	RenameView(ctx context.Context, id int64, name string) error
	// DeleteView deletes the view, if it is there.
	DeleteView(ctx context.Context, id int64) error
}

// Views are the use cases of saved views. A view contains filters and no data: the
// rows of a list depend on the member who opens it.
type Views struct{ Store ViewStore }

// Of returns the views of the list that the member may open.
func (s Views) Of(ctx context.Context, m Member, list string) ([]SavedView, error) {
	return s.Store.Views(ctx, m.ID, list)
}

// Open returns one of the member's own views or a shared view, otherwise
// [ErrViewNotFound].
func (s Views) Open(ctx context.Context, m Member, id int64) (SavedView, error) {
	v, err := s.Store.View(ctx, id)
	if err == nil && v.Owner != m.ID && !v.Shared {
		err = ErrViewNotFound
	}
	return v, err
}

// Save saves the filters of a list under a name, replacing the member's view of
// that name. It returns a [fault.Fields], or [ErrTooManyViews].
func (s Views) Save(ctx context.Context, m Member, v SavedView) error {
	v.Owner, v.Name = m.ID, strings.TrimSpace(v.Name)
	e := &fault.Fields{}
	checkViewName(e, v.Name)
	if v.Query == "" {
		e.Add("query", "rule.view_filters", "set filters first")
	}
	if utf8.RuneCountInString(v.Query) > MaxViewQuery {
		e.Add("query", "rule.view_long", "these filters are too long to be saved")
	}
	if err := e.Err(); err != nil {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SaveView(ctx, v, MaxViews)
}

func checkViewName(e *fault.Fields, name string) {
	if name == "" {
		e.Add("name", "rule.required", "is required")
		return
	}
	checkName(e, name, MaxViewName)
}

// MayChange reports whether the member may rename and delete the view. Members may
// change their own views; staff who manage staff everywhere may also change shared
// views.
func (v SavedView) MayChange(m Member) bool {
	return v.Owner == m.ID || v.Shared && m.Actor().MayEverywhere(ManageStaff) == nil
}

func (s Views) own(ctx context.Context, m Member, id int64) (SavedView, error) {
	v, err := s.Open(ctx, m, id)
	if err == nil && !v.MayChange(m) {
		err = ErrForbidden
	}
	return v, err
}

// Rename gives the view another name. It returns a [fault.Fields],
// [ErrViewNotFound], [ErrForbidden] or [ErrViewTaken].
func (s Views) Rename(ctx context.Context, m Member, id int64, name string) (SavedView, error) {
	v, err := s.own(ctx, m, id)
	if err != nil {
		return v, err
	}
	name = strings.TrimSpace(name)
	e := &fault.Fields{}
	checkViewName(e, name)
	if err := e.Err(); err != nil {
		return v, err
	}
	return v, s.Store.RenameView(ctx, id, name)
}

// Delete deletes the view. It returns [ErrViewNotFound] or [ErrForbidden].
func (s Views) Delete(ctx context.Context, m Member, id int64) (SavedView, error) {
	v, err := s.own(ctx, m, id)
	if err != nil {
		return v, err
	}
	return v, s.Store.DeleteView(ctx, id)
}
