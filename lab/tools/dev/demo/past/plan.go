package past

import (
	"fmt"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// A plan is a drop of the past as the history has it.
type plan struct {
	Key  string
	Days int // before the demo began
	Hour int // of the opening, in the shop's zone
	Open time.Duration
	template.Spec

	Bookers int // users who reserve
	// Tries is the share of bookers who claim; Others is how many users claim without having
	// reserved, as a share of the bookers. Rush is the mean time of a claim after the opening.
	Tries, Others float64
	Rush          time.Duration
	// Uses is the share of coupons that are used, Basket the middle of their orders.
	Uses   float64
	Basket money.Amount
	// Revoked is how many unused coupons staff take back to the stock.
	Revoked int
	// Failing is the channel whose provider failed during the drop's reminders.
	Failing  *delivery.Channel
	Campaign *campaignPlan
	Selling  bool // still on sale
	// Paused is when staff paused the drop and resumed it, after the opening; zero = they did not.
	Paused [2]time.Duration
}

// A campaignPlan is a campaign about a drop, and its effect.
type campaignPlan struct {
	Name    string
	Channel delivery.Channel
	Kind    campaign.AudienceKind
	After   time.Duration // from the opening of the drop to the start
	Content delivery.Copy
	// Effect is the share of recipients who do what the campaign asks for, by variant, the
	// held-out users first; Opened is the share of sent messages whose link is followed.
	Effect [3]float64
	Opened [2]float64
}

// amountOff, thresholdOff and percentOff return what a coupon is worth, in yuan.
func amountOff(yuan int64) template.Spec {
	return template.Spec{Kind: template.AmountOff, AmountOff: money.Amount(100 * yuan)}
}

func thresholdOff(yuan, from int64) template.Spec {
	return template.Spec{Kind: template.ThresholdOff, AmountOff: money.Amount(100 * yuan), Threshold: money.Amount(100 * from)}
}

func percentOff(percent int, most int64) template.Spec {
	return template.Spec{Kind: template.PercentOff, PercentOff: percent, MaxOff: money.Amount(100 * most)}
}

// drop returns the plan of a drop of the shop: worth with its name, stock and hours of validity.
func drop(key string, shop int64, name string, worth template.Spec, stock int64, valid int, p plan) plan {
	p.Key, p.Spec = key, worth
	p.ShopNumber, p.Name, p.Currency, p.Target, p.Stock, p.ValidHours = shop, name, "CNY", template.WholeShop, stock, valid
	if p.Open == 0 {
		p.Open = 48 * time.Hour
	}
	return p
}

// tea and leaf are the two shops.
const tea, leaf = 10, 20

// drops returns the drops, the earliest first: the years before, then eight weeks with twelve drops that are over and one that is on
// sale.
func drops() []plan {
	return append(years(), []plan{
		drop("cups", tea, "外带杯饮立减 10 元 · Cups to go, ¥10 off", amountOff(10), 300, 72, plan{Days: 55, Hour: 10, Bookers: 520, Tries: .62, Others: .1, Rush: 4 * time.Minute, Uses: .55, Basket: 5200}),
		drop("online", leaf, "一叶一壶线上开业 · Leaf & Kettle opens online", amountOff(15), 250, 96, plan{Days: 51, Hour: 20, Bookers: 430, Tries: .7, Others: .12, Rush: 3 * time.Minute, Uses: .58, Basket: 8800}),
		drop("rain", tea, "满 80 减 20 · Rainy days", thresholdOff(20, 80), 450, 72, plan{Days: 47, Hour: 12, Bookers: 820, Tries: .66, Others: .1, Rush: 150 * time.Second, Uses: .6, Basket: 12800}),
		drop("osmanthus", tea, "桂花周 85 折 · Osmanthus week, 15 % off", percentOff(15, 30), 700, 120, plan{Days: 42, Hour: 20, Bookers: 900, Tries: .68, Others: .15, Rush: 2 * time.Minute, Uses: .5, Basket: 13600, Campaign: waiting()}),
		drop("harvest", leaf, "新茶上市 8 折 · New harvest", percentOff(20, 40), 400, 96, plan{Days: 38, Hour: 20, Bookers: 760, Tries: .74, Others: .12, Rush: time.Minute, Uses: .63, Basket: 16800}),
		drop("hotpot", tea, "火锅之夜立减 30 元 · Hot pot night, ¥30 off", thresholdOff(30, 120), 700, 72, plan{Days: 34, Hour: 18, Bookers: 1350, Tries: .7, Others: .14, Rush: 80 * time.Second, Uses: .64, Basket: 19800, Revoked: 3}),
		drop("supper", tea, "深夜食堂立减 15 元 · Late supper, ¥15 off", amountOff(15), 900, 72, plan{Days: 28, Hour: 21, Bookers: 1500, Tries: .58, Others: .1, Rush: 3 * time.Minute, Uses: .57, Basket: 7600, Failing: new(delivery.SMS)}),
		drop("oolong", leaf, "乌龙品鉴 85 折 · Oolong tasting, 15 % off", percentOff(15, 30), 900, 96, plan{Days: 24, Hour: 20, Bookers: 1150, Tries: .46, Others: .1, Rush: 2 * time.Minute, Uses: .6, Basket: 15600, Campaign: lastCall()}),
		drop("double", tea, "满 100 减 30 · Double day", thresholdOff(30, 100), 1200, 72, plan{Days: 19, Hour: 20, Bookers: 2300, Tries: .76, Others: .16, Rush: 35 * time.Second, Uses: .66, Basket: 16400}),
		drop("brunch", tea, "花园早午餐 8 折 · Garden brunch, 20 % off", percentOff(20, 50), 1300, 96, plan{Days: 13, Hour: 10, Bookers: 2500, Tries: .68, Others: .14, Rush: 45 * time.Second, Uses: .62, Basket: 14200, Failing: new(delivery.Email)}),
		drop("kettle", leaf, "茶壶周立减 40 元 · Kettle week, ¥40 off", thresholdOff(40, 200), 900, 120, plan{Days: 8, Hour: 20, Bookers: 1900, Tries: .74, Others: .15, Rush: 25 * time.Second, Uses: .64, Basket: 32600}),
		drop("night", tea, "丰收夜立减 25 元 · Harvest night, ¥25 off", thresholdOff(25, 100), 2000, 240, plan{Days: 4, Hour: 20, Bookers: 3400, Tries: .72, Others: .15, Rush: 18 * time.Second, Uses: .7, Basket: 18600, Campaign: twoDays()}),
		drop("afternoon", tea, "全周下午茶 9 折 · Afternoon tea, 10 % off all week", percentOff(10, 20), 3000, 240, plan{Days: 1, Hour: 15, Open: 6 * 24 * time.Hour, Bookers: 1800, Tries: .6, Others: .3, Rush: 5 * time.Hour, Uses: .4, Basket: 9800, Selling: true, Paused: [2]time.Duration{3*time.Hour + 12*time.Minute, 3*time.Hour + 39*time.Minute}}),
	}...)
}

// years returns the drops before the last eight weeks, the earliest first. The shop has grown with its customers, with a peak in
// winter and a quiet summer.
func years() (list []plan) {
	for i, d := range []struct {
		days, hour int
		name       string
		worth      template.Spec
		stock      int64
		bookers    int
		basket     money.Amount
	}{
		{486, 10, "第一壶立减 5 元 · First pots, ¥5 off", amountOff(5), 120, 210, 9600},
		{452, 12, "冰茶立减 8 元 · Iced tea, ¥8 off", amountOff(8), 160, 220, 11200},
		{421, 20, "中秋礼盒满 150 减 30 · Moon cake boxes", thresholdOff(30, 150), 220, 300, 46800},
		{389, 18, "秋叶 9 折 · Autumn leaves, 10 % off", percentOff(10, 20), 200, 260, 18800},
		{352, 20, "暖冬立减 20 元 · Winter warmers, ¥20 off", thresholdOff(20, 90), 330, 430, 32600},
		{318, 20, "年货节满 200 减 50 · New Year market", thresholdOff(50, 200), 420, 620, 62800},
		{287, 12, "元宵夜 85 折 · Lantern night, 15 % off", percentOff(15, 25), 300, 420, 26200},
		{254, 10, "春茶立减 15 元 · Spring picking, ¥15 off", amountOff(15), 340, 470, 17800},
		{221, 20, "谷雨新茶 8 折 · Grain rain tea, 20 % off", percentOff(20, 40), 420, 640, 24400},
		{187, 18, "母亲节立减 30 元 · Mother’s day, ¥30 off", thresholdOff(30, 120), 400, 560, 27200},
		{152, 12, "冷泡茶立减 10 元 · Cold brew, ¥10 off", amountOff(10), 360, 430, 10900},
		{118, 10, "夏日 9 折 · Summer break, 10 % off", percentOff(10, 20), 300, 340, 11400},
		{93, 20, "夏末立减 12 元 · Late summer, ¥12 off", amountOff(12), 380, 450, 14200},
		{71, 18, "开学季满 80 减 15 · Back to school", thresholdOff(15, 80), 420, 560, 17800},
	} {
		list = append(list, drop(fmt.Sprintf("year %d", i+1), tea, d.name, d.worth, d.stock, 72, plan{Days: d.days, Hour: d.hour, Bookers: d.bookers, Tries: .66, Others: .12,
			Rush: 3 * time.Minute, Uses: .58, Basket: d.basket}))
	}
	return list
}

// texts returns a text in English, the default, and in Chinese.
func texts(title, body, titleChinese, bodyChinese string) map[string]delivery.Text {
	return map[string]delivery.Text{"": {Title: title, Body: body}, "zh-CN": {Title: titleChinese, Body: bodyChinese}}
}

func waiting() *campaignPlan {
	return &campaignPlan{Name: "85 折券待使用 · Your 15 % is waiting", Channel: delivery.Email, Kind: campaign.Holds, After: 26 * time.Hour,
		Content: delivery.Copy{Variants: []delivery.Variant{
			{Percent: 50, Texts: texts("Your 15 % is waiting", "Osmanthus week runs until the weekend. Your coupon is in your account.", "您的 85 折券还没用", "桂花周到本周末结束，您的券在账户里。")},
			{Percent: 50, Texts: texts("Two days left for your 15 %", "Your coupon ends in **two days**. Order tonight and it arrives in time.", "85 折券还剩两天", "您的券**两天后**到期，今晚下单还来得及。")},
		}}, Effect: [3]float64{0, .24, .35}, Opened: [2]float64{.21, .33}}
}

func lastCall() *campaignPlan {
	return &campaignPlan{Name: "乌龙茶券还有 · Oolong: still some left", Channel: delivery.SMS, Kind: campaign.Reserved, After: 4 * time.Hour,
		Content: delivery.Copy{HoldOut: 20, Variants: []delivery.Variant{
			{Percent: 50, Texts: texts("Still some left", "Coupons for the oolong tasting are still available.", "乌龙茶券还有", "乌龙品鉴的券还有剩余。")},
			{Percent: 50, Texts: texts("You reserved this one", "You asked to be reminded of the oolong tasting. **Your coupon is one tap away.**", "您预约的券还在", "您预约过乌龙品鉴，**一点即领**。")},
		}}, Effect: [3]float64{.05, .12, .2}, Opened: [2]float64{.19, .28}}
}

func twoDays() *campaignPlan {
	return &campaignPlan{Name: "丰收夜券本周用 · Harvest night: use it this week", Channel: delivery.Email, Kind: campaign.Holds, After: 40 * time.Hour,
		Content: delivery.Copy{HoldOut: 10, Variants: []delivery.Variant{
			{Percent: 50, Texts: texts("¥25 off, this week only", "Spend ¥100 and take ¥25 off until the end of the week.", "本周满 100 减 25", "本周消费满 100 元立减 25 元。")},
			{Percent: 50, Texts: texts("Dinner for two with ¥25 off", "A table for two, ¥25 off. **Your coupon is ready.**", "双人晚餐立减 25 元", "双人套餐立减 25 元，**您的券已备好**。")},
		}}, Effect: [3]float64{.12, .2, .28}, Opened: [2]float64{.24, .31}}
}
