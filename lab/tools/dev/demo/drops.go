package demo

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"
)

// Drop is a template as far as the demo needs it.
type Drop struct {
	ID        string    `json:"id"`
	Shop      string    `json:"shop_number"`
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Version   int64     `json:"version"`
	OpensAt   time.Time `json:"opens_at"`
	Stock     int64     `json:"stock"`
	Threshold int64     `json:"threshold"` // least order value, in minor units
}

// shop is the demo's shop.
const shop = "10"

// IsNew reports whether the server has no template yet.
func (c *Client) IsNew(ctx context.Context) (bool, error) {
	drops, err := c.drops(ctx, url.Values{"limit": {"1"}})
	return len(drops) == 0, err
}

// Soon returns a drop of the demo's shop that opens late enough to reserve a five-minute
// reminder, and early enough to wait for the reminder. ok is false if there is no such drop.
func (c *Client) Soon(ctx context.Context, now time.Time) (d Drop, ok bool, err error) {
	drops, err := c.drops(ctx, url.Values{
		"state": {"scheduled"}, "shop": {shop}, "order": {"asc"}, "limit": {"1"},
		"from": {now.Add(6 * time.Minute).UTC().Format(time.RFC3339)},
		"to":   {now.Add(20 * time.Minute).UTC().Format(time.RFC3339)},
	})
	if err != nil || len(drops) == 0 {
		return Drop{}, false, err
	}
	return drops[0], true, nil
}

func (c *Client) drops(ctx context.Context, filter url.Values) ([]Drop, error) {
	var answer struct {
		Templates []Drop `json:"templates"`
	}
	err := c.call(ctx, request{method: "GET", path: "/admin/templates?" + filter.Encode()}, &answer)
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	return answer.Templates, nil
}

// NameShop gives the demo's shop a name and its time zone.
func (c *Client) NameShop(ctx context.Context) error {
	body := map[string]string{"name": "茶馆 · Tea House", "timezone": "Asia/Shanghai"}
	if err := c.call(ctx, request{method: "PUT", path: "/admin/shops/" + shop, body: body}, nil); err != nil {
		return fmt.Errorf("name the shop: %w", err)
	}
	return nil
}

// soonOpensIn leaves time, before the first reminders of a soon drop are due, to make the demo's
// reservations and to reserve one more reminder by hand.
const soonOpensIn = 6*time.Minute + 45*time.Second

// AddSoon makes a drop whose five-minute reminders are due within two minutes.
func (c *Client) AddSoon(ctx context.Context, now time.Time) (Drop, error) {
	k := menu[0]
	k.OpensAt, k.Open = now.Add(soonOpensIn).Truncate(time.Second), 2*time.Hour
	return c.publish(ctx, k)
}

// named returns a drop of the shop and that name that opens at the instant, if there is one.
func (c *Client) named(ctx context.Context, shop, name string, opens time.Time) (Drop, error) {
	at := opens.UTC()
	list, err := c.drops(ctx, url.Values{"shop": {shop}, "from": {at.Format(time.RFC3339)}, "to": {at.Add(time.Second).Format(time.RFC3339)}})
	for _, d := range list {
		if d.Name == name {
			return d, err
		}
	}
	return Drop{}, err
}

// AddTomorrow makes a drop at 20:00 of the next day in the shop's country.
func (c *Client) AddTomorrow(ctx context.Context, now time.Time) (Drop, error) {
	return c.publish(ctx, coupon{
		Name: "夜市 8 折 · Night market, 20 % off", Kind: "percent_off", PercentOff: 20, MaxOff: 5000,
		OpensAt: atHour(now, 1, 20), Open: 4 * time.Hour, Stock: 5000,
	})
}

