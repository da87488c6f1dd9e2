package redeemcode

import (
	"context"
	"errors"
	"strconv"

	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// A Finder returns the batch of a serial number, at most a second out of date.
type Finder interface {
	// BatchOf returns [ErrBatchNotFound] if the number was never given out.
	BatchOf(ctx context.Context, s Serial) (Batch, error)
}

// Marks remembers used codes where a look costs next to nothing. A mark may be
// lost: the code then costs one transaction, which refuses it. A mark must not be
// set before the coupon is stored.
type Marks interface {
	Used(ctx context.Context, b Batch, s Serial) (bool, error)
	Mark(ctx context.Context, b Batch, s Serial) error
}

// Uses reads which coupons were issued for codes.
type Uses interface {
	// UseOf returns false if there is no coupon of the code.
	UseOf(ctx context.Context, s Serial) (Use, bool, error)
}

// Redeemer turns codes into coupons.
type Redeemer struct {
	Keys    *Keyring
	Batches Finder
	Marks   Marks
	Uses    Uses
	// Gate decides and stores. It issues at most one coupon per serial number,
	// ever; therefore a code works once.
	Gate  claim.Gate
	NewID func(templateID int64) claim.ID
	// Answered, if set, is called with every answer; nil is a coupon.
	Answered func(error)
	// Failed, if set, is called when marks or uses could not be read or written.
	// Refusals are slower then, and still correct.
	Failed func(error)
}

// Redeem issues the coupon of the code that the user typed. It returns
// [ErrInvalid], without any query, for invented and mistyped codes, and also for
// codes that were revoked or never sold. It returns [ErrUsed] if another user or an
// earlier request got the coupon of the code. Otherwise it returns the gate's
// answer. A refusal does not use up the code.
//
// again says that this same request began before and may have had its effect. The
// user's own coupon is then the answer, instead of [ErrUsed].
func (r *Redeemer) Redeem(ctx context.Context, by user.ID, typed string, again bool) (claim.Claim, error) {
	c, err := r.redeem(ctx, by, typed, again)
	if r.Answered != nil {
		r.Answered(err)
	}
	return c, err
}

// Genuine returns [ErrInvalid] for invented and mistyped codes. It needs no store;
// a code that passes may have been used or revoked, or was never sold.
func (r *Redeemer) Genuine(typed string) error {
	code, err := Parse(typed)
	if err == nil {
		_, err = r.Keys.Serial(code)
	}
	if err != nil && r.Answered != nil {
		r.Answered(err)
	}
	return err
}

func (r *Redeemer) redeem(ctx context.Context, by user.ID, typed string, again bool) (claim.Claim, error) {
	b, serial, err := r.read(ctx, typed)
	if err != nil {
		return claim.Claim{}, err
	}
	if !again && r.marked(ctx, b, serial) {
		return claim.Claim{}, ErrUsed
	}
	ask := claim.Request{ID: r.NewID(b.TemplateID), TemplateID: b.TemplateID, UserID: by, Origin: claim.ByCode, Key: originKey(serial)}
	got, err := r.Gate.Claim(ctx, ask)
	taken := errors.Is(err, claim.ErrIdempotency)
	switch {
	case err != nil && !taken:
		return claim.Claim{}, err
	case got.State == claim.Failed:
		// An earlier claim of the code was refused, and its gate does not know that
		// yet. In a moment the code can be used again.
		return claim.Claim{}, claim.ErrOverloaded
	}
	// If the process dies here, a used code has no mark: the next attempt reaches
	// the gate, is refused there, and sets the mark.
	if got.State == claim.Issued || taken && r.stored(ctx, serial) {
		r.mark(ctx, b, serial)
	}
	if taken || got.ID != ask.ID && !again {
		return claim.Claim{}, ErrUsed
	}
	return got, nil
}

// stored reports whether the coupon of a code is committed. A gate that answers
// before the commit may return claims that are refused later; the code of such a
// claim must not stay marked.
func (r *Redeemer) stored(ctx context.Context, s Serial) bool {
	_, used, err := r.Uses.UseOf(ctx, s)
	if err != nil && r.Failed != nil {
		r.Failed(err)
	}
	return used && err == nil
}

// originKey is the code's key at the gate.
func originKey(s Serial) string { return strconv.FormatInt(int64(s), 10) }

func (r *Redeemer) read(ctx context.Context, typed string) (Batch, Serial, error) {
	code, err := Parse(typed)
	if err != nil {
		return Batch{}, 0, err
	}
	serial, err := r.Keys.Serial(code)
	if err != nil {
		return Batch{}, 0, err
	}
	b, err := r.Batches.BatchOf(ctx, serial)
	if errors.Is(err, ErrBatchNotFound) {
		return b, serial, ErrInvalid
	}
	if err != nil {
		return b, serial, err
	}
	return b, serial, b.takes(code)
}

func (r *Redeemer) marked(ctx context.Context, b Batch, s Serial) bool {
	used, err := r.Marks.Used(ctx, b, s)
	if err != nil && r.Failed != nil {
		r.Failed(err)
	}
	return used && err == nil
}

func (r *Redeemer) mark(ctx context.Context, b Batch, s Serial) {
	if err := r.Marks.Mark(context.WithoutCancel(ctx), b, s); err != nil && r.Failed != nil {
		r.Failed(err)
	}
}
