package drops

import (
	"fmt"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// The layout of [reminder.Bitmap] in SQL.
var (
	slotsSQL    = fmt.Sprintf("generate_series(1, %d)", template.Slots)
	channelsSQL = fmt.Sprintf("generate_series(0, %d)", delivery.Channels-1)
	// openBit is the bit above the reminders' bits. A cancellation with this bit removes the
	// requested reminders that are still open and ignores reminders that are no longer open.
	openBit    int64 = 1 << reminder.Bits
	openBitSQL       = fmt.Sprintf("%d::bigint", openBit)
)

// bitSQL returns the expression of the bit of a reminder; slot and channel are integer expressions.
func bitSQL(slot, channel string) string {
	return fmt.Sprintf("(1::bigint << (%d * %s + %s - 1))", template.Slots, channel, slot)
}

// channelBitsSQL returns the expression of all bits of a channel; channel is an integer expression.
func channelBitsSQL(channel string) string {
	return fmt.Sprintf("(%d::bigint << (%d * %s))", reminder.ChannelBits, template.Slots, channel)
}

// slotsOfSQL returns the expression of the slots that bits has on the channel, slot 1 in bit 0.
func slotsOfSQL(bits string, c delivery.Channel) string {
	return fmt.Sprintf("((%s >> %d) & %d)", bits, template.Slots*int(c), reminder.ChannelBits)
}

// anyOnChannelSQL reduces the bits of a reservation to the first bit of each channel. The bit
// is set if the user has any reminder on the channel. [readDue] reads this bit.
var anyOnChannelSQL = func() string {
	var parts []string
	for _, c := range delivery.AllChannels() {
		parts = append(parts, fmt.Sprintf("((%s <> 0)::int::bigint << %d)", slotsOfSQL("slots", c), template.Slots*int(c)))
	}
	return strings.Join(parts, " | ")
}()
