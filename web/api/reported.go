package api

import "dropbell/domain/feedback"

// Reported are the parts of sent messages of which their provider has reported.
type Reported struct {
	Delivered  int64 `json:"delivered" doc:"Of those sent: the provider reports that they arrived." example:"0"`
	Bounced    int64 `json:"bounced" doc:"Of those sent: the provider reports that they were not delivered, for good or for a reason that may pass." example:"0"`
	Complained int64 `json:"complained" doc:"Of those delivered: the recipient marked the message as spam." example:"0"`
}

func reportedJSON(t feedback.Tally) Reported { return Reported{t.Delivered, t.Bounced, t.Complained} }
