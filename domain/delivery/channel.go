// Package delivery sends messages to users: batches of recipients, the outcome
// of each recipient, retries until a deadline, and dead letters. Reminders,
// campaigns and notices use it; it depends on none of them.
package delivery

import (
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// Channel is a way to reach a user. The number is stored; the name is used in the API and the
// console.
type Channel uint8

// The channels in storage order.
const (
	App Channel = iota
	Email
	SMS
	WebPush
	Webhook

	// Channels is how many there are.
	Channels = 5
)

var channelNames = [Channels]string{"app", "email", "sms", "webpush", "webhook"}

// ErrChannelUnavailable is returned for a channel that does not exist or has
// no configured sender.
var ErrChannelUnavailable = fault.New(fault.Invalid, "channel_unavailable", "this channel is not available; choose another one, or configure its sender")

// AllChannels returns every channel in storage order.
func AllChannels() []Channel { return []Channel{App, Email, SMS, WebPush, Webhook} }

// ParseChannel returns the channel called name, or [ErrChannelUnavailable].
func ParseChannel(name string) (Channel, error) {
	for i, n := range channelNames {
		if n == name {
			return Channel(i), nil
		}
	}
	return 0, ErrChannelUnavailable.Because("unknown channel; use one of app, email, sms, webpush, webhook")
}

// Valid reports whether c is one of the five channels.
func (c Channel) Valid() bool { return c < Channels }

func (c Channel) String() string {
	if !c.Valid() {
		return "invalid"
	}
	return channelNames[c]
}

// Tracks reports whether messages about a drop contain a separate tracked link for each reader.
// Webhooks do not: the text of a webhook call is encoded once for all its readers.
func (c Channel) Tracks() bool { return c != Webhook }

// Bit returns the channel's bit in an opt-out set.
func (c Channel) Bit() uint8 { return 1 << c }

// Reaches reports whether u has a contact for the channel. App and Webhook need only the user id.
func (c Channel) Reaches(u *user.User) bool {
	switch c {
	case Email:
		return u.Email != ""
	case SMS:
		return u.Phone != ""
	case WebPush:
		return u.Pushable()
	}
	return true
}
