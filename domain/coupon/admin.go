package coupon

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A Query selects coupons, newest first.
type Query struct {
	ID         int64   // 0 = any
	UserID     user.ID // 0 = any
	OrderID    string  // of any step ever, "" = any
	TemplateID int64   // 0 = any
	State      State   // as shown at the database's present; "" = any
	Shops      []int64 // empty = all
	BeforeID   int64   // keyset: only coupons with a smaller id
	Limit      int
	// Doors asks for the doors of the owners; see [Listed].
	Doors bool
}

// Empty reports whether the query would list every coupon there is.
func (q Query) Empty() bool {
	return q.ID == 0 && q.UserID == 0 && q.OrderID == "" && q.TemplateID == 0
}

// A Listed is a coupon with the other columns of a table of coupons.
type Listed struct {
	Coupon
	Rule         Rule
	TemplateName string
	ShopNumber   int64
	ShopName     string
	ShopTimezone string
	Now          time.Time // the database's clock
	// Door is the place of the door through which the owner comes, 0 = none, or not asked for.
	Door int
}

// Zone returns the shop's time zone, UTC when unknown.
func (l Listed) Zone() *time.Location {
	if loc, err := time.LoadLocation(l.ShopTimezone); err == nil {
		return loc
	}
	return time.UTC
}

// A LockCursor is the last lock of the page before; the zero one is the start.
type LockCursor struct {
	Until time.Time
	ID    int64
}

// AdminStore reads coupons for staff.
type AdminStore interface {
	// Case loads the coupon with the history of one order, or returns
	// [ErrNotFound].
	Case(ctx context.Context, id int64, order string) (Case, error)
	// Save stores the move in one transaction, with one event for each change
	// of state, and returns the coupon as it is then. It returns [ErrRaced]
	// if the coupon has changed since it was loaded.
	Save(ctx context.Context, m Move) (Coupon, error)
	Listed(ctx context.Context, q Query) ([]Listed, error)
	// Locks lists locked coupons, those whose lock ends first leading.
	Locks(ctx context.Context, shops []int64, after LockCursor, limit int) ([]Listed, error)
	// Operations lists the coupon's log, oldest first.
	Operations(ctx context.Context, id int64, limit int) ([]Operation, error)
	// RevokedBy returns the job that revoked the coupon, 0 if none did.
	RevokedBy(ctx context.Context, id int64) (jobID int64, err error)
	// GivenByKey returns the coupon that staff gave with the claim's key, 0 if there is none.
	GivenByKey(ctx context.Context, key string) (int64, error)
}

// Admin holds the use cases of staff around single coupons.
type Admin struct {
	Store AdminStore
	// Doors finds the doors of owners.
	Doors Placer
}

// A Placer finds doors of users.
type Placer interface {
	// Places returns the place of the door of each user, 0 = none, for users in ascending order of their ids.
	Places(ctx context.Context, templateID int64, users []user.ID) ([]uint8, error)
}

// List returns the coupons that the query selects and the actor may see.
func (d *Admin) List(ctx context.Context, by staff.Actor, q Query) ([]Listed, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	q.Shops = by.Shops
	list, err := d.Store.Listed(ctx, q)
	if err != nil || !q.Doors {
		return list, err
	}
	return list, d.place(ctx, list)
}

// place fills in the doors of the owners.
func (d *Admin) place(ctx context.Context, list []Listed) error {
	owners := map[int64][]user.ID{}
	for _, l := range list {
		owners[l.TemplateID] = append(owners[l.TemplateID], l.UserID)
	}
	for template, users := range owners {
		slices.Sort(users)
		users = slices.Compact(users)
		places, err := d.Doors.Places(ctx, template, users)
		if err != nil {
			return err
		}
		for i := range list {
			if at, found := slices.BinarySearch(users, list[i].UserID); found && list[i].TemplateID == template {
				list[i].Door = int(places[at])
			}
		}
	}
	return nil
}

// OpenLocks returns the coupons that orders hold, of the actor's shops.
func (d *Admin) OpenLocks(ctx context.Context, by staff.Actor, after LockCursor, limit int) ([]Listed, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return d.Store.Locks(ctx, by.Shops, after, limit)
}

// logLines bounds what is shown of one coupon's log.
const logLines = 500

// Coupon returns one coupon with its log, or [ErrNotFound], or
// [staff.ErrForbidden].
func (d *Admin) Coupon(ctx context.Context, by staff.Actor, id int64) (Listed, []Operation, error) {
	list, err := d.Store.Listed(ctx, Query{ID: id, Limit: 1})
	if err != nil {
		return Listed{}, nil, err
	}
	if len(list) == 0 {
		return Listed{}, nil, ErrNotFound
	}
	if err := by.May(staff.View, list[0].ShopNumber); err != nil {
		return Listed{}, nil, err
	}
	ops, err := d.Store.Operations(ctx, id, logLines)
	return list[0], ops, err
}

