package delivery

import (
	"context"
	"strconv"

	"dropbell/adapters/config"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/staff/alert"
)

// Alerts say which channels need the attention of staff.
type Alerts struct {
	// Circuits returns the circuit of every channel.
	Circuits func(context.Context) ([]redis.State, error)
	// FailingPush returns the providers of push whose circuit is not closed.
	FailingPush func(context.Context) ([]provider.Provider, error)
	Plan        delivery.WarmUp
	WarmUps     deliverydb.WarmUps
	SMS         config.SMS
	Budget      deliverydb.SMSBudget
}

// failingChannels returns the channels whose circuit breaker is open (see [app.App.Circuits]),
// the providers of push whose circuit breaker is open, and SMS once the day's budget is used up.
func (a Alerts) failingChannels(ctx context.Context) (list []alert.Condition, err error) {
	states, err := a.Circuits(ctx)
	for _, s := range states {
		if s.State == delivery.CircuitOpen {
			list = append(list, alert.Condition{Kind: alert.Channel, Object: s.Channel.String(), Name: s.Channel.String(), Path: "/channels"})
		}
	}
	if err == nil {
		list, err = a.pushAlerts(ctx, list)
	}
	if err == nil {
		list, err = a.warmUpAlert(ctx, list)
	}
	perDay, perDrop := a.SMS.BudgetPerDay, a.SMS.BudgetPerDrop
	inMoney := a.SMS.MicrosPerDay
	if err != nil || perDay == 0 && perDrop == 0 && inMoney == 0 {
		return list, err
	}
	budget, name := a.Budget, delivery.SMS.String()
	spent, err := budget.Spent(ctx)
	if err == nil && (perDay > 0 || inMoney > 0) && spent.RefusedAt != nil {
		list = append(list, alert.Condition{Kind: alert.Channel, Object: name + ":budget", Name: name, Detail: alert.DetailBudget, Path: "/channels"})
	}
	if err != nil || perDrop == 0 {
		return list, err
	}
	over, err := budget.DropsOver(ctx)
	for _, d := range over {
		number := strconv.FormatInt(d.TemplateID, 10)
		list = append(list, alert.Condition{Kind: alert.Channel, Object: name + ":budget:" + number, Name: d.Name, Shop: d.Shop, Template: d.TemplateID,
			Detail: alert.DetailDropBudget, Path: "/templates/" + number})
	}
	return list, err
}

// pushAlerts adds the providers of push whose circuit is open.
func (a Alerts) pushAlerts(ctx context.Context, list []alert.Condition) ([]alert.Condition, error) {
	failing, err := a.FailingPush(ctx)
	for _, one := range failing {
		list = append(list, alert.Condition{Kind: alert.Channel, Object: one.Channel.String() + ":provider:" + strconv.FormatInt(one.ID, 10), Name: one.Name, Shop: one.Shop,
			Detail: alert.DetailProvider, Path: "/providers"})
	}
	return list, err
}

// warmUpAlert adds a condition if the mails of the day are sent and further mails wait.
func (a Alerts) warmUpAlert(ctx context.Context, list []alert.Condition) ([]alert.Condition, error) {
	b, err := a.WarmUps.Budget(ctx, a.Plan, app.Clock())
	if b.UsedUp {
		name := delivery.Email.String()
		list = append(list, alert.Condition{Kind: alert.Channel, Object: name + ":warmup", Name: name, Detail: alert.DetailWarmUp, Path: "/channels"})
	}
	return list, err
}
