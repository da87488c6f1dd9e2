package delivery

import (
	"strconv"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Kind says on whose behalf a batch is delivered.
type Kind = message.Kind

// The kinds of batches.
const (
	KindReminder   = message.Reminder
	KindCorrection = message.Correction
	KindCancelled  = message.Cancelled
	KindCampaign   = message.Campaign
	KindNotice     = message.Notice
	KindTest       = message.Test
	// KindVerification is the kind of messages that are in no batch.
	KindVerification = message.Verification
)

// A Subject is what a batch's messages are about. It is the same for every
// recipient and comes with the batch when it is leased.
type Subject struct {
	Kind         Kind
	TemplateID   int64
	TemplateName string
	Description  string // the template's
	ShopNumber   string
	Slot         int // 1…12 for reminders, days until the expiry for notices, else 0
	DueAt        time.Time
	OpensAt      time.Time
	// ClaimURL is where the reader can claim; empty when the shop has none.
	ClaimURL string
	// Late says that a reminder goes out long after its slot's instant, as after
	// an opening that moved or a provider's outage: Left is the time until the
	// opening then.
	Late bool          `json:"-"`
	Left time.Duration `json:"-"`
	// OwnerID is the campaign of a message that staff wrote, Copy what they
	// wrote, EndsAt its end.
	OwnerID  int64
	Copy     *Copy
	ShopName string
	EndsAt   time.Time
	// Worth is what the coupon is worth.
	Worth message.Worth
	// TextsUpTo is the newest version of a text that counts for the message; see
	// [message.Source].
	TextsUpTo int64
	// Track, if set, returns the tracked address that replaces [Subject.Link] in
	// the message of one reader, who gets that variant.
	Track func(id user.ID, variant int) string `json:"-"`
	// Reference, if set, returns the text by which a provider's later report names
	// the message to one reader; see package feedback.
	Reference func(id user.ID) string `json:"-"`
}

// Content is a rendered message, shared between recipients of one locale and zone.
type Content = message.Content

// A Message is one content for one recipient on one channel.
type Message struct {
	To      *user.User // shared; not to be changed
	Channel Channel
	Subject *Subject
	Content *Content
	// OptOutURL is where this recipient can turn the channel off; see [OptOut].
	// Empty = nowhere.
	OptOutURL string
	// Values, if set, returns the variables of the text as this recipient reads them,
	// by the names of [message.Variables]; for providers that fill in the texts
	// themselves.
	Values func() map[string]string
	// Consented says that the recipient has consented to this one message, which some
	// services demand; see [user.Platform.OneTime].
	Consented bool
	// Journal records messages that are sent one by one; nil = none are.
	Journal Journal
	// Until is from when on the message is worthless; zero = never.
	Until time.Time
	// Waited says that the message was kept back before since the recipient's mail domain
	// takes fewer.
	Waited bool
}

// Link is where this recipient is led, or empty.
func (m Message) Link() string {
	if m.Subject.Copy == nil {
		return m.Subject.LinkOf(m.To.ID, 0)
	}
	return m.Subject.LinkOf(m.To.ID, m.Subject.Copy.Pick(m.Subject.OwnerID, m.To.ID))
}

// Reference is what a provider is given to name this message in its reports, or
// empty: a test message has none.
func (m Message) Reference() string {
	if m.Subject.Reference == nil {
		return ""
	}
	return m.Subject.Reference(m.To.ID)
}

// IdempotencyKey names this delivery for providers that can recognise a
// repetition: one per (kind, template, slot, due instant, channel, user), or
// per (campaign, channel, user).
func (m Message) IdempotencyKey() string { return string(m.AppendIdempotencyKey(make([]byte, 0, 64))) }

// AppendIdempotencyKey appends [Message.IdempotencyKey], which consists of
// lower-case letters, digits and "-".
func (m Message) AppendIdempotencyKey(b []byte) []byte {
	b = append(b, m.Subject.Kind...)
	b = append(b, '-')
	switch m.Subject.Kind {
	case KindCampaign:
		b = strconv.AppendInt(b, m.Subject.OwnerID, 10)
	case KindTest, KindVerification: // may be asked for again
		b = strconv.AppendInt(b, m.Subject.OwnerID, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, m.Subject.DueAt.UnixMilli(), 10)
	default:
		b = strconv.AppendInt(b, m.Subject.TemplateID, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, int64(m.Subject.Slot), 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, m.Subject.DueAt.Unix(), 10)
	}
	b = append(b, '-')
	b = append(b, m.Channel.String()...)
	b = append(b, '-')
	return strconv.AppendInt(b, int64(m.To.ID), 10)
}
