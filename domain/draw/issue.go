package draw

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

const (
	issueChunk  = 512
	issueAtOnce = 256
)

// issue gives the winners their coupons, or offers them. The key of each coupon is the draw and the user, so a
// repetition gives no second one. A refusal that may pass is tried again in the next sweep.
func (o *Operator) issue(ctx context.Context, d Draw) error {
	if err := o.takeBack(ctx, d.TemplateID); err != nil {
		return err
	}
	card, err := d.Card()
	if err == nil && card.AcceptHours > 0 {
		err = o.Store.Offer(ctx, d.TemplateID, card.AcceptHours)
	}
	if err != nil {
		return err
	}
	return o.issueAccepted(ctx, d.TemplateID)
}

// issueAccepted gives coupons to the winners whose offer needs no acceptance or was accepted.
func (o *Operator) issueAccepted(ctx context.Context, templateID int64) error {
	for after := 0; ctx.Err() == nil; {
		list, err := o.Store.Winners(ctx, templateID, after, issueChunk)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return o.finish(ctx, templateID)
		}
		after = list[len(list)-1].Rank
		issued, err := o.give(ctx, templateID, list)
		if err = errors.Join(err, o.Store.SaveIssued(context.WithoutCancel(ctx), templateID, issued)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// finish ends the draw after all entrants, and the server of the shop, were told. Entries that did not win join the
// waitlist, if there is one, once no offer is open.
func (o *Operator) finish(ctx context.Context, templateID int64) error {
	if err := o.Store.Tell(ctx, templateID); err != nil {
		return err
	}
	for {
		more, err := o.Store.TellLost(ctx, templateID, issueChunk)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if err := o.wait(ctx, templateID); err != nil {
		return err
	}
	return o.Store.Finish(ctx, templateID)
}

// takeBack returns the coupons of struck winners to the stock, for the winners who moved up.
func (o *Operator) takeBack(ctx context.Context, templateID int64) error {
	list, err := o.Store.Forfeited(ctx, templateID)
	for _, f := range list {
		failed := o.Revoke(ctx, f.CouponID, f.Reason)
		if failed == nil {
			failed = o.Store.Returned(ctx, templateID, f)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (o *Operator) give(ctx context.Context, templateID int64, list []Winner) ([]Issued, error) {
	answers, errs := make([]Issued, len(list)), make([]error, len(list))
	slots := make(chan struct{}, issueAtOnce)
	var all sync.WaitGroup
	for i, w := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			answers[i], errs[i] = giveOne(ctx, o.Gate, o.Random(), templateID, w.UserID)
		})
	}
	all.Wait()
	var done []Issued
	for _, a := range answers {
		if a.CouponID != 0 || a.Reason != "" {
			done = append(done, a)
		}
	}
	return done, errors.Join(errs...)
}

// giveOne gives a winner the coupon. An [Issued] without a coupon has the reason of the refusal.
func giveOne(ctx context.Context, gate claim.Gate, random uint64, templateID int64, to user.ID) (Issued, error) {
	c, err := gate.Claim(ctx, claim.Request{ID: claim.NewID(random, templateID), TemplateID: templateID, UserID: to, Origin: claim.ByDraw,
		Key: CouponKey(templateID, to)})
	switch {
	case err == nil:
		return Issued{UserID: to, CouponID: c.CouponID}, nil
	case errors.Is(err, claim.ErrEnded), errors.Is(err, user.ErrErased), errors.Is(err, claim.ErrLimit):
		return Issued{UserID: to, Reason: fault.CodeOf(err)}, nil
	}
	return Issued{}, err // paused, sold out until the stock is raised, or a failure
}

// CouponKey is the key of the coupon that a user won.
func CouponKey(templateID int64, to user.ID) string {
	return strconv.FormatInt(templateID, 10) + ":" + to.String()
}

// PagePath is where the pages of draws live below the public address.
const PagePath = "/draw/"

// Page returns the address of the page of a draw.
func Page(public string) func(templateID int64) string {
	base := strings.TrimSuffix(public, "/") + PagePath
	return func(templateID int64) string { return base + strconv.FormatInt(templateID, 10) }
}
