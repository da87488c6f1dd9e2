package delivery

import "dropbell/domain/feedback"

// A FeedbackSum is what providers reported of one owner's messages on one channel: of
// a slot's, a campaign's, an announcement's or a run of notices.
type FeedbackSum struct {
	Kind    Kind
	OwnerID int64
	Channel Channel
	feedback.Tally
}
