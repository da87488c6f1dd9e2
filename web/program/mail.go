package program

import (
	"context"
	"maps"
	"slices"

	"dropbell/adapters/dnsrecords"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/mailcheck"
	"dropbell/domain/staff"
	consoledelivery "dropbell/web/console/delivery"
)

// mailCheck checks the senders of mails that worker uses. The mail servers of a shop are shown only
// to members who may see the shop.
func (p *program) mailCheck() consoledelivery.MailCheck {
	return consoledelivery.MailCheck{Resolver: dnsrecords.New(""), Pace: p.mailPace,
		Senders: func(ctx context.Context, by staff.Actor) ([]mailcheck.Sender, error) {
			list, err := p.providers.Store.All(ctx)
			return app.MailSenders(p.Config, slices.DeleteFunc(list, func(one provider.Provider) bool {
				return one.Shop != 0 && !by.Can(staff.View, one.Shop)
			})), err
		}}
}

// Days of a warm-up plan that a page shows before and behind today.
const daysBefore, daysBehind = 6, 7

// mailPace returns the limits of mails with the workers' counts. Without Redis the counts by domain
// are unknown.
func (p *program) mailPace(ctx context.Context) (pace delivery.MailPace, err error) {
	now := app.Clock()
	if pace.Domains, err = redis.NewDomainPacer(p.Shared, p.Config.Mail.DomainRates, app.Clock, nil).States(ctx); err != nil {
		pace.Unknown = true
		for _, domain := range slices.Sorted(maps.Keys(p.Config.Mail.DomainRates)) {
			pace.Domains = append(pace.Domains, delivery.DomainPace{Domain: domain, PerSecond: p.Config.Mail.DomainRates[domain]})
		}
	}
	pace.Plan = p.Config.Mail.WarmUp.Days(now, daysBefore, daysBehind)
	return pace, p.Stores.WarmUps.Fill(ctx, pace.Plan)
}

// completeMail adds the remaining budget of today's warm-up plan.
func (p *program) completeMail(ctx context.Context, all *[delivery.Channels]delivery.ChannelStatus) (err error) {
	if s := &all[delivery.Email]; s.Configured {
		s.Budget, err = p.Stores.WarmUps.Budget(ctx, p.Config.Mail.WarmUp, app.Clock())
	}
	return err
}
