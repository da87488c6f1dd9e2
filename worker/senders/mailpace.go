package senders

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/adapters/smtp"
	"dropbell/app"
	"dropbell/domain/delivery"
)

// MailPace limits mails by the recipients' domains and by the day of a warm-up plan.
type MailPace struct {
	domains *redis.DomainPacer
	days    deliverydb.WarmUps
	plan    delivery.WarmUp
	// Now is the time of the days.
	Now func() time.Time
	log *slog.Logger
}

// newMailPace returns the limits of mails. Without a configured limit, only the limits that
// domains request apply.
func newMailPace(a *app.App, alone *redis.Alone) *MailPace {
	return &MailPace{domains: redis.NewDomainPacer(a.Shared, a.Config.Mail.DomainRates, time.Now, alone), days: a.Stores.WarmUps, plan: a.Config.Mail.WarmUp, Now: app.Clock, log: a.Log}
}

// dayFor bounds a statement about the day's count.
const dayFor = 2 * time.Second

// Admit is part of [smtp.Pace]. If the day's count cannot be read, no mail of the warm-up plan
// goes out for five seconds: too many mails would harm the sender's reputation for weeks.
func (p *MailPace) Admit(ctx context.Context, mails map[string]smtp.Mails) (map[string]smtp.Permit, func(context.Context, map[string]int)) {
	permits := map[string]smtp.Permit{}
	admitted := map[string]int{}
	var all int64
	now := p.Now()
	giveBack := func(ctx context.Context, unsent map[string]int) {
		for domain, n := range unsent {
			p.domains.Unused(ctx, domain, now, n)
		}
	}
	for domain, m := range mails {
		t, limited := p.domains.Admit(ctx, domain, redis.Mails(m))
		if limited {
			permits[domain] = smtp.Permit{Now: t.Now, Wait: t.Wait, Every: t.Every, Given: t.Given, Again: t.Again, Reason: delivery.ReasonDomain}
		}
		admitted[domain] = t.Now
		all += int64(t.Now)
	}
	most := p.plan.Most(now)
	if most == 0 || all == 0 {
		return permits, giveBack
	}
	taking, cancel := context.WithTimeout(ctx, dayFor)
	defer cancel()
	left, err := p.days.Take(taking, now, all, most)
	held := smtp.Permit{Wait: untilTomorrow(now), Reason: delivery.ReasonWarmUp, Detail: "not sent: the mails of the day are sent"}
	if err != nil {
		p.log.Warn("mails wait, since those of the day could not be counted", "error", err)
		held = smtp.Permit{Wait: 5 * time.Second, Detail: "not sent: the mails of the day could not be counted"}
	}
	for _, domain := range slices.Sorted(maps.Keys(mails)) {
		n := min(int64(admitted[domain]), left)
		left -= n
		if n < int64(admitted[domain]) {
			p.domains.Unused(ctx, domain, now, admitted[domain]-int(n))
			permit := held
			permit.Now = int(n)
			permits[domain] = permit
		}
	}
	// The mails belong to the day that they were taken from, also after midnight.
	return permits, func(ctx context.Context, unsent map[string]int) {
		giveBack(ctx, unsent)
		p.giveBack(ctx, now, unsent)
	}
}

// untilTomorrow is how long the day (UTC) lasts.
func untilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// Slow is part of [smtp.Pace].
func (p *MailPace) Slow(ctx context.Context, server, domain string) (wait time.Duration, others bool) {
	if wait, others = p.domains.Slow(ctx, server, domain); others {
		p.log.Info("a mail domain asks for fewer mails; those to others go on", "domain", domain, "after", wait.String())
	}
	return wait, others
}

// Taken is part of [smtp.Pace].
func (p *MailPace) Taken(server, domain string) { p.domains.Taken(server, domain) }

// giveBack returns unsent mails to the count of the day. If the database does not take them
// back, that day sends fewer mails.
func (p *MailPace) giveBack(ctx context.Context, day time.Time, unsent map[string]int) {
	mails := 0
	for _, n := range unsent {
		mails += n
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dayFor)
	defer cancel()
	_ = p.days.GiveBack(ctx, day, int64(mails))
}
