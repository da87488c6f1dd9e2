package lookup

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	// maxChannels bounds how many broadcast channels are kept.
	maxChannels = 4096
	// channelLife is for how long one is reused, also that there is none.
	channelLife = 2 * time.Second
)

// Channels caches the broadcast channels of drops, which every look at a drop names.
type Channels struct {
	// Load returns the channel of a drop; "" = none.
	load  func(ctx context.Context, templateID int64) (string, error)
	cache *otter.Cache[int64, string]
}

// NewChannels returns an empty cache in front of load.
func NewChannels(load func(ctx context.Context, templateID int64) (string, error)) (*Channels, error) {
	cache, err := otter.New(&otter.Options[int64, string]{MaximumSize: maxChannels, ExpiryCalculator: otter.ExpiryWriting[int64, string](channelLife),
		Logger: &otter.NoopLogger{}})
	return &Channels{load, cache}, err
}

// Of returns the channel of a drop, at most two seconds old. Concurrent callers for the same
// drop share one query.
func (c *Channels) Of(ctx context.Context, templateID int64) (string, error) {
	return c.cache.Get(ctx, templateID, otter.LoaderFunc[int64, string](func(ctx context.Context, id int64) (string, error) {
		// One caller loads for many: its hanging up must not fail the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
		defer cancel()
		return c.load(ctx, id)
	}))
}
