package main

import (
	"fmt"

	"dropbell/adapters/config"
	"dropbell/adapters/inapp"
	"dropbell/adapters/sms"
	"dropbell/adapters/smtp"
	"dropbell/adapters/webhook"
	"dropbell/adapters/webpush"
	"dropbell/domain/delivery"
)

// newSenders builds a sender for every configured channel and says how many
// calls of its provider one batch makes at once.
func newSenders(cfg config.Config) (senders map[delivery.Channel]delivery.Sender, parallel map[delivery.Channel]int, closers []func() error, err error) {
	senders = map[delivery.Channel]delivery.Sender{delivery.App: inapp.Sender{}}
	parallel = map[delivery.Channel]int{delivery.App: 1, delivery.Email: 4, delivery.SMS: 4, delivery.WebPush: 4, delivery.Webhook: 10}
	add := func(s delivery.Sender, close func() error, err error) error {
		if err != nil {
			return err
		}
		senders[s.Channel()] = s
		closers = append(closers, close)
		return nil
	}
	if cfg.SMTPURL != "" {
		parsed, err := smtp.ParseURL(cfg.SMTPURL)
		if err != nil {
			return nil, nil, closers, fmt.Errorf("SMTP_URL: %w", err)
		}
		s, err := smtp.New(parsed)
		if err := add(s, s.Close, err); err != nil {
			return nil, nil, closers, fmt.Errorf("SMTP_URL: %w", err)
		}
	}
	if cfg.SMSURL != "" {
		s, err := sms.New(sms.Config{URL: cfg.SMSURL, Token: cfg.SMSToken})
		if err := add(s, s.Close, err); err != nil {
			return nil, nil, closers, fmt.Errorf("SMS_URL: %w", err)
		}
	}
	if cfg.WebhookURL != "" {
		s, err := webhook.New(webhook.Config{URL: cfg.WebhookURL, Secret: cfg.WebhookSecret})
		if err := add(s, s.Close, err); err != nil {
			return nil, nil, closers, fmt.Errorf("WEBHOOK_URL: %w", err)
		}
	}
	if cfg.VAPIDPublicKey != "" {
		s, err := webpush.New(webpush.Config{PublicKey: cfg.VAPIDPublicKey, PrivateKey: cfg.VAPIDPrivateKey, Subject: cfg.VAPIDSubject})
		if err := add(s, s.Close, err); err != nil {
			return nil, nil, closers, fmt.Errorf("VAPID keys: %w", err)
		}
	}
	return senders, parallel, closers, nil
}
