package demo

import (
	"context"
	"fmt"
	"time"
)

// goldTier is the value of the attribute tier of the users in the segment of gold members.
const goldTier = "gold"

// AddSegments makes segments and lets a worker count their members. It returns the id of the
// segment of gold members; a second call makes no others.
func (c *Client) AddSegments(ctx context.Context) (gold string, err error) {
	attribute := func(name, value string) map[string]any {
		return map[string]any{"field": "attribute", "name": name, "op": "is", "values": []string{value}}
	}
	for i, s := range []struct {
		name string
		all  []any
	}{
		{"金卡会员 · Gold members", []any{attribute("tier", goldTier)}},
		{"英文读者 · English readers", []any{map[string]any{"field": "locale", "op": "one_of", "values": []string{"en"}}}},
		{"上海金卡会员 · Gold members in Shanghai", []any{attribute("tier", goldTier), attribute("city", "Shanghai")}},
		{"New in the last 30 days · 30 天内新客", []any{map[string]any{"field": "created", "op": "within_days", "values": []string{"30"}}}},
	} {
		key := fmt.Sprintf("demo-segment-%d", i)
		var made struct {
			ID string `json:"id"`
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/segments", key: key, body: map[string]any{"name": s.name, "rule": map[string]any{"all": s.all}}}, &made); err != nil {
			return "", fmt.Errorf("create segment %q: %w", s.name, err)
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/segments/" + made.ID + "/count", key: key + "-count"}, nil); err != nil {
			return "", fmt.Errorf("count segment %q: %w", s.name, err)
		}
		if i == 0 {
			gold = made.ID
		}
	}
	return gold, nil
}

// AddMembersFirst makes a drop of the next 24 hours with two doors: gold members come an hour before
// all users. Its opening is moved after the publication. A call after a killed start completes it.
func (c *Client) AddMembersFirst(ctx context.Context, now time.Time) (Drop, error) {
	gold, err := c.AddSegments(ctx)
	if err != nil {
		return Drop{}, err
	}
	opens := membersAt(now)
	k := coupon{Name: "会员先行立减 25 元 · Members first, ¥25 off", Kind: "threshold_off", AmountOff: 2500, Threshold: 12000, OpensAt: opens, Open: 8 * time.Hour, Stock: 800}
	if d, err := c.named(ctx, shop, k.Name, opens); err != nil || d.ID != "" {
		return d, err
	}
	k.OpensAt = opens.Add(time.Hour)
	d, err := c.create(ctx, k)
	if err != nil {
		return d, err
	}
	path := "/admin/templates/" + d.ID
	if d.State == "draft" {
		if d.Version == 1 {
			if err := c.call(ctx, request{method: "PUT", path: path + "/doors", version: d.Version, body: membersFirst(gold)}, nil); err != nil {
				return d, fmt.Errorf("doors of %q: %w", d.Name, err)
			}
		}
		if err := c.call(ctx, request{method: "POST", path: path + "/publish"}, nil); err != nil {
			return d, fmt.Errorf("publish %q: %w", d.Name, err)
		}
	}
	if err := c.call(ctx, request{method: "GET", path: path}, &d); err != nil {
		return d, fmt.Errorf("read %q: %w", d.Name, err)
	}
	err = c.call(ctx, request{method: "PATCH", path: path, version: d.Version, body: map[string]any{"opens_at": opens.UTC().Format(time.RFC3339),
		"reason": "the tasting begins earlier / 品鉴会提前开始"}}, &d)
	if err != nil {
		err = fmt.Errorf("move %q: %w", d.Name, err)
	}
	return d, err
}

// membersAt returns the next noon or 19:00 in the shop's country that is at least three hours away, so
// that the drop is in the forecast of 24 hours.
func membersAt(now time.Time) time.Time {
	for days := 0; ; days++ {
		for _, hour := range []int{12, 19} {
			if at := atHour(now, days, hour); at.Sub(now) >= 3*time.Hour {
				return at
			}
		}
	}
}

