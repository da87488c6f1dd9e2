package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"dropbell/adapters/bouncemail"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
	"dropbell/worker/campaigns"
	"dropbell/worker/coupons"
	workerdelivery "dropbell/worker/delivery"
	"dropbell/worker/senders"
	"dropbell/worker/shell"
)

// delivery opens the senders and makes the delivery use cases. Test messages of staff go through
// the same senders as all other messages.
func (p *program) delivery() (d workerdelivery.Deps, err error) {
	p.processes = p.NewProcesses("worker", p.channels(), redis.AloneLimits()...)
	p.alone = redis.NewAlone(redis.AloneConfig{Sharing: p.processes.Delivering, Counted: p.processes.Alone, Log: p.Log, Now: time.Now})
	p.pacer = redis.NewPacer(p.Shared, p.alone)
	if p.senders, err = senders.Open(p.App, p.pacer, p.alone); err != nil {
		return d, err
	}
	p.admission = workerdelivery.NewAdmission(p.Stores.Channels, p.pacer, campaigns.NewLimits(p.Stores.Campaigns, p.pacer), p.senders.Breakers, p.senders.Routers)
	texts, err := lookup.NewBooks(p.Stores.Messages)
	if err != nil {
		return d, err
	}
	mailbox, err := p.mailbox()
	if err != nil {
		return d, err
	}
	batches := deliverydb.NewGroupedBatches(p.DB)
	p.OnClose(func() error { batches.Close(); return nil })
	return workerdelivery.Deps{
		Service: &delivery.Service{
			Store: batches, Queue: p.queue, Senders: p.senders.ByChannel, Texts: texts, Parallel: senders.ParallelCalls(p.Config),
			Admission: p.admission,
			Policy:    delivery.DefaultPolicy(), LeaseFor: leaseFor, Random: rand.Float64, Now: app.Clock, Uptime: app.NewUptime(),
			OptOutURL: p.optOutURL(), LinkURL: p.linkURL(),
			DropLinkURL: reminder.NewLinks(p.Config.LinkSecret).InMessages(p.Config.PublicURL),
			DropPage:    reminder.NewLinks(p.Config.LinkSecret).Page(p.Config.PublicURL),
			DrawPage:    draw.Page(p.Config.PublicURL),
			Reference:   p.reference(), Named: p.senders.Named, VerifiedOnly: p.Config.SMS.VerifiedOnly,
			// Guards are asked about the recipients of batches right before sending.
			Guards: map[delivery.Kind]delivery.Guard{
				delivery.KindCampaign: &campaign.Guard{Store: p.Stores.Campaigns, Granter: coupons.Granter{Gate: p.claims.All(), Accepted: p.claims.Gate, Budgets: p.Stores.Gates}},
				delivery.KindNotice:   coupon.Guard{Store: p.Stores.Notices},
			},
		},
		Tester: &testmessage.Tester{Store: p.Stores.ChannelTests, Senders: p.senders.ByChannel, Through: p.senders.Through, Texts: texts, Now: app.Clock,
			DropPage: reminder.NewLinks(p.Config.LinkSecret).Page(p.Config.PublicURL)},
		DeadLetters: &delivery.DeadLetters{Store: p.Stores.DeadLetters}, Letters: p.Stores.DeadLetters, Channels: p.Stores.Channels,
		Receipts: &feedback.Matcher{Store: p.Stores.Serials, Refs: feedback.NewRefs(p.Config.LinkSecret), Reports: p.reports()},
		Mailbox:  mailbox,
		Alerts: workerdelivery.Alerts{Circuits: func(ctx context.Context) ([]redis.State, error) { return p.Circuits(ctx, p.senders.Environment) },
			FailingPush: p.FailingPushProviders, Plan: p.Config.Mail.WarmUp, WarmUps: p.Stores.WarmUps, SMS: p.Config.SMS, Budget: p.SMSBudget()},
		Leader: p.Stores.Housekeeping.Leader, Queue: p.queue, Registry: p.Registry, Log: p.Log,
	}, nil
}

// reports returns what stores reports of providers.
func (p *program) reports() *deliverydb.Feedback {
	reports := deliverydb.NewFeedback(p.DB, nil)
	p.OnClose(func() error { reports.Close(); return nil })
	return reports
}

// mailbox returns the collector that stores the reports in the bounce mailbox. It is nil if no
// such mailbox is configured, or if this process does not read it.
func (p *program) mailbox() (*feedback.Collector, error) {
	if p.Config.Mail.BounceMailbox == "" || !p.has(shell.House) {
		return nil, nil
	}
	cfg, err := bouncemail.ParseURL(p.Config.Mail.BounceMailbox)
	if err != nil {
		return nil, config.Mistake{Err: fmt.Errorf("BOUNCE_IMAP_URL %w", err)}
	}
	return &feedback.Collector{Mailbox: bouncemail.NewMailbox(cfg), Reports: p.reports(), Addresses: p.Stores.Users,
		Read: bouncemail.NewReader(p.Config.Mail.BounceAddress, feedback.NewRefs(p.Config.LinkSecret)).Read}, nil
}

// optOutURL returns a function that makes the link with which a user turns a channel off; web
// serves the link. It is nil without the secret that signs the links.
func (p *program) optOutURL() func(user.ID, delivery.Channel) string {
	links := user.NewLinks(p.Config.LinkSecret)
	if !links.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(p.Config.PublicURL, "/") + "/u/"
	return func(id user.ID, c delivery.Channel) string { return base + links.Token(id, uint8(c)) }
}

// linkURL returns a function that makes the tracked link of one recipient; web serves the link.
// It is nil without the secret that signs the links.
func (p *program) linkURL() func(int64, user.ID, int, string) string {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}.Addresses(p.Config.PublicURL)
}

// reference returns what names messages to providers; nil without the secret.
func (p *program) reference() func(int64, user.ID) string {
	refs := feedback.NewRefs(p.Config.LinkSecret)
	if !refs.Enabled() {
		return nil
	}
	return func(batch int64, id user.ID) string { return refs.Text(feedback.Ref{Batch: batch, User: id}) }
}
