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
		{"English readers", map[string]any{"field": "locale", "op": "is", "values": []string{"en"}}},
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

// AddCodes makes a drop whose coupons are obtained by codes, and lets a worker generate codes.
func (c *Client) AddCodes(ctx context.Context, now time.Time) error {
	d, err := c.publish(ctx, coupon{Name: "Partner codes, ¥10 off", Kind: "amount_off", AmountOff: 1000, OpensAt: atHour(now, 2, 9), Open: 30 * 24 * time.Hour, Stock: 500, Obtain: "code"})
	if err != nil {
		return err
	}
	if err := c.call(ctx, request{method: "POST", path: "/admin/templates/" + d.ID + "/codes", key: "demo-codes", body: map[string]any{"count": 500}}, nil); err != nil {
		return fmt.Errorf("generate codes: %w", err)
	}
	return nil
}
