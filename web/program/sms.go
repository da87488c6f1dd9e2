package program

import (
	"context"

	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// smsNames are the providers as their customers know them.
var smsNames = map[string]string{config.SMSTwilio: "Twilio", config.SMSAliyun: "Alibaba Cloud", config.SMSTencent: "Tencent Cloud", config.SMSSNS: "Amazon SNS"}

// textCosts estimates the cost of reminders by SMS; nil = there are no texts to measure.
func (p *program) textCosts() *forecast.TextCosts {
	texts, err := lookup.NewBooks(p.Stores.Messages)
	if err != nil {
		return nil
	}
	c := p.Config.SMS
	return &forecast.TextCosts{Store: p.Stores.Forecasts, Texts: texts, Prices: c.Prices, PerDay: int64(c.BudgetPerDay), PerDrop: int64(c.BudgetPerDrop),
		MicrosPerDay: c.MicrosPerDay, VerifiedOnly: c.VerifiedOnly, Countries: c.Countries, Country: sms.CountryOf}
}

// completeSMS adds the SMS provider and its remaining budget.
func (p *program) completeSMS(ctx context.Context, all *[delivery.Channels]delivery.ChannelStatus) error {
	if err := p.completeMail(ctx, all); err != nil {
		return err
	}
	s := &all[delivery.SMS]
	if !s.Configured {
		return nil
	}
	s.Service = smsNames[p.Config.SMS.Provider]
	perDay, inMoney := p.Config.SMS.BudgetPerDay, p.Config.SMS.MicrosPerDay
	if perDay == 0 && inMoney == 0 {
		return nil
	}
	spent, err := p.SMSBudget().Spent(ctx)
	s.Budget = delivery.ChannelBudget{PerDay: int64(perDay), Spent: spent.Parts, MicrosPerDay: inMoney, MicrosSpent: spent.Micros, Currency: p.Config.SMS.Prices.Currency, UsedUp: spent.RefusedAt != nil}
	return err
}
