package delivery

import (
	"context"
	"slices"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// ErrConsentsTaken is returned while a batch of another opening's reminder is being
// delivered that may use the same consents; its messages wait.
var ErrConsentsTaken = fault.New(fault.Unavailable, "consents_taken", "another batch may be using the recipients' consents")

// consentable reports whether a recipient can have consented to the one message of the
// batch: such consents are given to reminders over push.
func (b *Batch) consentable() bool { return b.Channel == WebPush && b.Subject.Kind == KindReminder }

// loadConsents reads which recipients have consented to the message, if one of them has
// a device that demands it. It follows the reading of the devices.
func (r *run) loadConsents(ctx context.Context, ready []user.ID) (err error) {
	if !r.batch.consentable() || !slices.ContainsFunc(r.batch.Known, user.User.OneTime) {
		return nil
	}
	r.batch.Consents, err = r.Store.Consents(ctx, r.batch, ready)
	return err
}
