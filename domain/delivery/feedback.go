package delivery

import "dropbell/domain/delivery/feedback"

// A FeedbackSum counts the providers' reports on one owner's messages over one channel. The owner
// is a slot, a campaign, an announcement or a run of notices.
type FeedbackSum struct {
	Kind    Kind
	OwnerID int64
	Channel Channel
	feedback.Tally
}
