package parts

import (
	"context"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/views/ui"
)

// Previews are a message as its reader gets it, one preview per channel.
type Previews struct {
	// Reader names the reader of the previews: a user, or a made-up person.
	Reader string
	// Other is the language that this user would get instead; empty = the language of the text.
	Other string
	List  []Preview
}

// Preview is a message over one channel.
type Preview struct {
	Channel message.Channel
	Content message.Content
	// Page is the address of a mail's page. With &dark=1 appended it shows the mail as on a dark
	// screen.
	Page string
	// Note is said instead of a page that cannot be shown.
	Note string
	// Size is the size of an SMS, Price the cost of an SMS part in ten-thousandths of Currency.
	Size     message.SMSSize
	Price    int64
	Currency string
}

func (p Preview) channel() delivery.Channel {
	c, _ := delivery.ParseChannel(string(p.Channel)) // one of its names
	return c
}

// sizeText says how long an SMS is.
func (p Preview) sizeText(ctx context.Context) string {
	text := ui.T(ctx, "message.sms.size", p.Size.Places, p.Size.Parts)
	if p.Price > 0 {
		text += " · " + ui.T(ctx, "message.sms.price", PriceText(ctx, p.Price*int64(p.Size.Parts), p.Currency))
	}
	return text
}

// Price writes an amount in ten-thousandths of a currency's unit, without zeros at the end.
func Price(n int64, currency string) string {
	text := strconv.FormatInt(n/10000, 10)
	if rest := n % 10000; rest != 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(10000+rest, 10)[1:], "0")
	}
	return text + " " + currency
}

// PriceText is [Price] for readers, with separators between thousands.
func PriceText(ctx context.Context, n int64, currency string) string {
	whole, rest, _ := strings.Cut(Price(n, currency), strconv.FormatInt(n/10000, 10))
	return whole + ui.Num(ctx, n/10000) + rest
}

// ReadPrice is the reverse of [Price] without the currency; false if text is no such amount.
func ReadPrice(text string) (int64, bool) {
	whole, rest, _ := strings.Cut(text, ".")
	if len(whole) == 0 || len(whole) > 6 || len(rest) > 4 || strings.Trim(whole+rest, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+rest+strings.Repeat("0", 4-len(rest)), 10, 64)
	return n, err == nil
}
