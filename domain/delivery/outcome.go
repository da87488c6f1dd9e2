package delivery

import (
	"time"

	"dropbell/domain/user"
)

// Outcome is the state of one recipient of a batch.
type Outcome string

// The outcomes. InFlight is everything that has no outcome yet.
const (
	InFlight  Outcome = "in_flight"
	Sent      Outcome = "sent"
	Failed    Outcome = "failed"    // waits for a retry
	Recovered Outcome = "recovered" // sent after at least one failure
	Skipped   Outcome = "skipped"
	Expired   Outcome = "expired"
	Dead      Outcome = "dead"
	Discarded Outcome = "discarded" // was dead, given up by an operator
)

// Final reports whether the outcome no longer changes, except by a replay.
func (o Outcome) Final() bool { return o != InFlight && o != Failed }

// Sleeping reports whether a recipient with this outcome and reason waits for the end of the
// user's quiet hours, or for the decision of a test. Nothing has failed then.
func (o Outcome) Sleeping(reason string) bool {
	return o == Failed && (reason == ReasonQuietHours || reason == ReasonTest)
}

// Reasons why a message was not sent at once or not at all; they are keys of the catalogues.
const (
	ReasonOptedOut       = "opted_out"
	ReasonNoContact      = "no_contact"
	ReasonSuppressed     = "suppressed"       // the address bounced, complained, or staff said so
	ReasonUnverified     = "phone_unverified" // where only verified numbers are sent to
	ReasonMoved          = "opening_moved"
	ReasonCancelled      = "drop_cancelled"
	ReasonDeadline       = "deadline" // the opening came first
	ReasonTooManyTries   = "attempts_used_up"
	ReasonRefused        = "refused_by_provider" // permanent
	ReasonCrashed        = "sender_failed"       // it panicked on this message
	ReasonProvider       = "provider_error"      // transient
	ReasonThrottled      = "provider_throttled"
	ReasonNoSender       = "channel_not_configured"
	ReasonOperator       = "discarded_by_operator"
	ReasonChannelPaused  = "channel_paused"
	ReasonQuietHours     = "quiet_hours"
	ReasonFrequencyCap   = "frequency_cap"
	ReasonUserDeleted    = "user_deleted"
	ReasonCampaignEnded  = "campaign_ended"
	ReasonCampaignPaused = "campaign_paused"
	ReasonSoldOut        = "sold_out"
	ReasonLimit          = "limit_reached"   // has as many coupons as one may
	ReasonHousehold      = "household_limit" // the household has as many as one may
	ReasonNoGrant        = "grant_refused"
	ReasonCouponGone     = "coupon_gone"     // used or revoked: the notice became unnecessary
	ReasonCampaignBudget = "campaign_budget" // the campaign's budget pays for no further coupon
	ReasonHoldOut        = "hold_out"
	ReasonTest           = "test_undecided" // waits for the version that wins
	ReasonNoLonger       = "no_longer"      // of a recipe: what it is about is no longer true of the user
	ReasonMoreUrgent     = "more_urgent"
	ReasonCampaignCancel = "campaign_cancelled"
	ReasonCountry        = "country_not_allowed" // of the phone number
	ReasonNoTemplate     = "no_template"         // none is registered at the provider for such texts
	ReasonBudget         = "budget_used_up"      // of the day
	ReasonDomain         = "domain_pace"         // of the recipient's mail domain
	ReasonWarmUp         = "warm_up"             // of the sender's mail domain: the day's mails are sent
	ReasonNoConsent      = "no_consent"          // to a message of a service that demands one for each
	ReasonNoApp          = "no_app_provider"     // no push service is configured for the app of the phone
)

// An Exception is the state of one recipient to whom the message was not sent at the first
// attempt.
type Exception struct {
	UserID      user.ID
	Outcome     Outcome
	Reason      string
	Detail      string // the provider's last answer
	Fingerprint string // groups equal errors
	Attempts    int
	NextRetryAt time.Time // zero unless Failed
	FirstAt     time.Time
	LastAt      time.Time
	Via         int64 // the provider that answered last, see [Result]
}

// Counts is the number of recipients by outcome.
type Counts struct {
	Reserved int64
	Sent     int64
	Skipped  int64
	Expired  int64
	Dead     int64
	InFlight int64
	// HeldOut is how many of Skipped are the control group. Only lists of deliveries and pages of campaigns count them.
	HeldOut int64
}

// Difference is the error of the identity
//
//	reserved at fire = sent + skipped + expired + dead + in flight
//
// It is 0 unless a recipient was lost or counted twice.
func (c Counts) Difference() int64 {
	return c.Reserved - c.Sent - c.Skipped - c.Expired - c.Dead - c.InFlight
}

// Plus returns the sums of both.
func (c Counts) Plus(o Counts) Counts {
	return Counts{c.Reserved + o.Reserved, c.Sent + o.Sent, c.Skipped + o.Skipped,
		c.Expired + o.Expired, c.Dead + o.Dead, c.InFlight + o.InFlight, c.HeldOut + o.HeldOut}
}
