package claim

import (
	"context"

	"dropbell/domain/user"
)

// NotErased is a [Gate] that refuses users who were erased: nothing is stored about them.
type NotErased struct {
	Gate Gate
	// Erased reports whether a user was erased; it may be a second late.
	Erased func(user.ID) bool
}

// Claim is part of [Gate]. It returns [user.ErrErased] for an erased user.
func (g NotErased) Claim(ctx context.Context, r Request) (Claim, error) {
	if g.Erased(r.UserID) {
		return Claim{}, user.ErrErased
	}
	return g.Gate.Claim(ctx, r)
}
