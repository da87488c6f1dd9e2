package ui

import (
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

func channelIcon(c delivery.Channel) string {
	switch c {
	case delivery.App:
		return "app-window"
	case delivery.Email:
		return "mail"
	case delivery.SMS:
		return "message"
	case delivery.WebPush:
		return "world"
	}
	return "webhook"
}

// OutcomeTone colours the state of one reminder of one user.
func OutcomeTone(state string) Tone {
	switch delivery.Outcome(state) {
	case delivery.Sent, delivery.Recovered:
		return Good
	case delivery.Skipped, delivery.Discarded:
		return Warn
	case delivery.Expired:
		return Late
	case delivery.Dead, delivery.Failed:
		return Bad
	}
	return Info
}

func outcomeIcon(state string) string {
	switch OutcomeTone(state) {
	case Good:
		return "check"
	case Info:
		return "clock"
	case Bad:
		return "alert-circle"
	}
	return "minus"
}

func itemOf(v reminder.View, r reminder.Reminder) (reminder.Item, bool) {
	for _, it := range v.Items {
		if it.Reminder == r {
			return it, true
		}
	}
	return reminder.Item{}, false
}
