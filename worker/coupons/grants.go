package coupons

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// grantsAtOnce is how many coupons are requested concurrently. The gate decides requests that
// arrive together in one transaction.
const grantsAtOnce = 256

// Granter gives the coupons of campaigns through the gate of all claims.
type Granter struct{ Gate claim.Gate }

// Grant implements [campaign.Granter]. The idempotency key is made of the campaign and the user,
// so a repeated request is safe.
func (g Granter) Grant(ctx context.Context, wish campaign.Grant) (map[user.ID]string, error) {
	var mu sync.Mutex
	refused := map[user.ID]string{}
	var failed error
	var all sync.WaitGroup
	turns := make(chan struct{}, grantsAtOnce)
	for _, id := range wish.Users {
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
	_, err = g.Gate.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), wish.TemplateID), TemplateID: wish.TemplateID, UserID: id, Origin: claim.ByCampaign,
		Key: claim.CampaignKey(wish.CampaignID, id)})
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
	}
	return delivery.ReasonNoGrant, nil
}
