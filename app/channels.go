package app

import (
	"dropbell/adapters/config"
	"dropbell/domain/delivery"
)

// Configured returns the channels for which the environment configures a sender.
func Configured(cfg config.Config) delivery.ChannelSet {
	set := delivery.ChannelSetOf(delivery.App)
	for c, is := range map[delivery.Channel]bool{delivery.Email: cfg.SMTPURL != "", delivery.SMS: cfg.SMS.Configured() && cfg.SMS.Provider != "",
		delivery.WebPush: cfg.VAPIDPublicKey+cfg.APNSKey+cfg.FCMAccount != "", delivery.Webhook: cfg.WebhookURL != ""} {
		if is {
			set |= delivery.ChannelSetOf(c)
		}
	}
	return set
}
