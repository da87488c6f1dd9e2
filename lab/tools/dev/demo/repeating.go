package demo

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// standing is how many users of the demo are reminded of each drop of its series.
const standing = 120

// AddSeries makes a drop at noon, and a series that repeats it on each later day but one, for which users have standing
// reservations. A worker creates and publishes its next four drops.
func (c *Client) AddSeries(ctx context.Context, now time.Time) error {
	noon := atHour(now, 0, 12)
	if noon.Sub(now) < 2*time.Hour {
		noon = atHour(now, 1, 12)
	}
	d, err := c.publish(ctx, coupon{Name: "午间茶点立减 6 元 · Noon tea, ¥6 off", Kind: "threshold_off", AmountOff: 600, Threshold: 3000, OpensAt: noon, Open: 2 * time.Hour, Stock: 600})
	if err != nil {
		return err
	}
	day := func(days int) string { return noon.AddDate(0, 0, days).Format(time.DateOnly) }
	var made struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, request{method: "POST", path: "/admin/series", key: "demo-series", body: map[string]any{"name": "午间茶点 · Noon tea", "template_id": d.ID, "rrule": "FREQ=DAILY",
		"starts": day(1), "clock": "12:00", "skips": []string{day(3)}, "skip_holidays": true, "publish": true}}, &made); err != nil {
		return fmt.Errorf("create the series: %w", err)
	}
	return together(ctx, standing, func(ctx context.Context, i int) error {
		err := c.call(ctx, request{method: "PUT", path: "/series/" + made.ID + "/reservation", user: int64(FirstUser + 1 + i),
			body: map[string]any{"shop_number": shop, "reminders": []reminder{{"app", []int{5, 10, 15}[i%3]}}}}, nil)
		if err != nil {
			err = fmt.Errorf("standing reservation: %w", err)
		}
		return err
	})
}

// AddRecipe turns the week's calendar on, for this day of the week and time of day, so that a worker finds its users and sends their messages
// within seconds.
func (c *Client) AddRecipe(ctx context.Context, now time.Time) error {
	at := atHour(now, 0, 0).Add(now.Sub(atHour(now, 0, 0)).Truncate(time.Minute))
	path := "/admin/shops/" + shop + "/recipes/calendar"
	var is struct {
		On bool `json:"on"`
	}
	if err := c.call(ctx, request{method: "GET", path: path}, &is); err != nil || is.On {
		return err
	}
	err := c.call(ctx, request{method: "PUT", path: path, body: map[string]any{"on": true, "channel": "app", "hold_out_percent": 10, "version": 0,
		"title": map[string]string{"default": "This week at the Tea House", "zh-CN": "茶馆本周抢券"}, "body": map[string]string{"default": "{{drops}}", "zh-CN": "{{drops}}"},
		"weekday": strings.ToLower(at.Weekday().String()), "clock": at.Format("15:04")}}, nil)
	if err != nil {
		err = fmt.Errorf("the calendar: %w", err)
	}
	return err
}
