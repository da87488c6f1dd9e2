package demo

import (
	"context"
	"fmt"
	"time"
)

// AddSegments makes segments and lets a worker count their members.
func (c *Client) AddSegments(ctx context.Context) error {
	for i, s := range []struct {
		name string
		rule map[string]any
	}{
		{"English readers", map[string]any{"field": "locale", "op": "one_of", "values": []string{"en"}}},
		{"Gold members in Shanghai", map[string]any{"all": []any{
			map[string]any{"field": "attribute", "name": "tier", "op": "is", "values": []string{"gold"}},
			map[string]any{"field": "attribute", "name": "city", "op": "is", "values": []string{"Shanghai"}}}}},
		{"New in the last 30 days", map[string]any{"field": "created", "op": "within_days", "values": []string{"30"}}},
	} {
		rule := s.rule
		if rule["all"] == nil {
			rule = map[string]any{"all": []any{rule}}
		}
		key := fmt.Sprintf("demo-segment-%d", i)
		var made struct {
			ID string `json:"id"`
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/segments", key: key, body: map[string]any{"name": s.name, "rule": rule}}, &made); err != nil {
			return fmt.Errorf("create segment %q: %w", s.name, err)
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/segments/" + made.ID + "/count", key: key + "-count"}, nil); err != nil {
			return fmt.Errorf("count segment %q: %w", s.name, err)
		}
	}
	return nil
}

// AddOrders gives coupons of the drop to a list of users, and begins orders with coupons of other
// users: orders that are being paid when the demo is opened.
func (c *Client) AddOrders(ctx context.Context, drop int64, coupons []int64) error {
	if err := c.call(ctx, request{method: "POST", path: fmt.Sprintf("/admin/templates/%d/grants", drop), key: "demo-grants", body: map[string]any{
		"user_ids": []string{"1001", "1002", "1003", "1004", "1005", "1006"}, "reason": "thanks to the testers"}}, nil); err != nil {
		return fmt.Errorf("grant coupons: %w", err)
	}
	for i, id := range coupons {
		body := map[string]any{"order_id": fmt.Sprintf("at-till-%d", id), "order_amount": 6800 + 2350*i}
		if err := c.call(ctx, request{method: "POST", path: fmt.Sprintf("/coupons/%d/lock", id), key: fmt.Sprintf("demo-lock-%d", id), body: body}, nil); err != nil {
			return fmt.Errorf("lock coupon %d: %w", id, err)
		}
	}
	return nil
}

// AddCodes makes a drop whose coupons are obtained by codes, and lets a worker generate codes.
func (c *Client) AddCodes(ctx context.Context, now time.Time) error {
	d, err := c.publish(ctx, coupon{Shop: "20", Name: "Partner codes, ¥10 off", Kind: "amount_off", AmountOff: 1000, OpensAt: atHour(now, 2, 9), Open: 30 * 24 * time.Hour, Stock: 500, Obtain: "code"})
	if err != nil {
		return err
	}
	if err := c.call(ctx, request{method: "POST", path: "/admin/templates/" + d.ID + "/codes", key: "demo-codes", body: map[string]any{"count": 500}}, nil); err != nil {
		return fmt.Errorf("generate codes: %w", err)
	}
	return nil
}
