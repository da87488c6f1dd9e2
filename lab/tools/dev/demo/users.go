package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// The demo's users have these ids. The demo makes no reservations for the first user, who is for
// trying the API by hand.
const (
	FirstUser = 1001
	LastUser  = 6000
)

type user struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	Phone    string `json:"phone"`
	Locale   string `json:"locale"`
	Timezone string `json:"timezone"`

	OptOuts    []string       `json:"opt_outs,omitempty"`
	Attributes map[string]any `json:"attributes"`
}

var (
	surnames  = []string{"王", "李", "张", "刘", "陈", "杨", "黄", "赵", "吴", "周"}
	givens    = []string{"伟", "芳", "娜", "敏", "静", "磊", "洋", "艳", "勇", "杰", "涛", "明"}
	firsts    = []string{"Ada", "Ben", "Chloe", "Dev", "Elif", "Finn", "Grace", "Hugo", "Iris", "Jonas", "Kira", "Leo"}
	lasts     = []string{"Adams", "Brown", "Chen", "Costa", "Dubois", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jones"}
	families  = []string{"Li", "Chen", "Wang", "Zhang", "Lin", "Zhao", "Wu", "Huang", "Tan"}
	named     = []string{"Wei", "Jing", "Min", "Jie", "Yan", "Lei", "Na", "Tao", "Xin", "Yue"}
	cities    = []string{"Shanghai", "Hangzhou", "Suzhou", "Xiamen", "Chengdu", "Singapore", "Berlin"}
	tiers     = []string{"bronze", "bronze", "bronze", "silver", "silver", "gold"}
	timezones = []string{"Asia/Shanghai", "Asia/Shanghai", "Asia/Shanghai", "Asia/Singapore", "Europe/Berlin", "America/New_York"}
)

// demoUser derives all fields from the id, so that a second load changes nothing. The mail
// address is in a reserved domain (RFC 2606). The phone number is from the range that North
// America reserves for fiction: 555-0100 to 555-0199 in any area.
func demoUser(id int) user {
	n := id - FirstUser
	areas := []int{201, 202, 203, 205, 206, 207, 208, 209, 210, 212, 213, 214, 215, 216, 217, 218, 219, 224, 225, 228,
		229, 231, 234, 239, 240, 248, 251, 252, 253, 254, 256, 260, 262, 267, 269, 270, 276, 281, 301, 302,
		303, 304, 305, 307, 308, 309, 310, 312, 313, 314}
	u := user{
		ID:       strconv.Itoa(id),
		Name:     surnames[n/2%len(surnames)] + givens[n/2/len(surnames)%len(givens)],
		Email:    fmt.Sprintf("user%d@example.test", id),
		Phone:    fmt.Sprintf("+1%d55501%02d", areas[n/100%len(areas)], n%100),
		Locale:   "zh-CN",
		Timezone: timezones[n%len(timezones)],

		Attributes: map[string]any{"city": cities[n/3%len(cities)], "tier": tiers[n/21%len(tiers)]},
	}
	switch {
	case n%37 == 5:
		u.OptOuts = []string{"sms"}
	case n%53 == 9:
		u.OptOuts = []string{"email"}
	}
	switch n % 4 {
	case 0:
		u.Locale = "en"
		u.Name = firsts[n/4%len(firsts)] + " " + lasts[n/4%len(lasts)]
	case 2:
		u.Locale = "en"
		u.Name = families[n/4%len(families)] + " " + named[n/4%len(named)]
	}
	return u
}

// LoadUsers creates or updates the demo's users and returns how many.
func (c *Client) LoadUsers(ctx context.Context) (int, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for id := FirstUser; id <= LastUser; id++ {
		if err := encoder.Encode(demoUser(id)); err != nil {
			return 0, err
		}
	}
	var answer struct {
		Upserted int `json:"upserted"`
		Errors   []struct {
			Line  int    `json:"line"`
			Error string `json:"error"`
		} `json:"errors"`
	}
	if err := c.call(ctx, request{method: "PUT", path: "/admin/users", body: &lines}, &answer); err != nil {
		return 0, fmt.Errorf("load users: %w", err)
	}
	if len(answer.Errors) > 0 {
		return 0, fmt.Errorf("load users: %d lines refused, first line %d: %s",
			len(answer.Errors), answer.Errors[0].Line, answer.Errors[0].Error)
	}
	return answer.Upserted, nil
}
