package drops_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The value of a coupon is shown once, for every kind.
func TestWorthOfACoupon(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	id := g.Gives(d, 1001)
	english, chinese := g.As(staff.Viewer), g.As(staff.Viewer)
	chinese.Header.Set("Accept-Language", "zh-CN")
	for _, c := range []struct{ set, en, zh, enTerms, zhTerms string }{
		{`kind = 'amount_off', amount_off = 1000`, "Worth ¥10 off Drop", "面值 立减 ¥10 抢券活动", "¥10 off no minimum spend", "¥10 无门槛"},
		{`kind = 'threshold_off', amount_off = 1000, threshold = 5000`, "Worth ¥10 off from ¥50 Drop", "面值 满 ¥50 减 ¥10 抢券活动", "¥10 off from ¥50", "¥10 满 ¥50 可用"},
		{`kind = 'percent_off', amount_off = 0, threshold = 0, percent_off = 20, max_off = 500`, "Worth 20% off, at most ¥5 Drop", "面值 8 折，最高减 ¥5 抢券活动",
			"20% off at most ¥5", "8 折 最高减 ¥5"},
		{`threshold = 5000, target = 'product', product = 'Tea'`, "Worth 20% off, at most ¥5, from ¥50 Valid for Only for Tea", "8 折，最高减 ¥5，满 ¥50 可用", "20% off at most ¥5, from ¥50", "8 折 最高减 ¥5，满 ¥50 可用"},
	} {
		g.Exec(`update templates set `+c.set+` where id = $1`, d.ID)
		english.Get(fmt.Sprintf("/coupons/%d", id)).Is(200).Has(c.en)
		chinese.Get(fmt.Sprintf("/coupons/%d", id)).Is(200).Has(c.zh)
		english.Get(shell.TemplateURL(d.ID) + "?tab=coupons").Is(200).Has(c.enTerms)
		chinese.Get(shell.TemplateURL(d.ID) + "?tab=coupons").Is(200).Has(c.zhTerms)
	}
}
