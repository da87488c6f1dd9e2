// Package feedback is about what providers report of messages that they took:
// delivery receipts of text messages, bounces and complaints of mails.
package feedback

import (
	"context"
	"time"
)

// Status is what a provider reports of one message.
type Status string

// The statuses.
const (
	// Delivered: the message reached the phone, or the recipient's mail server
	// accepted it.
	Delivered Status = "delivered"
	// Bounced: it can never be delivered to this address (a hard bounce), or the
	// phone's network gave up.
	Bounced Status = "bounced"
	// SoftBounced: it was not delivered, for a reason that may pass, such as a
	// mailbox that is full.
	SoftBounced Status = "soft_bounced"
	// Complained: the recipient said that it is spam.
	Complained Status = "complained"
)

// A Report is one provider's statement about one message. Providers may report
// twice, out of order, and before their answer to the call that sent the message
// was read.
type Report struct {
	// Ref is the message; the zero Ref is one that the provider did not name, of
	// which only the address is known.
	Ref    Ref
	Status Status
	// Provider is its name, such as "twilio".
	Provider string
	// Address is the phone number in E.164 or the mail address that the provider
	// names; may be empty. It is personal data: not to be logged.
	Address string
	// Cause is the provider's code and words for operators, free of addresses; see
	// delivery.DetailOf.
	Cause string
	// PriceMicros is what the message cost in millionths of the currency's unit;
	// 0 = not reported. Currency is its code in ISO 4217.
	PriceMicros int64
	Currency    string
	// At is when it happened by the provider's clock; zero = not reported.
	At time.Time
}

// A Taker stores reports. Take returns nil once all are stored durably; a report
// that is taken again changes nothing. After an error the provider is to repeat
// its call.
type Taker interface {
	Take(ctx context.Context, reports []Report) error
}

// Taken counts reports by what became of them.
type Taken struct {
	// Stored changed what is known of their message, Known did not.
	Stored, Known int
	// Ignored name no message that is kept: its batch is past its retention, or was
	// not for this user.
	Ignored int
}
