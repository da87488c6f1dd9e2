// Package message holds the texts of all messages: those that staff write for a shop or
// a drop, per kind, channel and language; the built-in texts; and the one renderer that
// previews and every sender use. A text is compiled once for each version, and its
// variables are filled in afterwards.
package message

import (
	"time"
)

// Kind says on what occasion a message is sent.
type Kind string

// The kinds.
const (
	Reminder   Kind = "reminder"
	Correction Kind = "correction"
	Cancelled  Kind = "cancelled"
	Notice     Kind = "notice"
	Campaign   Kind = "campaign"
	Test       Kind = "test"
	// Verification has the code that proves a phone number. It is about no shop and no
	// drop, and only a text message.
	Verification Kind = "verification"
)

// Written are the kinds whose texts staff write for a shop or a drop. The text
// of a campaign is part of the campaign.
func Written() []Kind { return []Kind{Reminder, Correction, Cancelled, Notice} }

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

// The kinds of versions that are no messages but what messages are made of.
const (
	// Names are the name and the description of a drop in one language.
	Names Kind = "names"
	// Settings are the shop's default language, its brand and the price of an SMS.
	Settings Kind = "settings"
)

// A Key is what one text is for. Names and settings have no channel, settings no
// language.
type Key struct {
	Kind     Kind
	Channel  Channel
	Language string // a canonical BCP 47 tag
}

// A Text is what staff write for one key. Which fields count depends on the
// channel: mails have Blocks, all others a Body.
type Text struct {
	Title  string  `json:"title,omitempty"` // the subject of a mail, the name of a drop
	Body   string  `json:"body,omitempty"`  // the description of a drop
	Blocks []Block `json:"blocks,omitempty"`
	// Shop are the settings of a shop; nil for everything else.
	Shop *Shop `json:"shop,omitempty"`
}

// BlockType is what a block of a mail shows.
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

// A Block is a part of a mail. Text is what it says, of an image what is read to
// those who do not see it; URL is the address of an image.
type Block struct {
	Type BlockType `json:"type"`
	Text string    `json:"text,omitempty"`
	URL  string    `json:"url,omitempty"`
}

// Shop are the settings of a shop that its messages follow.
type Shop struct {
	// Language is what readers get for whose own language there is no text.
	Language string `json:"language,omitempty"`
	// Logo is the https address of an image, Colour the brand's "#rrggbb".
	Logo   string `json:"logo,omitempty"`
	Colour string `json:"colour,omitempty"`
	// PartPrice is what one part of an SMS costs, in ten-thousandths of a unit of
	// Currency; 0 = unknown.
	PartPrice int64  `json:"part_price,omitempty"`
	Currency  string `json:"currency,omitempty"`
}

// A Version is one save of a text. Versions are never changed: a save adds one,
// and of each place and key the one with the greatest ID counts.
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
}

// A Reader is what rendering needs to know of a recipient.
type Reader struct {
	Name   string
	Locale string // BCP 47; "" = unknown
	Zone   *time.Location
}

// Facts are what one message is about, the same for all its recipients.
type Facts struct {
	Kind Kind
	Drop string // the name in the default language; Book has the others
	Shop string
	// Description is the drop's in the default language; Book has the others.
	Description string
	Worth       Worth
	OpensAt     time.Time
	EndsAt      time.Time // of a campaign
	// Minutes are left until the opening, or is how long a code is valid; Days are left
	// until a coupon expires.
	Minutes, Days int
	// Link is where the coupon can be claimed or used; "" = nowhere.
	Link string
	// Code proves a phone number.
	Code string
}
