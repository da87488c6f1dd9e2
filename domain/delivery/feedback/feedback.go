// Package feedback handles providers' reports on messages that they took: delivery receipts of
// text messages, and bounces and complaints of mails.
package feedback

import (
	"context"
	"time"
)

// Status is the state of one message as a provider reports it.
type Status string

// The statuses.
const (
	// Delivered: the message reached the phone, or the recipient's mail server
	// accepted it.
	Delivered Status = "delivered"
	// Bounced: the message can never be delivered to this address (a hard bounce), or the phone's
	// network gave up.
	Bounced Status = "bounced"
	// SoftBounced: the message was not delivered for a reason that may be temporary, such as a
	// full mailbox.
	SoftBounced Status = "soft_bounced"
	// Complained: the recipient said that it is spam.
	Complained Status = "complained"
)

// A Report is one provider's statement about one message. Providers may report twice, out of
// order, and before their answer to the sending call was read.
type Report struct {
	// Ref is the message. The zero Ref is a message that the provider did not name; only its
	// address is known.
	Ref    Ref
	Status Status
	// Provider is its name, such as "twilio".
	Provider string
	// Address is the phone number in E.164 or the mail address in the report; it may be empty. It
	// is personal data and must not be logged.
	Address string
	// Cause is the provider's code and text for operators, without addresses; see
	// delivery.DetailOf.
	Cause string
	// PriceMicros is the cost of the message in millionths of the currency's unit; 0 = not
	// reported. Currency is its ISO 4217 code.
	PriceMicros int64
	Currency    string
	// At is when it happened by the provider's clock; zero = not reported.
	At time.Time
}

// A Taker stores reports. Take returns nil once all reports are stored durably. Storing a report
// again changes nothing. After an error the provider should repeat its call.
type Taker interface {
	Take(ctx context.Context, reports []Report) error
}

// Taken counts reports by their effect.
type Taken struct {
	// Stored is the number of reports that changed the known status of their message, Known the
	// number of reports that did not.
	Stored, Known int
	// Ignored is the number of reports that name no kept message: the retention of its batch is
	// over, or the batch was not for this user.
	Ignored int
}
