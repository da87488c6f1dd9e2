package claim

import "context"

// A Gate decides claims. It never issues more coupons than the template's
// stock nor more than its limit to one user, in any interleaving and on any
// number of nodes; a refusal changes nothing.
//
// Claim returns the coupon's claim, or the first of these that holds:
// [ErrIdempotency] if the key was used for another template or by another
// user; a repetition is answered like the first time, whatever has happened
// since; [template.ErrNotFound] (a draft does not exist for users);
// [template.ErrNotOpen] (cancelled, not obtained this way); [ErrEnded];
// [template.ErrNotOpen] (paused); [ErrNotStarted]; [ErrSoldOut], before the
// limit so that the answer is the same whoever gives it; [ErrLimit]. A
// refusal is not remembered: the same request is judged anew next time.
// [ErrOverloaded] and other faults of kind Unavailable leave open
// whether the claim was decided: ask again with the same key.
type Gate interface {
	Claim(ctx context.Context, r Request) (Claim, error)
}
