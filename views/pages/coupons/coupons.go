package coupons

import (
	"context"
	"net/url"
	"time"

	"dropbell/domain/coupon"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// CouponSearches are the ways of looking for coupons.
func CouponSearches() []string { return []string{"user", "order", "coupon", "template"} }

func (p Coupons) searchChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "by", Label: ui.T(ctx, "coupons.by"), Value: p.By, Error: ui.ErrorOf(ctx, p.Errors, "by"), Required: true}
	for _, by := range CouponSearches() {
		c.Options = append(c.Options, ui.Option{Value: by, Label: ui.T(ctx, "coupons.by."+by)})
	}
	return c
}

func (p Coupons) stateChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "state", Label: ui.T(ctx, "coupons.state"), Value: string(p.State), Error: ui.ErrorOf(ctx, p.Errors, "state"), Required: true,
		Options: []ui.Option{{Label: ui.T(ctx, "coupons.any_state")}}}
	for _, s := range coupon.States() {
		c.Options = append(c.Options, ui.Option{Value: string(s), Label: ui.T(ctx, "coupon.state."+string(s))})
	}
	return c
}

// overdue reports whether the lock's time has come.
func overdue(l coupon.Listed) bool { return l.LockedUntil != nil && !l.Now.Before(*l.LockedUntil) }

// age writes how long the order has held the coupon.
func age(ctx context.Context, l coupon.Listed) string {
	if l.LockedAt == nil {
		return ""
	}
	return ui.From(ctx).Locale.Duration(max(0, l.Now.Sub(*l.LockedAt).Truncate(time.Second)))
}

// orderText names the order that holds or used the coupon, or the last one of its log.
func orderText(l coupon.Listed) string { return parts.OrDash(l.OrderID) }

func opTone(o coupon.Operation) ui.Tone {
	switch {
	case o.Outcome != coupon.Done:
		return ui.Warn
	case o.Step == coupon.StepConfirm:
		return ui.Good
	case o.Step == coupon.StepLock:
		return ui.Info
	}
	return ui.Neutral
}

func (p CouponDetail) revokeURL() string { return parts.CouponURL(p.Coupon.ID) + "/revoke" }

func (p CouponDetail) releaseURL() string { return ReleaseURL(p.Coupon) }

// ReleaseURL is where the lock of a coupon is ended.
func ReleaseURL(l coupon.Listed) string {
	return parts.CouponURL(l.ID) + "/release?order=" + url.QueryEscape(l.OrderID)
}

// reasonText returns the reason of a step: what staff typed, or the sentence of a program.
func reasonText(ctx context.Context, o coupon.Operation) string {
	if o.By != "system" {
		return o.Reason
	}
	return ui.Said(ctx, o.Reason)
}
