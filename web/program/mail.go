package program

import (
	"context"
	"maps"
	"slices"
	"strings"

	"dropbell/adapters/dnsrecords"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/adapters/smtp"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/mailcheck"
	consoledelivery "dropbell/web/console/delivery"
)

// mailCheck says what mails come from, as worker sends them.
func (p *program) mailCheck() consoledelivery.MailCheck {
	c := consoledelivery.MailCheck{Resolver: dnsrecords.New(""), Pace: p.mailPace}
	server, err := smtp.ParseURL(p.Config.SMTPURL)
	if p.Config.SMTPURL == "" || err != nil {
		return c
	}
	domain := func(address string) string { return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:]) }
	c.Sender = mailcheck.Sender{From: domain(server.From.Address), ReturnPath: domain(server.From.Address), Server: server.Host}
	if p.Config.Mail.BounceAddress != "" {
		c.Sender.ReturnPath = domain(p.Config.Mail.BounceAddress)
	}
	if key, err := smtp.ParseDKIMKey(p.Config.Mail.DKIMKey); err == nil && p.Config.Mail.DKIMDomain != "" {
		c.Sender.Signer, c.Sender.Selector = p.Config.Mail.DKIMDomain, p.Config.Mail.DKIMSelector
		c.Sender.Record = smtp.DKIM{Key: key}.Record()
	}
	return c
}

// Days of a warm-up plan that a page shows before and behind today.
const daysBefore, daysBehind = 6, 7

// mailPace returns what limits mails, with what the workers have counted. Without Redis
// their counts by domain are not known.
func (p *program) mailPace(ctx context.Context) (pace delivery.MailPace, err error) {
	now := app.Clock()
	if pace.Domains, err = redis.NewDomainPacer(p.Redis, p.Config.Mail.DomainRates, app.Clock).States(ctx); err != nil {
		pace.Unknown = true
		for _, domain := range slices.Sorted(maps.Keys(p.Config.Mail.DomainRates)) {
			pace.Domains = append(pace.Domains, delivery.DomainPace{Domain: domain, PerSecond: p.Config.Mail.DomainRates[domain]})
		}
	}
	pace.Plan = p.Config.Mail.WarmUp.Days(now, daysBefore, daysBehind)
	return pace, deliverydb.NewWarmUps(p.DB).Fill(ctx, pace.Plan)
}

// completeMail adds what is left of the day of a warm-up plan.
func (p *program) completeMail(ctx context.Context, all *[delivery.Channels]delivery.ChannelStatus) (err error) {
	if s := &all[delivery.Email]; s.Configured {
		s.Budget, err = deliverydb.NewWarmUps(p.DB).Budget(ctx, p.Config.Mail.WarmUp, app.Clock())
	}
	return err
}
