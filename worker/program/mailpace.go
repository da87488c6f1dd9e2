package program

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
	"dropbell/domain/alert"
	"dropbell/domain/delivery"
)

// mailPace limits mails by the recipients' domains and by the day of a warm-up plan.
type mailPace struct {
	domains *redis.DomainPacer
	days    deliverydb.WarmUps
	plan    delivery.WarmUp
	now     func() time.Time
	log     *slog.Logger
}

// newMailPace returns the limits of mails, which may be none but those that domains ask for.
func (p *program) newMailPace() *mailPace {
	return &mailPace{redis.NewDomainPacer(p.Redis, p.Config.Mail.DomainRates, time.Now), deliverydb.NewWarmUps(p.DB), p.Config.Mail.WarmUp, app.Clock, p.Log}
}

// Admit is part of [smtp.Pace]. If the day's count cannot be read, no mail of the plan
// goes out for a moment: too many would harm the sender for weeks.
func (p *mailPace) Admit(ctx context.Context, mails map[string]int) map[string]smtp.Permit {
	permits := map[string]smtp.Permit{}
	admitted := map[string]int{}
	var all int64
	for domain, n := range mails {
		now, wait, every, limited := p.domains.Admit(ctx, domain, n)
		if limited {
			permits[domain] = smtp.Permit{Now: now, Wait: wait, Every: every, Reason: delivery.ReasonDomain}
		}
		admitted[domain] = now
		all += int64(now)
	}
	now := p.now()
	most := p.plan.Most(now)
	if most == 0 || all == 0 {
		return permits
	}
	left, err := p.days.Take(ctx, now, all, most)
	wait := untilTomorrow(now)
	if err != nil {
		p.log.Warn("mails wait, since those of the day could not be counted", "error", err)
		wait = 5 * time.Second
	}
	for _, domain := range slices.Sorted(maps.Keys(mails)) {
		n := min(int64(admitted[domain]), left)
		left -= n
		if n < int64(admitted[domain]) {
			permits[domain] = smtp.Permit{Now: int(n), Wait: wait, Reason: delivery.ReasonWarmUp}
		}
	}
	return permits
}

// untilTomorrow is how long the day (UTC) lasts.
func untilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// Slow is part of [smtp.Pace].
func (p *mailPace) Slow(ctx context.Context, domain string) time.Duration {
	wait := p.domains.Slow(ctx, domain)
	p.log.Info("a mail domain asks for fewer mails; those to others go on", "domain", domain, "after", wait.String())
	return wait
}

// Unsent is part of [smtp.Pace]. What the database does not take back is missing for the
// day.
func (p *mailPace) Unsent(ctx context.Context, mails int) {
	if now := p.now(); p.plan.Most(now) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = p.days.GiveBack(ctx, now, int64(mails))
	}
}

// warmUpAlert adds that the mails of the day are sent and others wait.
func (p *program) warmUpAlert(ctx context.Context, list []alert.Condition) ([]alert.Condition, error) {
	b, err := deliverydb.NewWarmUps(p.DB).Budget(ctx, p.Config.Mail.WarmUp, app.Clock())
	if b.UsedUp {
		name := delivery.Email.String()
		list = append(list, alert.Condition{Kind: alert.Channel, Object: name + ":warmup", Name: name, Detail: alert.DetailWarmUp, Path: "/channels"})
	}
	return list, err
}
