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
	KindWaitlist   = message.Waitlist
	KindOffer      = message.Offer
	KindWon        = message.Won
	KindLost       = message.Lost
	KindTest       = message.Test
	// KindVerification is the kind of messages that are in no batch.
	KindVerification = message.Verification
)

// A Subject is the content that a batch's messages have in common. It comes with the batch when
// the batch is leased.
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
	// Late says that a reminder is sent long after its slot's instant, for example after an
	// opening that moved or a provider's outage. Left is then the time until the opening.
	Late bool          `json:"-"`
	Left time.Duration `json:"-"`
	// OwnerID, Copy and EndsAt are the campaign of a message that staff wrote, its text, and the
	// end of the campaign.
	OwnerID  int64
	Copy     *Copy
	ShopName string
	EndsAt   time.Time
	// Worth is the value of the coupon.
	Worth message.Worth
	// AcceptHours is for how long winners of a draw may accept their coupon; 0 = they got it.
	AcceptHours int
	// TextsUpTo is the newest version of a text that the message may use; see [message.Source].
	TextsUpTo int64
	// Track, if set, returns the tracked address that replaces an address in the message of reader
	// id, who gets that variant. target is an address that staff wrote into the text of a campaign;
	// "" = [Subject.Link].
	Track func(id user.ID, variant int, target string) string `json:"-"`
	// Reference, if set, returns the text that identifies the message to one reader in a
	// provider's later report; see package feedback.
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
	// OptOutURL is the address where this recipient can turn the channel off; see [OptOut]. Empty
	// = there is none.
	OptOutURL string
	// Values, if set, returns the variables of the text as this recipient reads them, by the
	// names of [message.Variables]. It serves providers that fill in the texts themselves.
	Values func() map[string]string
	// Consented says that the recipient has consented to this one message, which some push
	// services demand; see [user.Platform.OneTime].
	Consented bool
	// Journal records messages that are sent one by one; nil = none are.
	Journal Journal
	// Until is the instant from which the message is worthless; zero = never.
	Until time.Time
	// Waited says that the message was kept back before because of the pace of the recipient's
	// mail domain.
	Waited bool
}

// Link returns the address that this recipient's message links to, or "".
func (m Message) Link() string {
	if m.Subject.Copy == nil {
		return m.Subject.LinkOf(m.To.ID, 0)
	}
	return m.Subject.LinkOf(m.To.ID, m.Subject.Copy.Pick(m.Subject.OwnerID, m.To.ID))
}

// Reference returns the text that identifies this message in a provider's reports. It is empty
// for test messages.
func (m Message) Reference() string {
	if m.Subject.Reference == nil {
		return ""
	}
	return m.Subject.Reference(m.To.ID)
}

// IdempotencyKey returns the name of this delivery for providers that can recognise a repetition:
// unique per (kind, template, slot, due instant, channel, user), or per (campaign, channel,
// user).
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
