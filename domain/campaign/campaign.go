// Package campaign holds campaigns: one message, and perhaps a coupon, for an
// audience. This package decides the messages, their times and their recipients;
// package delivery sends them.
package campaign

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// State is where a campaign is between draft and its end.
type State string

// The states of a campaign.
const (
	Draft     State = "draft"
	Scheduled State = "scheduled" // published, waits for its start
	Running   State = "running"
	Paused    State = "paused"
	Finished  State = "finished"
	Cancelled State = "cancelled"
	Failed    State = "failed"
)

// States returns every state in the order of a campaign's life.
func States() []State {
	return []State{Draft, Scheduled, Running, Paused, Finished, Cancelled, Failed}
}

// Over reports whether nothing more will be sent.
func (s State) Over() bool { return s == Finished || s == Cancelled || s == Failed }

// Faults of this room.
var (
	ErrNotFound   = fault.New(fault.NotFound, "campaign_not_found", "there is no such campaign; check its id")
	ErrTransition = fault.New(fault.Conflict, "invalid_transition", "the campaign's state does not allow this; load it and choose a step that its state allows")
	// ErrPublished is the refusal of the second of two equal campaigns.
	ErrPublished = fault.New(fault.Conflict, "already_published",
		"a campaign with this name, creator, start and end was published within the last 30 minutes; change the name to publish it again")
	// ErrNotStartable is returned for a campaign that does not wait to be started or cut, or that
	// another worker is processing.
	ErrNotStartable = fault.New(fault.Conflict, "not_startable", "the campaign is not waiting")
	// ErrNoAudience fails a campaign whose audience cannot be read any more.
	ErrNoAudience = fault.New(fault.Conflict, "audience_gone", "the campaign's audience cannot be read")
)

// AudienceKind is how an audience is defined.
type AudienceKind string

// The kinds of audiences.
const (
	Everybody AudienceKind = "all"
	Named     AudienceKind = "user_ids"
	Reserved  AudienceKind = "reserved_template_id" // users with a reservation of the template
	Holds     AudienceKind = "holds_template_id"    // users with an unused or locked coupon of it
	Segment   AudienceKind = "segment_id"
	List      AudienceKind = "list_id"
)

// AudienceKinds returns every kind.
func AudienceKinds() []AudienceKind {
	return []AudienceKind{Everybody, Named, Reserved, Holds, Segment, List}
}

// An Audience says which users a campaign is for.
type Audience struct {
	Kind AudienceKind
	// ID is the id of the template, segment or list.
	ID int64
	// Users are the users of [Named], ascending, each once.
	Users []user.ID
}

// Spec is the part of a campaign that staff decide.
type Spec struct {
	// Shop is the campaign's shop, 0 for none.
	Shop     int64
	Name     string
	Content  delivery.Copy
	Channel  delivery.Channel
	Audience Audience
	// GrantTemplate is the template whose coupon each recipient gets; 0 = none.
	GrantTemplate int64
	StartsAt      time.Time
	// EndsAt is the first instant at which nothing is sent any more.
	EndsAt time.Time
	// RatePerSecond is the most messages per second of all workers together; 0 = unlimited.
	RatePerSecond int
}

// A Campaign is a spec with a life.
type Campaign struct {
	ID int64
	Spec
	State   State
	Reason  string // why it was cancelled or failed
	Version int64
	// Creator is the label of the member who created the campaign. Campaigns with the same
	// creator, name, start and end are equal.
	Creator      string
	CreatedBy    string
	ShopName     string
	ShopTimezone string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	PublishedAt  *time.Time
	StartedAt    *time.Time
	CutAt        *time.Time
	EndedAt      *time.Time
	SettledAt    *time.Time
	// ApprovalAskedAt is set while the campaign waits for approval. ApprovedBy is the label of
	// the requester until the request is approved, and then the label and name of the approver.
	ApprovalAskedAt *time.Time
	ApprovedBy      string
	// HeldAt is set while the campaign is paused because its audience exceeds the number of users
	// that may be reached without approval.
	HeldAt *time.Time
	// PublishedBy is the label and name of the member who published the campaign, or requested
	// its publication; empty before.
	PublishedBy string
	// Rule is the rule of the campaign's segment at publication. The audience is cut by this
	// rule, even if the segment has changed since. It is nil for other audiences and before
	// publication.
	Rule *FrozenRule
}

// Progress is how far a campaign has come.
type Progress struct {
	delivery.Counts // Reserved is the audience as cut so far
	// CutDone reports whether the whole audience is known.
	CutDone bool
	// PerSecond is how many got an outcome per second lately.
	PerSecond float64
	// Left is the estimated time until each recipient has an outcome, at the rate of this
	// progress; negative if there is no estimate.
	Left time.Duration
	At   time.Time
}

// Balance is a campaign's account, recomputed from the rows.
type Balance struct {
	Counted delivery.Counts // by bitmaps and exceptions; Reserved = users in messages
	Kept    delivery.Counts // by counters
	Twice   int64           // users in more than one batch
	Final   bool            // each recipient has an outcome
}

// Difference returns the error of the balance; it is 0 unless a recipient was lost or counted
// twice.
func (b Balance) Difference() int64 {
	off := b.Counted.Difference()
	if off == 0 {
		off = b.Kept.Difference()
	}
	if off == 0 && b.Final {
		off = b.Kept.Sent - b.Counted.Sent + b.Counted.InFlight
	}
	if off == 0 {
		off = b.Twice
	}
	return off
}

// progressOf derives the rate from two looks at how many were settled.
func progressOf(c delivery.Counts, cutDone bool, before, now int64, took time.Duration) Progress {
	p := Progress{Counts: c, CutDone: cutDone, Left: -1}
	if took > 0 && now > before {
		p.PerSecond = float64(now-before) / took.Seconds()
	}
	switch {
	case cutDone && c.InFlight == 0:
		p.Left = 0
	case p.PerSecond > 0:
		p.Left = time.Duration(float64(c.InFlight) / p.PerSecond * float64(time.Second))
	}
	return p
}

// Awake returns the progress with Left for the recipients in flight who do not wait for the end
// of their quiet hours; waiting is the number of those who do. Left is unknown while all of them
// wait.
func (p Progress) Awake(waiting int64) Progress {
	if waiting = min(waiting, p.InFlight); waiting == 0 || p.Left < 0 {
		return p
	}
	if p.InFlight == waiting {
		p.Left = -1
		return p
	}
	p.Left = time.Duration(float64(p.Left) / float64(p.InFlight) * float64(p.InFlight-waiting))
	return p
}

// ProgressOf returns the progress of a campaign. c are its counts now; at the instant since,
// before recipients had been tried. Skipped users take no time, so the rate does not count them.
func ProgressOf(c delivery.Counts, cutDone bool, before int64, since, now time.Time) Progress {
	tried := c.Sent + c.Expired + c.Dead
	took := now.Sub(since)
	if since.IsZero() {
		took = 0
	}
	p := progressOf(c, cutDone, before, tried, took)
	p.At = now
	return p
}
