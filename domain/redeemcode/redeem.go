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

// Marks remembers used codes where looking costs next to nothing. It may
// forget: a mark that is missing costs a transaction that refuses. It must
// not invent: a mark is set only after the coupon is stored.
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
	// Gate decides and stores. It issues one coupon per serial number, ever,
	// and that is what makes a code work once.
	Gate  claim.Gate
	NewID func(templateID int64) claim.ID
	// Answered, if set, is called with every answer; nil is a coupon.
	Answered func(error)
	// Failed, if set, is called when marks or uses could not be read or written,
	// which slows refusals down and breaks nothing.
	Failed func(error)
}

// Redeem issues the coupon of the code that the user typed. It returns
// [ErrInvalid], without any query, for invented and mistyped codes, and also for
// codes that were revoked or never sold; [ErrUsed] for a code whose coupon
// another user or an earlier request got; else the gate's answer. A refusal does
// not use up the code.
//
// again says that this very request began before and may have had its effect:
// then the user's own coupon is the answer, instead of [ErrUsed].
func (r *Redeemer) Redeem(ctx context.Context, by user.ID, typed string, again bool) (claim.Claim, error) {
	c, err := r.redeem(ctx, by, typed, again)
	if r.Answered != nil {
		r.Answered(err)
	}
	return c, err
}

// Genuine returns [ErrInvalid] for invented and mistyped codes. It needs no
// store; a code that passes may still have been used, revoked or never sold.
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
		// An earlier claim came to nothing, and its gate has not heard of it yet:
		// in a moment the code is as good as before.
		return claim.Claim{}, claim.ErrOverloaded
	}
	// Dying here leaves a used code without a mark: the next attempt comes as
	// far as the gate, is refused there, and sets the mark.
	if got.State == claim.Issued || taken && r.stored(ctx, serial) {
		r.mark(ctx, b, serial)
	}
	if taken || got.ID != ask.ID && !again {
		return claim.Claim{}, ErrUsed
	}
	return got, nil
}

// stored reports whether the coupon of a code is committed. A gate that answers
// before the commit may return claims that are refused later, and then the code
// must not stay marked.
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
