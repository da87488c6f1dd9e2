package program

import (
	"context"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/chat"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/push/webpush"
	"dropbell/app"
	"dropbell/domain/alert"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/worker/shell"
)

const (
	// alertsEvery is how often each worker looks for what needs attention; one of
	// them does the work.
	alertsEvery = 15 * time.Second
	// balancesLife is how old a recount may be from which alerts are made.
	balancesLife = 3 * censusEvery
)

// newWatcher returns what tells staff of what needs attention.
func (p *program) newWatcher() *alert.Watcher {
	groups := chat.New(chat.Config{AllowPrivate: p.Config.AlertsPrivate, Now: app.Clock})
	p.OnClose(groups.Close)
	return &alert.Watcher{Store: p.addresses, Sender: alertSender{groups, p.senders.ByChannel[delivery.Email]}, PublicURL: strings.TrimSuffix(p.Config.PublicURL, "/"), Crashed: p.alertCrashed, Watches: append(p.roles.Watches, alert.Watch{Kind: alert.Balance, Look: func(context.Context) ([]alert.Condition, error) { return p.balances.Get(app.Clock(), balancesLife) }})}
}

// sealAddresses seals the addresses of chat groups that are stored as they are, as soon as
// the database lets it.
func (p *program) sealAddresses(ctx context.Context) error {
	for {
		err := p.addresses.SealStored(ctx)
		if err == nil {
			return nil
		}
		p.Log.Warn("addresses of chat groups cannot be sealed yet", "error", err)
		if !shell.Sleep(ctx, 10*time.Second) {
			return nil
		}
	}
}

// alertCrashed logs a panic of a sender of notifications for staff.
func (p *program) alertCrashed(what string, stack []byte) {
	p.Log.Error("a notification of staff was not sent: its sender panicked", "panic", what, "stack", string(stack))
}

// alertSender sends alerts in the form of their destination.
type alertSender struct {
	groups alert.Sender
	mail   delivery.Sender // nil without a mail server; see [delivery.RoutedSender]
}

// Send sends one alert; see [alert.Sender]. Mails have the text's first line as
// their subject, and the delivery's number in their Message-ID.
func (s alertSender) Send(ctx context.Context, d alert.Delivery, text string) alert.Outcome {
	switch {
	case d.Destination.Form != alert.Email:
		return s.groups.Send(ctx, d, text)
	case s.mail == nil || !hasProvider(s.mail):
		return alert.Outcome{State: alert.Failed, Detail: "no mail server is configured"}
	}
	title, _, _ := strings.Cut(text, "\n")
	r := s.mail.Send(ctx, []delivery.Message{{Channel: delivery.Email, To: &user.User{Email: d.Destination.URL, Locale: d.Destination.Language},
		Subject: &delivery.Subject{Kind: delivery.KindTest, OwnerID: d.ID, DueAt: d.CreatedAt},
		Content: &delivery.Content{Title: "Dropbell: " + title, Text: text + "\n"}}})[0]
	return outcomeOf(r)
}

// hasProvider reports whether the sender has a provider for messages of no shop.
func hasProvider(s delivery.Sender) bool {
	routed, ok := s.(delivery.RoutedSender)
	return !ok || routed.Serves(0)
}

// newNotifier returns what notifies members of staff in their browsers; nil if push is
// not configured.
func (p *program) newNotifier() (*alert.Notifier, error) {
	cfg := p.Config
	if cfg.VAPIDPublicKey == "" {
		return nil, nil
	}
	browsers, err := webpush.New(webpush.Config{PublicKey: cfg.VAPIDPublicKey, PrivateKey: cfg.VAPIDPrivateKey, Subject: cfg.VAPIDSubject})
	if err != nil {
		return nil, err
	}
	p.OnClose(browsers.Close)
	return &alert.Notifier{Store: p.Stores.Alerts, Pusher: alertPusher{browsers}, Crashed: p.alertCrashed}, nil
}

// alertPusher pushes alerts to browsers of members.
type alertPusher struct{ browsers *webpush.Sender }

// Push sends one alert; see [alert.Pusher]. A condition that comes again takes the
// place of its notification.
func (s alertPusher) Push(ctx context.Context, p alert.Push, text, path string) (alert.Outcome, bool) {
	r, gone := s.browsers.Notify(ctx, p.Browser.Subscription, webpush.Notice{Title: "Dropbell", Text: text, Tag: p.Key, URL: path, WorthlessAfter: p.DeadlineAt})
	return outcomeOf(r), gone
}

// outcomeOf translates a sender's answer.
func outcomeOf(r delivery.Result) alert.Outcome {
	switch r.Status {
	case delivery.Delivered:
		return alert.Outcome{State: alert.Sent}
	case delivery.Permanent:
		return alert.Outcome{State: alert.Failed, Detail: r.Detail}
	}
	return alert.Outcome{State: alert.Waiting, Detail: r.Detail, After: r.After}
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
