package feedback

import "dropbell/domain/fault"

// Faults of a provider's callback.
var (
	// ErrUnverified is returned for a callback that its provider did not sign.
	ErrUnverified = fault.New(fault.Unauthenticated, "callback_unverified", "the callback's signature is missing or wrong; check the key of the provider's callbacks")
	// ErrUnreadable is returned for a callback with a valid signature that is not in the
	// provider's format.
	ErrUnreadable = fault.New(fault.Invalid, "callback_unreadable", "the callback is not in the format of this provider")
)

// A Reply is a text message that a person sent to the shop's number.
type Reply struct {
	Provider string
	// From is the person's phone number in E.164, personal data: not to be logged.
	From string
	Text string
	// ID is the provider's name of the message; equal for repeated callbacks.
	ID string
}

// A Call is the content of one callback of a provider.
type Call struct {
	Reports []Report
	Replies []Reply
}