// AddLater makes a drop in three days, whose claims the gate decides.
func (c *Client) AddLater(ctx context.Context, now time.Time) (Drop, error) {
	return c.publish(ctx, coupon{
		Name: "早餐 5 元券 · Breakfast, ¥5 off", Kind: "amount_off", AmountOff: 500, ClaimMode: "gate",
		OpensAt: atHour(now, 3, 9), Open: 12 * time.Hour, Stock: 10000, Group: "breakfast", With: "lunch",
	})
}

// AddDraft makes a template that is not published.
func (c *Client) AddDraft(ctx context.Context, now time.Time) (Drop, error) {
	return c.create(ctx, coupon{
		Name: "冬日节 85 折 · Winter festival, 15 % off", Kind: "percent_off", PercentOff: 15, MaxOff: 8000,
		OpensAt: atHour(now, 14, 12), Open: 48 * time.Hour, Stock: 20000,
	})
}

// atHour returns a full hour some days from now in China, which has a single time zone and no
// daylight saving time.
func atHour(now time.Time, days, hour int) time.Time {
	local := now.In(time.FixedZone("CST", 8*3600))
	return time.Date(local.Year(), local.Month(), local.Day()+days, hour, 0, 0, 0, local.Location())
}

// coupon has the properties in which the demo's templates differ.
type coupon struct {
	Name, Kind string
	AmountOff  int64
	Threshold  int64
	PercentOff int
	MaxOff     int64
	OpensAt    time.Time
	Open       time.Duration
	Stock      int64
	Obtain     string // claim if empty
	Shop       string // the demo's first shop if empty
	Waitlist   string // off if empty
	ClaimMode  string // durable if empty
	// Group is the stack group, and With the group with which it goes; empty = the coupon stands alone.
	Group, With string
}

func (k coupon) body() map[string]any {
	b := map[string]any{
		"shop_number": cmp.Or(k.Shop, shop), "name": k.Name, "kind": k.Kind, "currency": "CNY", "target": "shop",
		"stock": k.Stock, "per_user_limit": 1, "valid_hours": 48, "obtain": cmp.Or(k.Obtain, "claim"), "claim_mode": cmp.Or(k.ClaimMode, "durable"),
		"opens_at":  k.OpensAt.UTC().Format(time.RFC3339),
		"closes_at": k.OpensAt.Add(k.Open).UTC().Format(time.RFC3339),
	}
	if k.Group != "" {
		b["stack_group"], b["stacks_with"] = k.Group, []string{k.With}
	}
	if k.Waitlist != "" {
		b["waitlist"] = k.Waitlist
	}
	switch k.Kind {
	case "amount_off":
		b["amount_off"] = k.AmountOff
	case "threshold_off":
		b["amount_off"], b["threshold"] = k.AmountOff, k.Threshold
	case "percent_off":
		b["percent_off"], b["max_off"] = k.PercentOff, k.MaxOff
	}
	return b
}

// create makes a draft, unless a drop of that name opens at that instant: a start that was killed
// may have left it.
func (c *Client) create(ctx context.Context, k coupon) (Drop, error) {
	number := cmp.Or(k.Shop, shop)
	if d, err := c.named(ctx, number, k.Name, k.OpensAt); err != nil || d.ID != "" {
		return d, err
	}
	d := Drop{Shop: number, Name: k.Name, OpensAt: k.OpensAt, Stock: k.Stock, Threshold: k.Threshold}
	if err := c.call(ctx, request{method: "POST", path: "/admin/templates", body: k.body()}, &d); err != nil {
		return Drop{}, fmt.Errorf("create template %q: %w", k.Name, err)
	}
	return d, nil
}

func (c *Client) publish(ctx context.Context, k coupon) (Drop, error) {
	d, err := c.create(ctx, k)
	if err != nil || d.State != "draft" {
		return d, err
	}
	if err := c.call(ctx, request{method: "POST", path: "/admin/templates/" + d.ID + "/publish"}, nil); err != nil {
		return Drop{}, fmt.Errorf("publish template %q: %w", k.Name, err)
	}
	return d, nil
}
