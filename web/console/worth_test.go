package console

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// What a coupon is worth is said once, for every kind.
func TestWorthOfACoupon(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	id := g.gives(d, 1001)
	english, chinese := g.as(staff.Viewer), g.as(staff.Viewer)
	chinese.header.Set("Accept-Language", "zh-CN")
	for _, c := range []struct{ set, en, zh, enTerms, zhTerms string }{
		{`kind = 'amount_off', amount_off = 1000`, "Worth CN¥10 off Template", "面值 立减 ¥10 模板", "CN¥10 off no minimum spend", "¥10 无门槛"},
		{`kind = 'threshold_off', amount_off = 1000, threshold = 5000`, "Worth CN¥10 off from CN¥50 Template", "面值 满 ¥50 减 ¥10 模板", "CN¥10 off from CN¥50", "¥10 满 ¥50 可用"},
		{`kind = 'percent_off', amount_off = 0, threshold = 0, percent_off = 20, max_off = 500`, "Worth 20% off, at most CN¥5 Template", "面值 8 折，最高减 ¥5 模板",
			"20% off at most CN¥5", "8 折 最高减 ¥5"},
		{`threshold = 5000, target = 'product', product = 'Tea'`, "Worth 20% off, at most CN¥5, from CN¥50 Valid for Only for Tea", "8 折，最高减 ¥5，满 ¥50 可用", "20% off at most CN¥5, from CN¥50", "8 折 最高减 ¥5，满 ¥50 可用"},
	} {
		g.exec(`update templates set `+c.set+` where id = $1`, d.ID)
		english.get(fmt.Sprintf("/coupons/%d", id)).is(200).has(c.en)
		chinese.get(fmt.Sprintf("/coupons/%d", id)).is(200).has(c.zh)
		english.get(shell.TemplateURL(d.ID)).is(200).has(c.enTerms)
		chinese.get(shell.TemplateURL(d.ID)).is(200).has(c.zhTerms)
	}
}
