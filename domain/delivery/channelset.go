package delivery

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
