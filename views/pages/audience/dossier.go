package audience

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/cart"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// lettersShown is how many campaigns the page of a user shows.
const lettersShown = 10

func (p User) shownLetters() []campaign.Letter {
	return p.Received.Letters[:min(len(p.Received.Letters), lettersShown)]
}

// orderLine writes line i of an order with its discount and what came back.
func orderLine(ctx context.Context, o cart.Placed, i int) string {
	l, locale := o.Lines[i], ui.From(ctx).Locale
	text := locale.T("user.order_line", cmp.Or(l.Product, l.ID), l.Quantity) + " · " + locale.Money(l.Amount, o.Currency)
	if off := (cart.Combination{Uses: o.Uses}).Lines(len(o.Lines))[i]; off > 0 {
		text += " − " + locale.Money(off, o.Currency)
	}
	if n := o.Returned[i]; n > 0 {
		text += " · " + locale.T("user.order_returned", n)
	}
	return text
}

// A way is whether a user can be reached over a channel.
type way int

const (
	wayOpen way = iota
	wayOff
	wayNoContact
	wayNoSender
	waySuppressed
	wayUnverified
)

// Ways are what the installation can send over.
type Ways struct {
	// Channels are those with a configured sender.
	Channels delivery.ChannelSet
	// VerifiedOnly is whether text messages go to verified numbers alone.
	VerifiedOnly bool
}

// wayOf returns the first obstacle on the channel. Obstacles that staff can remove come first.
func (p User) wayOf(c delivery.Channel) way { return p.Ways.of(p.User, p.Suppression != nil, c) }

func (w Ways) of(u user.User, suppressed bool, c delivery.Channel) way {
	switch {
	case !w.Channels.Has(c):
		return wayNoSender
	case u.OptOuts&c.Bit() != 0:
		return wayOff
	case c == delivery.Email && u.Email == "", c == delivery.SMS && u.Phone == "", c == delivery.WebPush && !u.Pushable():
		return wayNoContact
	case c == delivery.Email && suppressed:
		return waySuppressed
	case c == delivery.SMS && w.VerifiedOnly && u.PhoneVerifiedAt.IsZero():
		return wayUnverified
	}
	return wayOpen
}

// contact is where a channel's messages go; empty if that needs no address.
func (p User) contact(ctx context.Context, c delivery.Channel) string {
	switch {
	case c == delivery.Email:
		return p.User.Email
	case c == delivery.SMS:
		return p.User.Phone
	case c == delivery.WebPush && p.User.Pushable():
		return p.devices(ctx)
	}
	return ""
}

// devices counts the devices that push messages are sent to, by kind: "2 browsers, iPhone (app
// 5.2)".
func (p User) devices(ctx context.Context) string {
	var list []string
	if n := len(p.User.Push); n > 0 {
		list = append(list, ui.N(ctx, "user.browsers", int64(n)))
	}
	for _, d := range p.User.Devices {
		name := ui.T(ctx, "user.device."+string(d.Platform))
		if d.AppVersion != "" {
			name += " " + ui.T(ctx, "user.device.version", d.AppVersion)
		}
		list = append(list, name)
	}
	return strings.Join(list, ui.T(ctx, "user.device.and"))
}

// languageText is the language's own name if the console has it.
func languageText(ctx context.Context, tag string) string {
	for _, l := range ui.From(ctx).Languages {
		if l.Tag == tag {
			return l.Name
		}
	}
	return parts.OrDash(tag)
}

// zoneText names the zone that applies if the user's zone is unknown.
func zoneText(ctx context.Context, u user.User) string {
	if u.Timezone == "" {
		return ui.T(ctx, "user.zone_unknown")
	}
	return u.Timezone
}

// quietNow reports whether the user is in quiet hours, and at what time of the user's day they end.
func quietNow(ctx context.Context, u user.User) (end string, quiet bool) {
	now := ui.From(ctx).Now
	if !u.Quiet.Contains(now, u.Zone()) {
		return "", false
	}
	return u.Quiet.End(now, u.Zone()).In(u.Zone()).Format("15:04"), true
}

func shareName(ctx context.Context, s campaign.Allowance) string {
	if s.Shop == 0 {
		return ui.T(ctx, "user.caps_no_shop")
	}
	return s.ShopName
}

// atLeast says "at least" if there may be more than the count.
func (p User) atLeast(ctx context.Context, count string) string {
	if p.Received.AtLeast {
		return ui.T(ctx, "user.caps_at_least", count)
	}
	return count
}

// An attribute is a value that the shop has sent about a user, as shown.
type attribute struct{ name, value string }

func attributesOf(ctx context.Context, u user.User) []attribute {
	list := make([]attribute, 0, len(u.Attributes))
	for _, name := range slices.Sorted(maps.Keys(u.Attributes)) {
		list = append(list, attribute{name, attributeText(ctx, u.Attributes[name])})
	}
	return list
}

// attributeText writes numbers as they were received: they may be anything, such as years or card
// numbers.
func attributeText(ctx context.Context, value any) string {
	switch v := value.(type) {
	case string:
		return parts.OrDash(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		if v {
			return ui.T(ctx, "user.yes")
		}
		return ui.T(ctx, "user.no")
	}
	return fmt.Sprint(value)
}
