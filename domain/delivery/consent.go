package delivery

import (
	"context"
	"slices"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// ErrConsentsTaken is returned while a batch of another opening's reminder, which may use the
// same consents, is being delivered. The messages wait.
var ErrConsentsTaken = fault.New(fault.Unavailable, "consents_taken", "another batch may be using the recipients' consents")

// consentable reports whether recipients can have consented to the one message of the batch: only
// reminders over web push have such consents.
func (b *Batch) consentable() bool { return b.Channel == WebPush && b.Subject.Kind == KindReminder }

// loadConsents reads which recipients have consented to the message, if a recipient has a device
// that demands consent. The devices must have been read before.
func (r *run) loadConsents(ctx context.Context, ready []user.ID) (err error) {
	if !r.batch.consentable() || !slices.ContainsFunc(r.batch.Known, user.User.OneTime) {
		return nil
	}
	r.batch.Consents, err = r.Store.Consents(ctx, r.batch, ready)
	return err
}
