package forecast_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// textSample is a store with one sample.
type textSample forecast.TextSample

func (s textSample) TextSample(context.Context, int64, int) (forecast.TextSample, error) {
	return forecast.TextSample(s), nil
}

// builtIn has the built-in texts, and a shop's price of a part.
type builtIn struct{ shop message.Shop }

func (b builtIn) Book(context.Context, message.Place, int64) (*message.Book, error) {
	return message.NewBook([]message.Version{{ID: 1, Key: message.Key{Kind: message.Settings}, Text: &message.Text{Shop: &b.shop}}}), nil
}

// Messages are measured as each reader gets them, and priced by number. Readers who cannot be
// reached cost nothing.
func TestTextCosts(t *testing.T) {
	day := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	prices, err := delivery.ParseSMSPrices("86=0.05 CNY,49=0.5 CNY")
	musttest.OK(t, err)
	sample := textSample{Today: day, SpentToday: delivery.BudgetSize{Parts: 90, Micros: 90_000_000}, SpentDrop: 10,
		Days: []forecast.TextDay{{Day: day, Messages: 800, All: 1600}, {Day: day.AddDate(0, 0, 1), Messages: 200, All: 200}},
		Readers: []forecast.TextReader{
			{Phone: "+8613800138000", Locale: "zh-CN", Timezone: "Asia/Shanghai", Messages: 2, Verified: true},
			{Phone: "+8613800138001", Locale: "zh-CN", Messages: 1},
			{Phone: "+4915112345678", Locale: "en", Messages: 1, Verified: true},
			{Messages: 1}}} // 5 messages, of which one has no number
	country := func(phone string) string {
		return map[string]string{"+86": "CN", "+49": "DE", "+14": "US"}[phone[:3]]
	}
	drop := template.Template{Spec: template.Spec{Name: "春季特惠满减优惠券大派送第二弹春季特惠满减优惠券", OpensAt: day.Add(20 * time.Hour)}, ShopName: "Corner shop"}
	costs := &forecast.TextCosts{Store: sample, Texts: builtIn{}, Prices: prices, Country: country, PerDay: 2000, PerDrop: 1000, MicrosPerDay: 1000_000_000}
	c, err := costs.Of(t.Context(), drop)
	musttest.OK(t, err)
	// A Chinese text takes one part; the Chinese name makes the English one two.
	if !c.Priced() || len(c.Countries) != 2 {
		t.Fatalf("%+v", c)
	}
	want := c
	want.Messages, want.Parts, want.Micros, want.Currency, want.Estimated = 800, 1000, 600*50_000+400*500_000, "CNY", true
	if diff := cmp.Diff(want, c); diff != "" {
		t.Fatalf("cost (-want +got):\n%s", diff)
	}
	if cn, de := c.Countries[0], c.Countries[1]; cn.Country != "CN" || cn.Messages != 600 || cn.Parts != 600 || de.Country != "DE" || de.Parts != 400 || de.Micros != 200_000_000 {
		t.Errorf("%+v", c.Countries)
	}
	if c.DropParts != 1000 || c.DropLeft != 990 || len(c.Days) != 0 {
		t.Errorf("%+v", c)
	}

	costs.PerDrop, costs.PerDay, costs.MicrosPerDay = 0, 1500, 450_000_000
	c, err = costs.Of(t.Context(), drop)
	if err != nil || c.DropParts != 0 || len(c.Days) != 1 || !c.Days[0].Parts || !c.Days[0].Money || !c.Days[0].Day.Equal(day) ||
		c.Days[0].Need != (delivery.BudgetSize{Parts: 1600, Micros: 368_000_000}) || c.Days[0].Left != (delivery.BudgetSize{Parts: 1410, Micros: 360_000_000}) {
		t.Errorf("%+v %v", c, err)
	}

	costs.VerifiedOnly = true
	if c, err = costs.Of(t.Context(), drop); err != nil || c.Messages != 600 || c.Countries[0].Parts != 400 {
		t.Errorf("verified numbers only: %+v %v", c, err)
	}

	// Without a list the shop's price counts; with one that lacks a country, a part.
	costs.VerifiedOnly, costs.Prices, costs.Texts = false, delivery.SMSPrices{}, builtIn{message.Shop{PartPrice: 600, Currency: "EUR"}}
	if c, err = costs.Of(t.Context(), drop); err != nil || c.Currency != "EUR" || c.Micros != 1000*60_000 || !c.Priced() {
		t.Errorf("the shop's price: %+v %v", c, err)
	}
	costs.Prices, _ = delivery.ParseSMSPrices("86=0.05 CNY")
	if c, err = costs.Of(t.Context(), drop); err != nil || c.Priced() || c.Micros != 600*50_000 || c.Countries[1].Priced {
		t.Errorf("a list without a country: %+v %v", c, err)
	}
	// The budget in money counts numbers without a price at the highest one of the list.
	costs.Prices, _ = delivery.ParseSMSPrices("86=0.05 CNY,852=0.1 CNY")
	if c, err = costs.Of(t.Context(), drop); err != nil || c.Micros != 600*50_000 || len(c.Days) == 0 || c.Days[0].Need.Micros != 960*50_000+640*100_000 {
		t.Errorf("a number without a price in the budget: %+v %v", c, err)
	}
	costs.Countries = []string{"CN"}
	if c, err = costs.Of(t.Context(), drop); err != nil || c.Parts != 600 || c.Messages != 600 || len(c.Countries) != 1 || !c.Priced() {
		t.Errorf("one country only: %+v %v", c, err)
	}
	costs.Store = textSample{}
	if c, err = costs.Of(t.Context(), drop); c != nil || err != nil {
		t.Errorf("without messages: %+v %v", c, err)
	}
}
