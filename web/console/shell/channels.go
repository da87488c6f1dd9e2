package shell

import "dropbell/domain/delivery"

// ChannelStates are the states of all channels, as pages show them.
type ChannelStates = Recent[[delivery.Channels]delivery.ChannelStatus]
