package parts

import (
	"context"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/views/ui"
)

// Own are a member's own contacts, to which test messages are sent; empty = no contact is known.
type Own struct {
	Email, Phone string
	Devices      int
	User         string // the number of the user with the member's e-mail address
}

// Reaches reports whether the member can be reached over the channel.
func (o Own) Reaches(c message.Channel) bool {
	return o.Address(c) != "" && (c != message.WebPush || o.Devices > 0)
}

// Address returns the destination of a test message over the channel: a contact, or the number of
// the user with the member's e-mail address.
func (o Own) Address(c message.Channel) string {
	return map[message.Channel]string{message.Email: o.Email, message.SMS: o.Phone, message.WebPush: o.User, message.Webhook: o.User}[c]
}

// Note says where a test message is sent, or why it cannot be sent.
func (o Own) Note(ctx context.Context, c message.Channel) string {
	switch c {
	case message.Email:
		return ui.T(ctx, "message.test.to", o.Email)
	case message.SMS:
		if o.Phone != "" {
			return ui.T(ctx, "message.test.to", o.Phone)
		}
		return ui.T(ctx, "message.test.no_phone", o.Email)
	case message.WebPush:
		if o.Devices > 0 {
			return ui.N(ctx, "message.test.devices", int64(o.Devices))
		}
		return ui.T(ctx, "message.test.no_device", o.Email)
	case message.Webhook:
		if o.User != "" {
			return ui.T(ctx, "message.test.webhook", o.User)
		}
		return ui.T(ctx, "message.test.no_user", o.Email)
	}
	return ui.T(ctx, "message.test.app")
}

// A Try is the result of a text that was sent to the member who is writing it.
type Try struct {
	Tone ui.Tone
	Text string // empty = nothing was sent
	// Refused says that nothing was sent, and Broken which rules the text breaks.
	Refused bool
	Broken  []fault.Field
}