// membersFirst returns two doors, the first for the segment, and test persons for both.
func membersFirst(gold string) map[string]any {
	tests := []map[string]any{}
	members, others := 0, 0
	for id := FirstUser; members < 2 || others < 2; id++ {
		u := demoUser(id)
		if u.Attributes["tier"] == goldTier && members < 2 {
			members++
			tests = append(tests, map[string]any{"user_id": u.ID, "note": u.Name + ", gold", "wants": 1})
		} else if u.Attributes["tier"] != goldTier && others < 2 {
			others++
			tests = append(tests, map[string]any{"user_id": u.ID, "note": u.Name, "wants": 2})
		}
	}
	return map[string]any{"tests": tests, "doors": []map[string]any{
		{"name": "金卡会员 · Gold members", "who": "segment", "segment_id": gold, "lead_minutes": 60, "share": 300, "texts": map[string]string{"en": "Gold members come an hour earlier.", "zh-CN": "金卡会员提前一小时开抢。"}},
		{"name": "所有人 · Everybody", "who": "all"}}}
}

// AddCampaigns makes three campaigns that are not over: about the drop of the next day one that is
// running, whose two versions are tested for twelve hours, and one for gold members two hours before its
// opening; and a draft.
func (c *Client) AddCampaigns(ctx context.Context, now time.Time) error {
	night, err := c.AddTomorrow(ctx, now)
	if err != nil {
		return err
	}
	gold, err := c.AddSegments(ctx)
	if err != nil {
		return err
	}
	words := func(english, chinese string) map[string]string {
		return map[string]string{"default": english, "zh-CN": chinese}
	}
	at := func(days, hour int) string { return atHour(now, days, hour).UTC().Format(time.RFC3339) }
	for i, w := range []map[string]any{
		{"name": testedName, "channel": "app", "audience": map[string]any{"reserved_template_id": night.ID}, "starts_at": now.UTC().Truncate(time.Minute).Format(time.RFC3339), "ends_at": at(3, 12),
			"title": words("Tomorrow at eight: 20 % off", "明晚八点，夜市 8 折"), "body": words("The night market opens at eight. Your reminder is set.", "夜市八点开抢，提醒已为您设好。"),
			"variant_b": map[string]any{"percent": 50, "title": words("5,000 coupons for the night market", "夜市 5000 张券等您"), "body": words("20 % off at every stall. **First come, first served.**", "全场 8 折，**先到先得**。")},
			"test":      map[string]any{"share_percent": 30, "by": "opened", "minutes": 720}},
		{"name": "金卡会员今晚八点 · Tonight at eight, for gold members", "channel": "email", "audience": map[string]any{"segment_id": gold}, "starts_at": at(1, 18), "ends_at": at(1, 20), "shop_number": shop,
			"title": words("Tonight at eight: the night market", "今晚八点，夜市开抢"), "body": words("5,000 coupons with 20 % off. Be there at eight.", "5000 张 8 折券，八点见。")},
		{"name": "冬日节预告 · Winter festival: save the date", "channel": "email", "audience": map[string]any{"all": true}, "starts_at": at(12, 10), "ends_at": at(13, 10), "shop_number": shop,
			"title": words("Winter festival: save the date", "冬日节，敬请期待"), "body": words("Two days, 15 % off everything.", "两天，全场 85 折。")},
	} {
		key := fmt.Sprintf("demo-campaign-%d", i)
		var made struct {
			ID string `json:"id"`
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/campaigns", key: key, body: w}, &made); err != nil {
			return fmt.Errorf("create campaign %q: %w", w["name"], err)
		}
		if i == 2 {
			break // a draft
		}
		if err := c.call(ctx, request{method: "POST", path: "/admin/campaigns/" + made.ID + "/publish", key: key + "-publish", body: map[string]any{"reason": "as planned"}}, nil); err != nil {
			return fmt.Errorf("publish campaign %q: %w", w["name"], err)
		}
	}
	return nil
}

// SetBudget limits what the coupons of the drop may take off, in minor units.
func (c *Client) SetBudget(ctx context.Context, drop string, amount int64) error {
	body := map[string]any{"amount": amount, "reason": "agreed with the shop / 与门店商定"}
	if err := c.call(ctx, request{method: "PUT", path: "/admin/templates/" + drop + "/budget", body: body}, nil); err != nil {
		return fmt.Errorf("budget of drop %s: %w", drop, err)
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
	d, err := c.publish(ctx, coupon{Shop: "20", Name: "合作伙伴 10 元码 · Partner codes, ¥10 off", Kind: "amount_off", AmountOff: 1000, OpensAt: atHour(now, 2, 9), Open: 30 * 24 * time.Hour, Stock: 500, Obtain: "code"})
	if err != nil {
		return err
	}
	if err := c.call(ctx, request{method: "POST", path: "/admin/templates/" + d.ID + "/codes", key: "demo-codes", body: map[string]any{"count": 500}}, nil); err != nil {
		return fmt.Errorf("generate codes: %w", err)
	}
	return nil
}
