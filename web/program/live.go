package program

import (
	"context"

	"dropbell/adapters/lookup"
)

// wireLive makes the source of the broadcast channels of drops; it does nothing without APNS_LIVE.
func (p *program) wireLive() (err error) {
	if p.Config.APNSLive {
		p.channelNames, err = lookup.NewChannels(p.Stores.Live.Channel)
	}
	return err
}

func (p *program) liveChannels() func(context.Context, int64) (string, error) {
	if p.channelNames == nil {
		return nil
	}
	return p.channelNames.Of
}
