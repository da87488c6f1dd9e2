// Package event holds the payloads of domain events and nothing else. Events are
// facts in the past tense, announced at least once and in no particular order to
// any number of readers. A name ends in its version; a payload, once sent, never
// changes its meaning (tests compare it with golden files).
package event

import "time"

// Names of events; each is also the name of its stream.
const (
	TemplatePublished   = "template.published.v1"
	TemplateMoved       = "template.moved.v1"
	TemplateChanged     = "template.changed.v1"
	TemplateClosed      = "template.closed.v1"
	TemplateCancelled   = "template.cancelled.v1"
	ReservationsChanged = "reservations.changed.v1"
	SlotFired           = "slot.fired.v1"
	BatchFinished       = "batch.finished.v1"
	SlotFinished        = "slot.finished.v1"
	UsersChanged        = "users.changed.v1"
	AnnouncementCreated = "announcement.created.v1"
	CodesChanged        = "codes.changed.v1"
	ChannelTestCreated  = "channeltest.created.v1"
	CodeRequested       = "phonecode.requested.v1"
	CouponsIssued       = "coupons.issued.v1"
	GateRefilled        = "gate.refilled.v1"
	JobCreated          = "job.created.v1"
)

// All returns every event name.
func All() []string {
	return []string{TemplatePublished, TemplateMoved, TemplateChanged, TemplateClosed, TemplateCancelled,
		ReservationsChanged, SlotFired, BatchFinished, SlotFinished, UsersChanged, AnnouncementCreated,
		CouponsIssued, CouponsChanged, CouponChanged, CouponsExpired, BudgetReached, JobCreated, CodesChanged,
		CampaignPublished, CampaignStarted, CampaignChanged, GateRefilled,
		ChannelTestCreated, CodeRequested, DrawSealed, DrawDrawn, EntriesListed, WaitersListed, ReservationsListed, ExpiredListed, IssuedListed}
}

// Template is the payload of every template event: the template's id, its shop, and
// its version after the change. Readers load all other fields. Of two events of one
// template the later event has the greater Sequence.
type Template struct {
	TemplateID int64     `json:"template_id,string"`
	ShopNumber int64     `json:"shop_number,string,omitempty"`
	Version    int64     `json:"version"`
	OpensAt    time.Time `json:"opens_at"`
	Sequence   int64     `json:"sequence,string"`
	At         time.Time `json:"at"`
}

// Booking says how many users now have, or no longer have, the reminders of one
// bitmap.
type Booking struct {
	TemplateID int64 `json:"template_id,string"`
	Bits       int64 `json:"bits,string"`
	Users      int64 `json:"users"`
}

// Reservations is the payload of [ReservationsChanged]: the sums of one
// committed group of reservations or cancellations.
type Reservations struct {
	At      time.Time `json:"at"`
	Added   []Booking `json:"added,omitempty"`
	Removed []Booking `json:"removed,omitempty"`
}

// Slot is the payload of [SlotFired] and [SlotFinished].
type Slot struct {
	SlotID     int64     `json:"slot_id,string"`
	TemplateID int64     `json:"template_id,string"`
	Slot       int       `json:"slot"`
	DueAt      time.Time `json:"due_at"`
	At         time.Time `json:"at"`
}

// Batch is the payload of [BatchFinished]. Sent counts the recipients that the
// whole batch has reached. All recipients have ids from FromUser to ToUser.
type Batch struct {
	BatchID    int64     `json:"batch_id,string"`
	Kind       string    `json:"kind"`
	OwnerID    int64     `json:"owner_id,string"`
	TemplateID int64     `json:"template_id,string"`
	Channel    int       `json:"channel"`
	Sent       int       `json:"sent"`
	FromUser   int64     `json:"from_user,string"`
	ToUser     int64     `json:"to_user,string"`
	At         time.Time `json:"at"`
}

// Users is the payload of [UsersChanged]: contacts or preferences of the
// users in the range may have changed.
type Users struct {
	FromUser int64 `json:"from_user,string"`
	ToUser   int64 `json:"to_user,string"`
}

// Announcement is the payload of [AnnouncementCreated]: a correction or
// notice waits to be cut.
type Announcement struct {
	AnnouncementID int64     `json:"announcement_id,string"`
	TemplateID     int64     `json:"template_id,string"`
	Kind           string    `json:"kind"`
	OpensAt        time.Time `json:"opens_at"`
	At             time.Time `json:"at"`
}

// Coupons is the payload of [CouponsIssued]: the coupons that one committed group of
// claims issued.
type Coupons struct {
	At     time.Time `json:"at"`
	Issued []Issue   `json:"issued"`
}

// Issue says how many coupons of a template were issued, and how many in total
// since its publication.
type Issue struct {
	TemplateID int64 `json:"template_id,string"`
	Issued     int64 `json:"issued"`
	Total      int64 `json:"total"`
}

// Job is the payload of [JobCreated]: work in the background waits.
type Job struct {
	JobID int64     `json:"job_id,string"`
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`
}

// Codes is the payload of [CodesChanged]: a batch of redeem codes is ready,
// or was revoked.
type Codes struct {
	BatchID    int64  `json:"batch_id,string"`
	TemplateID int64  `json:"template_id,string"`
	State      string `json:"state"`
}

// Gate is the payload of [GateRefilled]: the gate of the template, which had
// nothing left to sell, has coupons again.
type Gate struct {
	TemplateID int64 `json:"template_id,string"`
}

// PhoneCode is the payload of [CodeRequested]: a code that proves a phone number waits
// to be sent.
type PhoneCode struct {
	VerificationID int64     `json:"verification_id,string"`
	At             time.Time `json:"at"`
}

// ChannelTest is the payload of [ChannelTestCreated]: a test message waits to
// be sent.
type ChannelTest struct {
	TestID  int64     `json:"test_id,string"`
	Channel int       `json:"channel"`
	At      time.Time `json:"at"`
}
