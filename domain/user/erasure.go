package user

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// ErrErased is the refusal to store anything about an erased user.
var ErrErased = fault.New(fault.Conflict, "user_erased",
	"this user was erased, and nothing about them is stored again; staff of all shops can allow it on the user's page or by DELETE /admin/users/{id}/erasure")

// ErrNotErased is the answer to lifting an erasure that is none.
var ErrNotErased = fault.New(fault.NotFound, "erasure_not_found", "this user was not erased; nothing has to be lifted")

// An Erasure keeps a late import from storing an erased user again.
type Erasure struct {
	At time.Time
	By string // label and name
}

// ErasureStore erases users and stores the erasures.
type ErasureStore interface {
	// Erase removes everything stored about the user, and records the erasure. It
	// may be repeated after a failure. It returns [ErrNotFound] for a user who was
	// erased before and about whom nothing was stored since.
	Erase(ctx context.Context, id ID, e staff.Entry) error
	// Erasure returns nil for a user who was not erased.
	Erasure(ctx context.Context, id ID) (*Erasure, error)
	// Erased returns the ids among the given ones whose users were erased.
	Erased(ctx context.Context, ids []ID) (map[ID]bool, error)
	// LiftErasure allows to store something about the user again, or returns
	// [ErrNotErased].
	LiftErasure(ctx context.Context, id ID, e staff.Entry) error
	// Everything returns what is stored about the user as one JSON object:
	// the rows of every table that names them.
	Everything(ctx context.Context, id ID, e staff.Entry) (json.RawMessage, error)
}

// minTraceName is how long a name has to be, in characters, for it to be looked
// for in texts: shorter ones are parts of other words.
const minTraceName = 6

// Traces returns the texts by which a user can be recognised in other texts:
// contacts, addresses of devices, and the name if it is long enough.
func (u User) Traces() []string {
	list := []string{u.Email, strings.ToLower(u.Email), u.Phone, strings.TrimPrefix(u.Phone, "+")}
	for _, p := range u.Push {
		list = append(list, p.Endpoint)
	}
	for _, d := range u.Devices {
		list = append(list, d.Token)
	}
	if utf8.RuneCountInString(u.Name) >= minTraceName {
		list = append(list, u.Name)
	}
	// The longest first, so that none leaves a part of another.
	slices.SortFunc(list, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// Erase erases a user: name, contacts, preferences, attributes, reservations,
// memberships in lists, and every text that contains one of them. The bare id stays
// in coupons, deliveries and sums, so that totals still match. Nothing is stored
// about the id from then on until [Service.LiftErasure]. A user belongs to every
// shop. Erase returns [staff.ErrForbidden], [staff.ErrEveryShop] or, for a user who
// was erased before, [ErrNotFound].
func (s *Service) Erase(ctx context.Context, by staff.Actor, id ID) error {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return err
	}
	return s.Store.Erase(context.WithoutCancel(ctx), id, about(by, "user.erase", id))
}

// Erasure returns when and by whom the user was erased; nil if they were not.
func (s *Service) Erasure(ctx context.Context, by staff.Actor, id ID) (*Erasure, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Erasure(ctx, id)
}

// LiftErasure allows to store something about an erased user again.
func (s *Service) LiftErasure(ctx context.Context, by staff.Actor, id ID) error {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return err
	}
	return s.Store.LiftErasure(context.WithoutCancel(ctx), id, about(by, "user.lift_erasure", id))
}

// Everything returns all data stored about a user as one JSON object, to be given
// to the user. The audit log records the call.
func (s *Service) Everything(ctx context.Context, by staff.Actor, id ID) (json.RawMessage, error) {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return nil, err
	}
	return s.Store.Everything(ctx, id, about(by, "user.data", id))
}

func about(by staff.Actor, action string, id ID) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "user", ObjectID: id.String()}
}

// RowErased is why a row about an erased user is refused.
func RowErased() error {
	e := &fault.Fields{}
	e.Add("id", "rule.user_erased", "this user was erased; staff of all shops can allow them again on the user's page")
	return e
}

// refuseErased notes the changes about erased users as refused.
func (s *Service) refuseErased(ctx context.Context, batch []Change, refused map[int]error) error {
	ids := make([]ID, len(batch))
	for i, c := range batch {
		ids[i] = c.ID
	}
	erased, err := s.Store.Erased(ctx, ids)
	for i, c := range batch {
		if erased[c.ID] {
			refused[i] = RowErased()
		}
	}
	return err
}

// errOptOut returns nil instead of [ErrErased] if channels are turned off: an
// erased user is sent nothing anyway.
func errOptOut(err error, mask, off uint8) error {
	if errors.Is(err, ErrErased) && off&mask == mask {
		return nil
	}
	return err
}