// Revoke revokes an unused coupon. With toStock the coupon no longer counts as
// issued, so another user can get one; it still counts for its own user's limit.
// Revoke returns a [fault.Fields] without a reason, [ErrNotFound],
// [staff.ErrForbidden], or [ErrNotUsable] for a coupon that is not unused. A coupon
// that was revoked before stays as it is.
func (d *Admin) Revoke(ctx context.Context, by staff.Actor, id int64, reason string, toStock bool) (Coupon, error) {
	return d.do(ctx, by, id, "", reason, "coupon.revoke", staff.ManageUsers, func(c Case) (Move, error) { return c.revoke(toStock) })
}

// takeBack is Revoke for a job, which the log names. It returns the state in
// which the coupon was found.
func (d *Admin) takeBack(ctx context.Context, by staff.Actor, id int64, reason string, toStock bool, jobID int64) (found State, err error) {
	_, err = d.do(ctx, by, id, "", reason, "coupon.revoke", staff.ManageUsers, func(c Case) (Move, error) {
		found = c.Coupon.At(c.Now)
		m, err := c.revoke(toStock)
		m.Job = jobID
		return m, err
	})
	return found, err
}

// Release ends the order's lock on the coupon, as payment could. It is for locks
// whose payment will never answer. It returns a [fault.Fields], [ErrNotFound],
// [staff.ErrForbidden], or [ErrNotUsable] if the order does not hold the coupon.
func (d *Admin) Release(ctx context.Context, by staff.Actor, id int64, order, reason string) (Coupon, error) {
	if err := CheckOrderID(order); err != nil {
		return Coupon{}, err
	}
	return d.do(ctx, by, id, order, reason, "coupon.release", staff.Operate, func(c Case) (Move, error) { return c.endLock(order) })
}

// endLock is a release by staff. An order that does not hold the coupon is refused.
func (c Case) endLock(order string) (Move, error) {
	if !c.Coupon.heldBy(order) {
		if _, again := c.did(StepRelease); again {
			return c.nothing(), nil
		}
		return Move{}, ErrNotUsable.Because("the order does not hold the coupon any more; load the coupon again")
	}
	m, no := c.release(order)
	if no != nil {
		return m, no.err
	}
	return m, nil
}

// MayRevoke returns [ErrNotUsable] with the reason if there is nothing that
// [Admin.Revoke] could take away.
func (l Listed) MayRevoke() error {
	m, err := Case{Coupon: l.Coupon, Now: l.Now}.revoke(false)
	if err == nil && len(m.Ops) == 0 {
		return ErrNotUsable.Because("the coupon was revoked before; nothing is left to do")
	}
	return err
}

// MayRelease returns [ErrNotUsable] with the reason if the order has no lock that
// [Admin.Release] could end.
func (l Listed) MayRelease(order string) error {
	_, err := Case{Coupon: l.Coupon, Now: l.Now}.endLock(order)
	return err
}

// do takes a step for staff; actor and reason are written to the log and the
// audit.
func (d *Admin) do(ctx context.Context, by staff.Actor, id int64, order, reason, action string, needs staff.Permission,
	decide func(Case) (Move, error)) (Coupon, error) {
	if err := by.May(needs, 0); err != nil {
		return Coupon{}, err
	}
	if err := CheckReason(reason); err != nil {
		return Coupon{}, err
	}
	for range Turns {
		c, err := d.Store.Case(ctx, id, order)
		if err != nil {
			return c.Coupon, err
		}
		if err := by.May(needs, c.ShopNumber); err != nil {
			return c.Coupon, err
		}
		m, err := decide(c)
		if err != nil || len(m.Ops) == 0 {
			return c.Coupon, err
		}
		m = m.by(by.Label + " " + by.Name)
		for i := range m.Ops {
			m.Ops[i].Reason = reason
		}
		m.Entry = &staff.Entry{Actor: by, Action: action, ObjectKind: "coupon", ObjectID: itoa(id), ShopNumber: c.ShopNumber,
			Reason: reason, Before: shown(m.From), After: shown(m.To)}
		saved, err := detach.Write(ctx, func(ctx context.Context) (Coupon, error) { return d.Store.Save(ctx, m) })
		if !errors.Is(err, ErrRaced) {
			return saved, err
		}
	}
	return Coupon{}, ErrBusy
}

// A Shown coupon is what the audit log keeps of one.
type Shown struct {
	State    State  `json:"state"`
	OrderID  string `json:"order_id,omitempty"`
	Returned bool   `json:"returned_to_stock,omitempty"`
}

func shown(c Coupon) Shown { return Shown{c.State, c.OrderID, c.Returned} }
