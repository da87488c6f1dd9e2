package delivery

import "dropbell/domain/delivery"

// channelVariable names the environment variable that configures a channel.
func channelVariable(c delivery.Channel) string {
	switch c {
	case delivery.Email:
		return "SMTP_URL"
	case delivery.SMS:
		return "SMS_URL"
	case delivery.WebPush:
		return "VAPID_PRIVATE_KEY"
	case delivery.Webhook:
		return "WEBHOOK_URL"
	}
	return ""
}
