package program

import (
	"context"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/chat"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/alert"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

const (
	// alertsEvery is how often each worker looks for what needs attention; one of
	// them does the work.
	alertsEvery = 15 * time.Second
	// alertsSendEvery is how often deliveries to chat groups are looked for.
	alertsSendEvery = 2 * time.Second
	// balancesLife is how old a recount may be from which alerts are made.
	balancesLife = 3 * censusEvery
)

// newWatcher returns what tells staff of what needs attention.
func (p *program) newWatcher() *alert.Watcher {
	sender := chat.New(chat.Config{AllowPrivate: p.Config.AlertsPrivate, Now: app.Clock})
	p.OnClose(sender.Close)
	return &alert.Watcher{Store: workdb.NewAlerts(p.DB), Sender: sender, PublicURL: strings.TrimSuffix(p.Config.PublicURL, "/"), Watches: []alert.Watch{
		{Kind: alert.Channel, Look: p.failingChannels},
		{Kind: alert.Balance, Look: func(context.Context) ([]alert.Condition, error) { return p.balances.Get(app.Clock(), balancesLife) }},
	}}
}

// failingChannels are those whose circuit is open, and SMS once the budget of the day
// is used up.
func (p *program) failingChannels(ctx context.Context) (list []alert.Condition, err error) {
	states, err := redis.NewBreaker(p.Redis, redis.BreakerConfig{}).States(ctx)
	for _, s := range states {
		if s.State == delivery.CircuitOpen {
			list = append(list, alert.Condition{Kind: alert.Channel, Object: s.Channel.String(), Name: s.Channel.String(), Path: "/channels"})
		}
	}
	if err != nil || p.Config.SMS.BudgetPerDay == 0 {
		return list, err
	}
	spent, err := deliverydb.NewSMSBudget(p.DB, p.Config.SMS.BudgetPerDay).Spent(ctx)
	if spent.RefusedAt != nil {
		name := delivery.SMS.String()
		list = append(list, alert.Condition{Kind: alert.Channel, Object: name + ":budget", Name: name, Detail: alert.DetailBudget, Path: "/channels"})
	}
	return list, err
}

// balances says which drops' balance sheets do not add up.
type balances struct {
	memo  *alert.Memo
	drops dropsdb.Templates
}

// found notes the lines that a recount found off.
func (b balances) found(ctx context.Context, lines []reminder.BalanceLine) error {
	off := map[int64]int64{}
	for _, l := range lines {
		off[l.Slot.TemplateID] += l.Difference()
	}
	list := []alert.Condition{}
	for id, n := range off {
		t, err := b.drops.Template(ctx, id)
		if err != nil {
			return err
		}
		number := strconv.FormatInt(id, 10)
		list = append(list, alert.Condition{Kind: alert.Balance, Object: number, Shop: t.ShopNumber, Template: id, Name: t.Name, Count: n, Path: "/templates/" + number + "/balance"})
	}
	b.memo.Set(list, app.Clock())
	return nil
}
