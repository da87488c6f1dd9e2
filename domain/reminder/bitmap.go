// Package reminder holds reservations and their firing: which reminders a user reserved, when a
// slot is due, and how each due recipient is handed to delivery exactly once.
package reminder

import (
	"math/bits"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// A Reminder is one slot on one channel.
type Reminder struct {
	Channel delivery.Channel
	Slot    template.Slot
}

// ErrNoSuchReminder is returned for minutes other than 5, 10, …, 60.
var ErrNoSuchReminder = fault.New(fault.Invalid, "invalid_request", "minutes must be one of 5, 10, …, 60")

// NewReminder returns the reminder on channel c that is sent minutes before the opening. It
// returns [ErrNoSuchReminder] or [delivery.ErrChannelUnavailable].
func NewReminder(c delivery.Channel, minutes int) (Reminder, error) {
	if !c.Valid() {
		return Reminder{}, delivery.ErrChannelUnavailable
	}
	slot, ok := template.SlotOfMinutes(minutes)
	if !ok {
		return Reminder{}, ErrNoSuchReminder
	}
	return Reminder{c, slot}, nil
}

// DueAt returns when the reminder is due.
func (r Reminder) DueAt(opensAt time.Time) time.Time { return r.Slot.DueAt(opensAt) }

// bit returns the number of the reminder's bit in a [Bitmap].
func (r Reminder) bit() int { return template.Slots*int(r.Channel) + int(r.Slot) - 1 }

// Bitmap is a set of reminders in 60 bits: channel c owns bits 12c … 12c+11,
// slot k is bit 12c+k−1, bits 60–63 are never set. The zero Bitmap is empty.
type Bitmap struct{ bits uint64 }

const (
	// Bits is how many reminders there are: every slot on every channel.
	Bits = template.Slots * delivery.Channels
	// ChannelBits are the bits of all slots of channel 0. Shifted left by
	// channel·[template.Slots] they are the bits of that channel.
	ChannelBits int64 = 1<<template.Slots - 1
	// EveryChannel has the bit of slot 1 of each channel. Shifted left by k−1 it has the bits of
	// slot k of each channel.
	EveryChannel = allBits / ChannelBits

	allBits int64 = 1<<Bits - 1
)

// BitmapOf returns the set with exactly these reminders.
func BitmapOf(rs ...Reminder) Bitmap {
	var b Bitmap
	for _, r := range rs {
		b.bits |= 1 << r.bit()
	}
	return b
}

// BitmapFrom returns the set stored as n; it fails if n is negative or has a
// bit above 59.
func BitmapFrom(n int64) (Bitmap, error) {
	if n < 0 || n > allBits {
		return Bitmap{}, fault.ErrInvalid.Because("%d is not a reminder bitmap", n)
	}
	return Bitmap{uint64(n)}, nil
}

// StoredBitmap is [BitmapFrom] for values that the database has checked; bits above 59 and the
// sign are dropped.
func StoredBitmap(n int64) Bitmap { return Bitmap{uint64(n & allBits)} }

// SlotMask returns slot s on every channel.
func SlotMask(s template.Slot) Bitmap { return Bitmap{uint64(EveryChannel) << (s - 1)} }

// ChannelMask returns every slot of the channel.
func ChannelMask(c delivery.Channel) Bitmap {
	return Bitmap{uint64(ChannelBits) << (template.Slots * int(c))}
}

// Int64 returns the stored form.
func (b Bitmap) Int64() int64 { return int64(b.bits) }

// String returns the stored form in decimal.
func (b Bitmap) String() string { return strconv.FormatUint(b.bits, 10) }

// IsEmpty reports whether no reminder is in b.
func (b Bitmap) IsEmpty() bool { return b.bits == 0 }

// Len returns how many reminders are in b.
func (b Bitmap) Len() int { return bits.OnesCount64(b.bits) }

// Has reports whether r is in b.
func (b Bitmap) Has(r Reminder) bool { return b.Contains(BitmapOf(r)) }

// Contains reports whether b has all of asked, which every b has of the empty set.
func (b Bitmap) Contains(asked Bitmap) bool { return b.bits&asked.bits == asked.bits }

// Union returns the reminders in either.
func (b Bitmap) Union(o Bitmap) Bitmap { return Bitmap{b.bits | o.bits} }

// Intersect returns the reminders in both.
func (b Bitmap) Intersect(o Bitmap) Bitmap { return Bitmap{b.bits & o.bits} }

// Without returns the reminders of b that are not in o.
func (b Bitmap) Without(o Bitmap) Bitmap { return Bitmap{b.bits &^ o.bits} }

// Reminders lists the set, the farthest slot first, then ascending channel.
func (b Bitmap) Reminders() []Reminder {
	list := make([]Reminder, 0, b.Len())
	for s := template.Slot(template.Slots); s >= 1; s-- {
		for of := b.bits >> (s - 1) & uint64(EveryChannel); of != 0; of &= of - 1 {
			list = append(list, Reminder{delivery.Channel(bits.TrailingZeros64(of) / template.Slots), s})
		}
	}
	return list
}
