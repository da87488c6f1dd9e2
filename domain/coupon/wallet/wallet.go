// Package wallet holds the passes of coupons in the wallets of phones: the content of a
// pass, the phones that have registered for it, and the notification that it changed.
package wallet

import (
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Faults of this room.
var (
	// ErrOff is the answer while no wallet is configured, or the requested wallet is not.
	ErrOff = fault.New(fault.NotFound, "wallet_not_configured", "this installation issues no passes for this wallet; offer passes only where the answer has a link")
	// ErrToken is the refusal of a device without the pass's token.
	ErrToken = fault.New(fault.Unauthenticated, "pass_token_invalid", "the pass's token is missing or wrong")
	// ErrUnknown is the answer about a pass that was not issued, or is no longer kept.
	ErrUnknown = fault.New(fault.NotFound, "pass_not_found", "there is no such pass")
	// ErrFull is the refusal of a device too many.
	ErrFull = fault.New(fault.Conflict, "pass_devices_exceeded", "this pass is on as many devices as are told of changes")
)

const (
	// MaxDevices is how many devices are told of changes of one pass.
	MaxDevices = 20
	// MaxName is the maximal length, in characters, of the names that Apple's devices
	// give themselves, and of their push tokens.
	MaxName = 200
	// overlap is how far before the device's instant the list of changes begins: a
	// change may have been stored after a later change was listed.
	overlap = 10 * time.Second
)

// A Sheet is a coupon with the data that its pass needs, as stores have it. Times
// are by the database's clock.
type Sheet struct {
	Coupon     coupon.Coupon
	Now        time.Time
	ShopNumber int64
	Shop       string
	Zone       string // of the shop, IANA
	Drop       string // the template's name in the default language
	About      string // its description, at most 1,000 characters
	Worth      message.Worth
	Locale     string // the owner's; "" = unknown
	TextsUpTo  int64  // the newest version of texts
	Modified   time.Time
}

// A Pass is the content of a coupon's pass in a wallet.
type Pass struct {
	CouponID, TemplateID int64
	UserID               user.ID
	// Language is the language of the texts, a tag of BCP 47.
	Language                       string
	Name, Shop, Worth, Description string
	// Colour is the shop's colour, Ink the colour of text on it; both are "#rrggbb".
	Colour, Ink string
	// Logo is the https address of the shop's image; "" = none.
	Logo string
	// Picture is the https address of the picture of the drop's coupon, PictureText what it shows; ""
	// = none. Strip has the files of the picture for Apple's Wallet, by name.
	Picture, PictureText string
	Strip                map[string][]byte
	State                coupon.State
	// ExpiresAt and Modified are in the zone of the shop.
	ExpiresAt, Modified time.Time
}

// Voided reports whether the coupon cannot be used any more.
func (p Pass) Voided() bool {
	return p.State == coupon.Used || p.State == coupon.Expired || p.State == coupon.Revoked
}

// defaultColour is the background of passes of a shop without a brand.
const defaultColour = "#c2410c"

// passOf makes the pass of s with the texts of the book.
func passOf(s Sheet, book *message.Book) Pass {
	settings := book.Settings()
	language := s.Locale
	if language == "" {
		language = settings.Language
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	facts := message.Facts{Kind: message.Notice, Shop: s.Shop, Worth: s.Worth, Description: book.Description(language, s.About)}
	values := facts.Values(language, book.Name(language, s.Drop), zone, "", "")
	colour := settings.Colour
	if !message.ValidColour(colour) {
		colour = defaultColour
	}
	return Pass{CouponID: s.Coupon.ID, TemplateID: s.Coupon.TemplateID, UserID: s.Coupon.UserID, Language: language,
		Name: values[message.VarDrop], Shop: values[message.VarShop], Worth: values[message.VarWorth], Description: values[message.VarDescription],
		Colour: colour, Ink: message.WordsOn(colour), Logo: settings.Logo, Picture: settings.Coupon.URL, PictureText: settings.Coupon.Text, State: s.Coupon.At(s.Now),
		ExpiresAt: s.Coupon.ExpiresAt.In(zone), Modified: s.Modified.UTC()}
}
