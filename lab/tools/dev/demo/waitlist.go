package demo

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// soldOutStock is how many users get a coupon of the demo's sold-out drop at its opening, and
	// soldOutWaiting how many wait for one. soldOutBack coupons come back.
	soldOutStock, soldOutWaiting, soldOutBack = 40, 160, 12
)

// AddSoldOut makes a drop that opens at once and sells out. Users join its waitlist, and staff return coupons to
// the stock, which a worker gives to the first of the users who wait.
func (c *Client) AddSoldOut(ctx context.Context, now time.Time) error {
	d, err := c.publish(ctx, coupon{Name: "紫砂壶 8 折 · Clay teapots, 20 % off", Kind: "percent_off", PercentOff: 20, MaxOff: 8000,
		OpensAt: now.Add(5 * time.Second).Truncate(time.Second), Open: 5 * 24 * time.Hour, Stock: soldOutStock, Waitlist: "issue"})
	if err != nil {
		return err
	}
	opens := time.NewTimer(time.Until(d.OpensAt) + time.Second/2)
	select {
	case <-opens.C:
	case <-ctx.Done():
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
