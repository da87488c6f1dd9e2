package program

import (
	"context"

	"dropbell/adapters/config"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
)

// smsNames are the providers as their customers know them.
var smsNames = map[string]string{config.SMSTwilio: "Twilio", config.SMSAliyun: "Alibaba Cloud", config.SMSTencent: "Tencent Cloud", config.SMSSNS: "Amazon SNS"}

// completeSMS adds the provider of SMS and what is left of its budget.
func (p *program) completeSMS(ctx context.Context, all *[delivery.Channels]delivery.ChannelStatus) error {
	if err := p.completeMail(ctx, all); err != nil {
		return err
	}
	s := &all[delivery.SMS]
	if !s.Configured {
		return nil
	}
	s.Service = smsNames[p.Config.SMS.Provider]
	perDay := p.Config.SMS.BudgetPerDay
	if perDay == 0 {
		return nil
	}
	spent, err := deliverydb.NewSMSBudget(p.DB, perDay, p.Config.SMS.BudgetPerDrop).Spent(ctx)
	s.Budget = delivery.ChannelBudget{PerDay: int64(perDay), Spent: spent.Parts, UsedUp: spent.RefusedAt != nil}
	return err
}
