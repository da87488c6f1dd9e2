package coupons

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/user"
)

const (
	// grantsAtOnce is how many coupons are requested concurrently. The gate decides requests that
	// arrive together in one transaction.
	grantsAtOnce = 256
	// fewGrants is how many coupons are requested at once at least if a budget pays for fewer: the
	// other users may have reached their limit.
	fewGrants = 16
	// grantPatience is how long a claim that a gate has accepted may take to be written. After that
	// the recipients are tried again later.
	grantPatience = 5 * time.Second
)

// Granter gives the coupons of campaigns through the gate of all claims. A recipient has a coupon
// once it is stored: a claim that the gate in Redis has accepted is waited for, since it may
// be refused when it is written.
type Granter struct {
	Gate claim.Gate
	// Accepted finds the outcomes of claims that a gate has accepted; nil = there is no such gate.
	Accepted claim.Finder
	// Budgets are the budgets of campaigns.
	Budgets GrantBudgets
}

// GrantBudgets reads the budgets of campaigns.
type GrantBudgets interface {
	// Affordable returns how many further coupons the campaign's budget pays for, and the users
	// among users who have their coupon of the campaign. limited is false without a budget.
	Affordable(ctx context.Context, campaignID int64, users []user.ID) (left int64, limited bool, have map[user.ID]bool, err error)
}

// Grant implements [campaign.Granter]. The idempotency key is made of the campaign and the user,
// so a repeated request is safe.
func (g Granter) Grant(ctx context.Context, wish campaign.Grant) (map[user.ID]string, error) {
	if !wish.Budgeted {
		return g.all(ctx, wish, wish.Users)
	}
	refused := map[user.ID]string{}
	for users := wish.Users; len(users) > 0; {
		left, limited, have, err := g.Budgets.Affordable(ctx, wish.CampaignID, users)
		if err != nil {
			return nil, err
		}
		n := min(len(users), grantsAtOnce)
		if limited {
			n = int(min(int64(n), max(left, fewGrants)))
		}
		var ask []user.ID
		for _, id := range users[:n] {
			switch {
			case have[id]:
			case limited && left <= 0:
				refused[id] = delivery.ReasonCampaignBudget
			default:
				ask = append(ask, id)
			}
		}
		some, err := g.all(ctx, wish, ask)
		if err != nil {
			return nil, err
		}
		maps.Copy(refused, some)
		users = users[n:]
	}
	return refused, nil
}

// all requests a coupon for each of the users.
func (g Granter) all(ctx context.Context, wish campaign.Grant, users []user.ID) (map[user.ID]string, error) {
	var mu sync.Mutex
	refused := map[user.ID]string{}
	var failed error
	var all sync.WaitGroup
	turns := make(chan struct{}, grantsAtOnce)
	for _, id := range users {
		turns <- struct{}{}
		all.Go(func() {
			reason, err := g.one(ctx, wish, id)
			mu.Lock()
			defer mu.Unlock()
			if reason != "" {
				refused[id] = reason
			}
			failed = errors.Join(failed, err)
			<-turns
		})
	}
	all.Wait()
	return refused, failed
}

func (g Granter) one(ctx context.Context, wish campaign.Grant, id user.ID) (reason string, err error) {
	c, err := g.Gate.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), wish.TemplateID), TemplateID: wish.TemplateID, UserID: id, Origin: claim.ByCampaign,
		Key: claim.CampaignKey(wish.CampaignID, id)})
	if err == nil && c.State == claim.Accepted {
		c, err = g.written(ctx, c)
	}
	if err == nil {
		err = c.Refusal()
	}
	switch fault.KindOf(err) {
	case 0, fault.Unavailable, fault.Throttled:
		return "", err
	}
	switch {
	case errors.Is(err, claim.ErrBudget):
		return delivery.ReasonCampaignBudget, nil
	case errors.Is(err, claim.ErrSoldOut):
		return delivery.ReasonSoldOut, nil
	case errors.Is(err, claim.ErrLimit):
		return delivery.ReasonLimit, nil
	case errors.Is(err, claim.ErrHousehold):
		return delivery.ReasonHousehold, nil
	}
	return delivery.ReasonNoGrant, nil
}

// written waits until the accepted claim is written, and returns its outcome. Writers are called by
// the gate and usually need milliseconds; after a failover of Redis the claim may be unknown.
func (g Granter) written(ctx context.Context, accepted claim.Claim) (c claim.Claim, err error) {
	if g.Accepted == nil {
		return accepted, nil
	}
	for wait, left := 4*time.Millisecond, grantPatience; left > 0; wait = min(2*wait, 200*time.Millisecond) {
		c, err = g.Accepted.ByID(ctx, accepted.UserID, accepted.ID)
		if err == nil && c.State != claim.Accepted || err != nil && !errors.Is(err, claim.ErrNotFound) {
			return c, err
		}
		pause.For(ctx, wait)
		if ctx.Err() != nil {
			break
		}
		left -= wait
	}
	return c, claim.ErrOverloaded
}
