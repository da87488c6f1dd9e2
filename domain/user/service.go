package user

import (
	"context"
	"errors"

	"dropbell/domain/staff"
)

// Store keeps users.
type Store interface {
	ErasureStore
	DeviceStore
	BrowserStore
	// User returns [ErrNotFound] if nothing is known about the id.
	User(ctx context.Context, id ID) (User, error)
	// HouseholdSize returns how many users are of the household.
	HouseholdSize(ctx context.Context, household string) (int64, error)
	// Upsert applies all changes, each to another user, or none of them. It creates
	// users that are not known yet. An entry without an action is not recorded. It
	// returns [ErrErased] if one of the users was erased.
	Upsert(ctx context.Context, changes []Change, e staff.Entry) error
	// SetOptOuts sets the channels in mask to their bits in off and returns the
	// result. It creates a user who is not known. It changes nothing else, so it
	// cannot undo a concurrent change. An entry without an action is not recorded.
	SetOptOuts(ctx context.Context, id ID, mask, off uint8, e staff.Entry) (uint8, error)
}

// Service holds the use cases about the data of users.
type Service struct {
	Store Store
	// AllowLocalPush accepts push endpoints without TLS and on addresses
	// instead of names. Only for development: with it any user can make the
	// sender call hosts inside the network.
	AllowLocalPush bool
}

// Upsert stores a batch of changes of users. A change that breaks a rule is left
// out as a whole and reported, by its index, as a [fault.Fields]; all other changes
// are stored together. Several changes of one user are applied in order. It returns
// how many changes were stored, or [staff.ErrForbidden] or [staff.ErrEveryShop]: a
// user belongs to every shop.
func (s *Service) Upsert(ctx context.Context, by staff.Actor, batch []Change) (int, map[int]error, error) {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return 0, nil, err
	}
	rules := s.rules()
	refused := map[int]error{}
	if err := s.refuseErased(ctx, batch, refused); err != nil {
		return 0, nil, err
	}
	place := make(map[ID]int, len(batch))
	distinct := make([]Change, 0, len(batch))
	for i, c := range batch {
		if err := rules.check(c); err != nil && refused[i] == nil {
			refused[i] = err
		}
		if refused[i] != nil {
			continue
		}
		if at, ok := place[c.ID]; ok {
			distinct[at] = distinct[at].then(c)
			continue
		}
		place[c.ID] = len(distinct)
		distinct = append(distinct, c)
	}
	if len(distinct) == 0 {
		return 0, refused, nil
	}
	if err := s.Store.Upsert(ctx, distinct, imported(by, distinct)); err != nil {
		return 0, nil, err
	}
	return len(batch) - len(refused), refused, nil
}

// imported records that users changed, not how: contacts do not belong in a log.
func imported(by staff.Actor, changes []Change) staff.Entry {
	first, last := changes[0].ID, changes[0].ID
	for _, c := range changes {
		first, last = min(first, c.ID), max(last, c.ID)
	}
	return staff.Entry{Actor: by, Action: "user.import", ObjectKind: "user", ObjectID: first.String(),
		After: map[string]any{"users": len(changes), "first": first.String(), "last": last.String()}}
}

// Preferences returns the stored data of the user, only the id for an unknown user.
func (s *Service) Preferences(ctx context.Context, id ID) (User, error) {
	u, err := s.Store.User(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return User{ID: id}, nil
	}
	return u, err
}

// SetPreferences applies the user's own change and returns the result. It creates a
// user who is not known. It returns a [fault.Fields] that names every broken rule.
func (s *Service) SetPreferences(ctx context.Context, c Change) (User, error) {
	if err := s.rules().check(c); err != nil {
		return User{}, err
	}
	if err := s.Store.Upsert(ctx, []Change{c}, staff.Entry{}); err != nil {
		return User{}, err
	}
	return s.Store.User(ctx, c.ID)
}

// OptOut turns the channels in mask off or, if their bit in off is not set, on
// again. The user decides, authenticated by a link that only the user has.
func (s *Service) OptOut(ctx context.Context, id ID, mask, off uint8) (uint8, error) {
	now, err := s.Store.SetOptOuts(ctx, id, mask, off&mask, staff.Entry{})
	return now, errOptOut(err, mask, off)
}

// AddOptOuts turns the channels in off off for a user. Staff of any shop may do
// so at a customer's request; only the user and staff of all shops may turn a
// channel on again.
func (s *Service) AddOptOuts(ctx context.Context, by staff.Actor, id ID, off uint8) error {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return err
	}
	_, err := s.Store.SetOptOuts(context.WithoutCancel(ctx), id, off, off, staff.Entry{Actor: by, Action: "user.edit", ObjectKind: "user",
		ObjectID: id.String(), After: map[string]any{"fields": Change{OptOuts: &off}.fields()}})
	return err
}

// Edit is a change of one user by staff. It creates a user who is not known. It
// returns [staff.ErrForbidden], [staff.ErrEveryShop] or a [fault.Fields].
func (s *Service) Edit(ctx context.Context, by staff.Actor, c Change) error {
	if err := by.MayEverywhere(staff.ManageUsers); err != nil {
		return err
	}
	if err := s.rules().check(c); err != nil {
		return err
	}
	// Names of fields without their values: contacts do not belong in a log.
	return s.Store.Upsert(context.WithoutCancel(ctx), []Change{c}, staff.Entry{Actor: by, Action: "user.edit", ObjectKind: "user",
		ObjectID: c.ID.String(), After: map[string]any{"fields": c.fields()}})
}

// HouseholdSize returns how many users are of the user's household; 0 = of none that is known.
func (s *Service) HouseholdSize(ctx context.Context, by staff.Actor, u User) (int64, error) {
	if err := by.May(staff.View, 0); err != nil || u.Household == "" {
		return 0, err
	}
	return s.Store.HouseholdSize(ctx, u.Household)
}

func (s *Service) rules() *rules {
	return &rules{localPush: s.AllowLocalPush, zones: map[string]bool{}}
}
