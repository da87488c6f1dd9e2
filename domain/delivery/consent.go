package delivery

import "dropbell/domain/fault"

// ErrConsentsTaken is returned while a batch of another opening's reminder, which may use the
// same consents, is being delivered. The messages wait.
var ErrConsentsTaken = fault.New(fault.Unavailable, "consents_taken", "another batch may be using the recipients' consents")

// consentable reports whether recipients can have consented to the one message of the batch: only
// reminders over web push have such consents.
func (b *Batch) consentable() bool { return b.Channel == WebPush && b.Subject.Kind == KindReminder }
