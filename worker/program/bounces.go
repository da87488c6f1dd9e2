package program

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/bouncemail"
	"dropbell/adapters/config"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/feedback"
	"dropbell/worker/shell"
)

// bouncesEvery is how often the bounce mailbox is looked into.
const bouncesEvery = 30 * time.Second

// emptyMailbox returns the job that stores what the mails of the bounce mailbox report,
// in one process at a time; nil if there is no such mailbox.
func (p *program) emptyMailbox() (func(context.Context) error, error) {
	mails := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_bounce_mails_total",
		Help: "Mails of the bounce mailbox, by what became of them."}, []string{"fate"})
	p.Registry.MustRegister(mails)
	for _, f := range []feedback.Fate{feedback.Reported, feedback.Ignored, feedback.Foreign, feedback.Unreadable} {
		mails.WithLabelValues(string(f)) // from 0, so that alerts see the first one
	}
	if p.Config.Mail.BounceMailbox == "" || !p.has(shell.House) {
		return nil, nil
	}
	cfg, err := bouncemail.ParseURL(p.Config.Mail.BounceMailbox)
	if err != nil {
		return nil, config.Mistake{Err: fmt.Errorf("BOUNCE_IMAP_URL %w", err)}
	}
	store := deliverydb.NewFeedback(p.DB, nil)
	p.OnClose(func() error { store.Close(); return nil })
	c := &feedback.Collector{Mailbox: bouncemail.NewMailbox(cfg), Reports: store, Addresses: p.Stores.Users,
		Read: bouncemail.NewReader(p.Config.Mail.BounceAddress, feedback.NewRefs(p.Config.LinkSecret)).Read,
		Counted: func(f feedback.Fate) {
			mails.WithLabelValues(string(f)).Inc()
			if f == feedback.Unreadable {
				p.Log.Warn("a mail of the bounce mailbox could not be read and was moved aside", "folder", bouncemail.Aside)
			}
		}}
	leader := p.Stores.Housekeeping
	return func(ctx context.Context) error { return leader.Leader(ctx, "bounce mailbox", c.Run) }, nil
}
