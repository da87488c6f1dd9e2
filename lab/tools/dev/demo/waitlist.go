package demo

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"dropbell/domain/pause"
)

const (
	// soldOutStock is how many users get a coupon of the demo's sold-out drop at its opening, and
	// soldOutWaiting how many wait for one. soldOutBack coupons come back.
	soldOutStock, soldOutWaiting, soldOutBack = 40, 160, 12
)

// The sold-out drop is the second shop's, so that the last one of the first shop that was sold out has customers who booked in vain.
const soldOutName, soldOutShop = "紫砂壶 8 折 · Clay teapots, 20 % off", "20"

// OpenSoldOut makes the drop that opens in five seconds and is sold out by [Client.SellOut].
func (c *Client) OpenSoldOut(ctx context.Context, now time.Time) error {
	_, err := c.publish(ctx, coupon{Shop: soldOutShop, Name: soldOutName, Kind: "percent_off", PercentOff: 20, MaxOff: 8000,
		OpensAt: now.Add(5 * time.Second).Truncate(time.Second), Open: 5 * 24 * time.Hour, Stock: soldOutStock, Waitlist: "issue"})
	return err
}

// SellOut sells the drop of [Client.OpenSoldOut] out as soon as it is open. Users join its waitlist, and staff return
// coupons to the stock, which a worker gives to the first of the users who wait.
func (c *Client) SellOut(ctx context.Context, begun time.Time) error {
	list, err := c.drops(ctx, url.Values{"shop": {soldOutShop}, "from": {begun.UTC().Format(time.RFC3339)}, "limit": {"200"}, "order": {"asc"}})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(d Drop) bool { return d.Name == soldOutName && d.State != "draft" })
	if at < 0 {
		return fmt.Errorf("there is no drop %q", soldOutName)
	}
	d := list[at]
	if !pause.For(ctx, time.Until(d.OpensAt)+time.Second/2) {
		return context.Cause(ctx)
	}
	coupons := make([]string, soldOutStock)
	if err := together(ctx, soldOutStock, func(ctx context.Context, i int) error {
		var got struct {
			ID string `json:"coupon_id"`
		}
		err := c.call(ctx, request{method: "POST", path: "/claims", user: int64(FirstUser + 1 + i), key: fmt.Sprintf("demo-claim-%d", i), body: map[string]string{"template_id": d.ID}}, &got)
		coupons[i] = got.ID
		return err
	}); err != nil {
		return fmt.Errorf("claim coupons of %q: %w", d.Name, err)
	}
	if err := together(ctx, soldOutWaiting, func(ctx context.Context, i int) error {
		return c.call(ctx, request{method: "PUT", path: "/waitlist/" + d.ID, user: int64(FirstUser + 1 + soldOutStock + i)}, nil)
	}); err != nil {
		return fmt.Errorf("join the waitlist of %q: %w", d.Name, err)
	}
	return together(ctx, soldOutBack, func(ctx context.Context, i int) error {
		return c.call(ctx, request{method: "POST", path: "/admin/coupons/" + coupons[i] + "/revoke", key: fmt.Sprintf("demo-return-%d", i),
			body: map[string]any{"reason": "returned by the customer", "return_to_stock": true}}, nil)
	})
}

// together calls do for the numbers below n, several at a time.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(callers)
	for i := range n {
		all.Go(func() error { return do(ctx, i) })
	}
	return all.Wait()
}
