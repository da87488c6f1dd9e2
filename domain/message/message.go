// Package message holds the texts of all messages: texts that staff write for a shop or a drop,
// per kind, channel and language, and the built-in texts. It has the only renderer, which
// previews and all senders use. A text is compiled once for each version, and its variables are
// filled in afterwards.
package message

import (
	"time"
)

// Kind is the occasion of a message.
type Kind string

// The kinds.
const (
	Reminder   Kind = "reminder"
	Correction Kind = "correction"
	Cancelled  Kind = "cancelled"
	Notice     Kind = "notice"
	// Waitlist tells a user of the coupon that the waitlist of a drop gave.
	Waitlist Kind = "waitlist"
	// Offer tells a user that the waitlist of a drop offers a coupon.
	Offer Kind = "offer"
	// Won and Lost tell a user of the result of a draw.
	Won      Kind = "won"
	Lost     Kind = "lost"
	Campaign Kind = "campaign"
	Test     Kind = "test"
	// Verification is a message with the code that proves a phone number. It exists as a text
	// message only, and is about no shop and no drop.
	Verification Kind = "verification"
)

// Written returns the kinds whose texts staff write for a shop or a drop. The text of a campaign
// is part of the campaign.
func Written() []Kind {
	return []Kind{Reminder, Correction, Cancelled, Notice, Waitlist, Offer, Won, Lost}
}

// Channel is the name of a channel.
type Channel string

// The channels.
const (
	App     Channel = "app"
	Email   Channel = "email"
	SMS     Channel = "sms"
	WebPush Channel = "webpush"
	Webhook Channel = "webhook"
)

// Channels returns every channel.
func Channels() []Channel { return []Channel{App, Email, SMS, WebPush, Webhook} }

// Titled reports whether messages of the channel have a title: a subject in mail.
func (c Channel) Titled() bool { return c != SMS }

// The kinds of versions that are not messages but are used by messages.
const (
	// Names are the name and the description of a drop in one language.
	Names Kind = "names"
	// Settings are the shop's default language, its brand and the price of an SMS.
	Settings Kind = "settings"
	// Picture is the picture of a drop's coupon: one block of the type [Image], without a language.
	Picture Kind = "picture"
)

// A Key identifies the use of one text. Names and settings have no channel; settings have no
// language.
type Key struct {
	Kind     Kind
	Channel  Channel
	Language string // a canonical BCP 47 tag
}

// A Text is the text that staff write for one key. The fields used depend on the channel: mails
// have Blocks, other channels a Body.
type Text struct {
	Title  string  `json:"title,omitempty"` // the subject of a mail, the name of a drop
	Body   string  `json:"body,omitempty"`  // the description of a drop
	Blocks []Block `json:"blocks,omitempty"`
	// Shop are the settings of a shop; nil for everything else.
	Shop *Shop `json:"shop,omitempty"`
}

// BlockType is the kind of a block of a mail.
type BlockType string

// The types of blocks.
const (
	Heading BlockType = "heading"
	Words   BlockType = "text" // in Markdown
	Image   BlockType = "image"
	Button  BlockType = "button" // leads to the link, and is left out where there is none
	Coupon  BlockType = "coupon" // worth, name and opening of the drop
	Footer  BlockType = "footer"
)

// BlockTypes returns every type of block.
func BlockTypes() []BlockType { return []BlockType{Heading, Words, Image, Button, Coupon, Footer} }

// A Block is a part of a mail. Text is its text, or for an image the alternative text. URL is the
// address of an image.
type Block struct {
	Type BlockType `json:"type"`
	Text string    `json:"text,omitempty"`
	URL  string    `json:"url,omitempty"`
}

// Shop are the settings of a shop that its messages follow.
type Shop struct {
	// Language is the language for readers in whose own language there is no text.
	Language string `json:"language,omitempty"`
	// Logo is the https address of an image, Colour the brand's "#rrggbb".
	Logo   string `json:"logo,omitempty"`
	Colour string `json:"colour,omitempty"`
	// PartPrice is the price of one part of an SMS, in ten-thousandths of a unit of Currency; 0 =
	// unknown.
	PartPrice int64  `json:"part_price,omitempty"`
	Currency  string `json:"currency,omitempty"`
	// Sender is the name that readers of mails see as the sender; "" = the name of the mail
	// server's settings. ReplyTo is the address that gets their answers; "" = the sender's.
	Sender  string `json:"sender,omitempty"`
	ReplyTo string `json:"reply_to,omitempty"`
	// Preheader is the line that mail programs show after the subject, with variables that every
	// message has; "" = the beginning of the mail. Postal is the postal address in the footer.
	Preheader string `json:"preheader,omitempty"`
	Postal    string `json:"postal_address,omitempty"`
	// Coupon is the picture of the drop's coupon, which its book adds; the zero Block = none.
	Coupon Block `json:"-"`
}

// A Version is one save of a text. Versions are never changed: a save adds a version. The version
// with the greatest ID is the current one of its place and key.
type Version struct {
	ID       int64
	Shop     int64 // the shop's number
	Template int64 // 0 = the shop's own text
	Key      Key
	// Text is nil if the text was removed, so that the next best one counts.
	Text *Text
	// RestoredFrom is the version that this one repeats; 0 = none.
	RestoredFrom int64
	By           string
	At           time.Time
}

// A Place is where texts belong: a drop, or with Template 0 a shop.
type Place struct{ Shop, Template int64 }

// Content is a rendered message. HTML is a whole page, and empty for channels
// other than mail.
type Content struct {
	Title string
	Text  string
	HTML  string
	// Sender, ReplyTo and Preheader are the shop's; see [Shop].
	Sender, ReplyTo, Preheader string
}

// SentBy returns the sender's name and the address for answers as mail programs show them; "" = the
// shop has set neither.
func (c Content) SentBy() string {
	switch {
	case c.ReplyTo == "":
		return c.Sender
	case c.Sender == "":
		return "↩ " + c.ReplyTo
	}
	return c.Sender + " · ↩ " + c.ReplyTo
}

// A Reader is the data of a recipient that rendering uses.
type Reader struct {
	Name   string
	Locale string // BCP 47; "" = unknown
	Zone   *time.Location
}

// Facts are the facts that one message contains, the same for all its recipients.
type Facts struct {
	Kind Kind
	Drop string // the name in the default language; Book has the others
	Shop string
	// Description is the drop's in the default language; Book has the others.
	Description string
	Worth       Worth
	OpensAt     time.Time
	EndsAt      time.Time // of a campaign
	// Minutes is the time left until the opening, or the time for which a code is valid. Days is
	// the time left until a coupon expires. Hours is the time in which a winner may accept the coupon; 0 =
	// the winner has it.
	Minutes, Days, Hours int
	// Link is where the coupon can be claimed or used; "" = nowhere.
	Link string
	// Code proves a phone number.
	Code string
}
