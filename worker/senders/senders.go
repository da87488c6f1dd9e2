// Package senders opens the providers that the environment and staff have configured, and
// hands messages to them. It measures every call and limits mails and pushes.
package senders

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/inapp"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/push/webpush"
	"dropbell/adapters/redis"
	"dropbell/adapters/smtp"
	"dropbell/adapters/webhook"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/user"
)

// Senders hand messages to the providers of the environment and to the providers that staff have
// configured; see [Senders.Refresh].
type Senders struct {
	*app.App
	// ByChannel are the senders of channels that can have a provider.
	ByChannel map[delivery.Channel]delivery.Sender
	// Routers choose among the configured providers of a channel.
	Routers map[delivery.Channel]*provider.Router
	// Environment are the channels that the environment has a provider for.
	Environment delivery.ChannelSet
	Breakers    *Breakers
	Pace        *MailPace

	pacer   *redis.Pacer
	metrics *metrics
	calls   *calls
	guards  guards
	store   deliverydb.Configured
	box     *seal.Box
	push    *push.Sender                        // delivers by all configured services side by side
	named   atomic.Pointer[delivery.ChannelSet] // the channels of which a provider fills in texts that greet by name

	mu    sync.Mutex
	state int64 // of the store when it was last read; -1 = never
	built map[int64]*built
}

// Open makes a sender for every channel that the environment configures, and for every channel
// for which staff can configure providers. alone keeps the limits while Redis does not answer.
// The error names every variable that a sender refuses.
func Open(a *app.App, pacer *redis.Pacer, alone *redis.Alone) (*Senders, error) {
	s := &Senders{App: a, pacer: pacer, metrics: newMetrics(a.Registry), calls: &calls{}, Breakers: NewBreakers(a.Shared, alone, a.Log), Pace: newMailPace(a, alone)}
	s.guards = guards{s.Pace, s.SMSBudget(), s.Stores.Serials}
	senders, closers, err := environment(s.Config, pushEvents{s.subscriptionGone, s.phoneGone, s.metrics.pushAnswered, s.admitFCM}, s.guards)
	s.OnClose(closers...)
	if err != nil {
		return s, err
	}
	pushes, _ := senders[delivery.WebPush].(*push.Sender)
	for c, one := range senders {
		senders[c] = s.observed(one, 0)
	}
	s.ByChannel = senders
	return s, s.route(pushes)
}

// subscriptionGone removes a push subscription that its push service has reported as gone. If
// the removal fails, the next push to the subscription gets the same report.
func (s *Senders) subscriptionGone(ctx context.Context, id user.ID, gone user.PushSubscription) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := s.Stores.Users.RemovePush(ctx, id, gone); err != nil {
		s.Log.Warn("a push subscription that is gone was not removed", "error", err)
	}
}

// phoneGone is [Senders.subscriptionGone] of a phone.
func (s *Senders) phoneGone(ctx context.Context, id user.ID, gone user.Device) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := s.Stores.Users.RemoveGone(ctx, id, gone); err != nil {
		s.Log.Warn("a phone whose app is gone was not removed", "error", err)
	}
}

// environmentFCM names the quota of the environment's Firebase project.
const environmentFCM = "fcm"

// admitFCM shares the quota of FCM among all workers.
func (s *Senders) admitFCM(ctx context.Context, n, perMinute int) (int, time.Duration) {
	return s.pacer.AdmitPushes(ctx, environmentFCM, n, perMinute)
}

// pushEvents are the callbacks of the push services: for a browser or phone that is reported as
// gone, for every answer about a device, and before messages that share a quota.
type pushEvents struct {
	browserGone func(context.Context, user.ID, user.PushSubscription)
	phoneGone   func(context.Context, user.ID, user.Device)
	answered    func(service string, answer delivery.Result)
	admitFCM    push.Admit
}

// pushServices builds what is configured for browsers, iPhones and Android phones.
func pushServices(cfg config.Config, events pushEvents) (services []push.Service, err error) {
	var wrong []error
	add := func(variables string, s push.Service, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", variables, err))
			return
		}
		services = append(services, s)
	}
	if cfg.VAPIDPublicKey != "" {
		s, err := webpush.New(webpush.Config{PublicKey: cfg.VAPIDPublicKey, PrivateKey: cfg.VAPIDPrivateKey, Subject: cfg.VAPIDSubject, OnGone: events.browserGone, AllowInsecure: cfg.PushPrivate})
		add("VAPID_PUBLIC_KEY, VAPID_PRIVATE_KEY, VAPID_SUBJECT", s, err)
	}
	if cfg.APNSKey != "" {
		s, err := apns.New(apns.Config{Key: []byte(cfg.APNSKey), KeyID: cfg.APNSKeyID, TeamID: cfg.APNSTeamID, Topic: cfg.APNSTopic, URL: cfg.APNSURL, OnGone: events.phoneGone})
		add("APNS_KEY, APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC, APNS_URL", s, err)
	}
	if cfg.FCMAccount != "" {
		s, err := fcm.New(fcm.Config{Account: []byte(cfg.FCMAccount), URL: cfg.FCMURL, PerMinute: cfg.FCMPerMinute, Admit: events.admitFCM, OnGone: events.phoneGone})
		add("FCM_SERVICE_ACCOUNT, FCM_URL", s, err)
	}
	return services, errors.Join(wrong...)
}

// environment builds a sender for every channel that the environment configures. The error names
// every variable that a sender refuses.
func environment(cfg config.Config, events pushEvents, texts guards) (senders map[delivery.Channel]delivery.Sender, closers []func() error, err error) {
	senders = map[delivery.Channel]delivery.Sender{delivery.App: inapp.Sender{}}
	var wrong []error
	add := func(variables string, s delivery.Sender, close func() error, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", variables, err))
			return
		}
		senders[s.Channel()] = s
		closers = append(closers, close)
	}
	if cfg.SMTPURL != "" {
		parsed, err := smtp.ParseURL(cfg.SMTPURL)
		var s *smtp.Sender
		parsed.RequireTLS = parsed.RequireTLS || cfg.SMTPTLS == "required"
		parsed.Feedback = cfg.SMTPFeedback
		if err == nil {
			err = app.MailExtras(cfg, texts.mails, &parsed)
		}
		if err == nil {
			s, err = smtp.New(parsed)
		}
		add("SMTP_URL", s, s.Close, err)
	}
	if cfg.SMS.Configured() {
		s, variables, err := newSMS(cfg, texts)
		add(variables, s, s.Close, err)
	}
	if cfg.WebhookURL != "" {
		s, err := webhook.New(webhook.Config{URL: cfg.WebhookURL, Secret: cfg.WebhookSecret})
		add("WEBHOOK_URL, WEBHOOK_SECRET", s, s.Close, err)
	}
	services, err := pushServices(cfg, events)
	if err != nil {
		wrong = append(wrong, err)
	}
	if len(services) > 0 {
		s := push.New(push.Options{Answered: events.answered}, services...)
		senders[s.Channel()] = s
		closers = append(closers, s.Close)
	}
	if len(wrong) > 0 {
		return nil, closers, config.Mistake{Err: errors.Join(wrong...)}
	}
	return senders, closers, nil
}

// ParallelCalls is how many calls of a channel's provider one batch makes at once.
func ParallelCalls(cfg config.Config) map[delivery.Channel]int {
	of := map[delivery.Channel]int{}
	for _, c := range delivery.AllChannels() {
		of[c] = cfg.WorkerCalls[c.String()]
	}
	return of
}
