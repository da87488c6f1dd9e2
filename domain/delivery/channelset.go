package delivery

import "sync/atomic"

// ChannelSet is the set of channels that have a configured sender.
type ChannelSet uint8

// ChannelSetOf returns the set of the channels given.
func ChannelSetOf(cs ...Channel) ChannelSet {
	var s ChannelSet
	for _, c := range cs {
		s |= ChannelSet(c.Bit())
	}
	return s
}

// Has reports whether c is in the set.
func (s ChannelSet) Has(c Channel) bool { return c.Valid() && s&ChannelSet(c.Bit()) != 0 }

// Set returns the set itself; see [Available].
func (s ChannelSet) Set() ChannelSet { return s }

// Available tells which channels have a configured sender. The answer may change while a program
// runs.
type Available interface {
	Has(c Channel) bool
	// Set returns the channels as they are now.
	Set() ChannelSet
}

// ChangingChannels is a [ChannelSet] that can be replaced while other goroutines read it. The
// zero value is empty. It is safe for concurrent use.
type ChangingChannels struct{ set atomic.Uint32 }

// Has reports whether c is in the set now.
func (s *ChangingChannels) Has(c Channel) bool { return s.Set().Has(c) }

// Set returns the set as it is now.
func (s *ChangingChannels) Set() ChannelSet { return ChannelSet(s.set.Load()) }

// Replace replaces the set, and reports whether the new set differs from the old one.
func (s *ChangingChannels) Replace(set ChannelSet) (changed bool) {
	return s.set.Swap(uint32(set)) != uint32(set)
}
