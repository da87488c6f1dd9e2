package claim

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Gate decides claims. It never issues more coupons than the template's stock
// nor more than its limit to one user, in any interleaving and on any number of
// nodes; a refusal changes nothing.
//
// Claim returns the coupon's claim, or the first of these that holds:
// [ErrIdempotency] if the key was used for another template or by another user;
// a repetition is answered like the first time, whatever has happened since;
// [template.ErrNotFound] (a draft does not exist for users);
// [template.ErrNotOpen] (cancelled, not obtained this way); [ErrEnded];
// [template.ErrNotOpen] (paused); [ErrNotStarted]; [ErrSoldOut], before the
// limit so that a prefilter and the gate give the same answer; [ErrLimit];
// [ErrHousehold]. A refusal is not stored: the same request is decided anew next time.
// [ErrOverloaded] and other faults of kind Unavailable leave open whether the
// claim was decided: repeat the request with the same key.
type Gate interface {
	Claim(ctx context.Context, r Request) (Claim, error)
}

// Lookup finds templates quickly; its answers may be a second old.
type Lookup interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
}

// Finder finds claims and their outcomes.
type Finder interface {
	// ByID returns [ErrNotFound] if it finds no such claim of the user.
	ByID(ctx context.Context, by user.ID, id ID) (Claim, error)
}

// Coupons reads the coupons of users.
type Coupons interface {
	// Coupons lists a user's coupons, newest first.
	Coupons(ctx context.Context, q Query) ([]Coupon, error)
}

// A Query selects coupons of one user.
type Query struct {
	UserID user.ID
	State  string // as [Coupon.State]; empty = all
	Before int64  // keyset: only coupons with smaller ids; 0 = from the start
	Limit  int
}

// A Coupon is one coupon as its owner sees it.
type Coupon struct {
	ID       int64
	ClaimID  ID
	Template template.Template
	// State is "expired" from the very instant, however late the sweep.
	State       string
	IssuedAt    time.Time
	ExpiresAt   time.Time
	OrderID     string
	LockedUntil *time.Time
	Discount    int64 // minor units, once locked
	UsedAt      *time.Time
	// Returned is set once it was revoked and its place given back to stock.
	Returned bool
}

// Gates passes each claim to the gate of its template's mode. It is a [Gate].
type Gates struct {
	Templates Lookup
	// Durable decides claims of templates without another gate.
	Durable Gate
	Others  map[template.ClaimMode]Gate
}

// Claim is part of [Gate].
func (g Gates) Claim(ctx context.Context, r Request) (Claim, error) {
	if len(g.Others) == 0 {
		return g.Durable.Claim(ctx, r)
	}
	t, err := g.Templates.Template(ctx, r.TemplateID)
	if err != nil {
		return Claim{}, err
	}
	// The claim mode of a template cannot change once it is published, so a cached
	// template names the right gate.
	if other, ok := g.Others[t.ClaimMode]; ok {
		return other.Claim(ctx, r)
	}
	return g.Durable.Claim(ctx, r)
}

// Service holds the use cases of users about claims.
type Service struct {
	Gate    Gate
	Finders []Finder // asked in order
	Owned   Coupons
	Random  func() uint64
	// Waits reports whether users can join a waitlist of the drop; nil = drops have none.
	Waits func(ctx context.Context, templateID int64) bool
}

// Tap claims one coupon for a user. With an idempotency key the call may be
// repeated. pass is the text of the user's pass; drops without protection need none.
// repeated reports that the answer is that of an earlier request, also of a request
// that a gate accepted and that was refused when it was written. The errors are the
// errors of [Gate] and of [Prefilter.Admit]; [ErrSoldOut] is a [fault.Waitlisted] if users can
// wait for the drop.
func (s *Service) Tap(ctx context.Context, by user.ID, templateID int64, key, pass string) (c Claim, repeated bool, err error) {
	if key != "" {
		key = TapKey(by, key)
	}
	id := NewID(s.Random(), templateID)
	c, err = s.Gate.Claim(ctx, Request{ID: id, TemplateID: templateID, UserID: by, Origin: ByTap, Key: key, Pass: pass})
	if err == nil && c.State == Failed {
		err = c.Refusal()
	}
	if errors.Is(err, ErrSoldOut) && s.Waits != nil && s.Waits(ctx, templateID) {
		err = &fault.Waitlisted{Err: err}
	}
	return c, err == nil && c.ID != id, err
}

// Claim returns one of the user's claims. It returns [ErrNotFound] for unknown
// claims and for claims of other users.
func (s *Service) Claim(ctx context.Context, by user.ID, id ID) (Claim, error) {
	for _, f := range s.Finders {
		if c, err := f.ByID(ctx, by, id); !errors.Is(err, ErrNotFound) {
			return c, err
		}
	}
	return Claim{}, ErrNotFound
}

// Coupons lists the user's coupons, newest first.
func (s *Service) Coupons(ctx context.Context, q Query) ([]Coupon, error) {
	return s.Owned.Coupons(ctx, q)
}
