// Package inapp is the channel to users inside the shop's app.
package inapp

import (
	"context"

	"dropbell/domain/delivery"
)

// chunkSize is a whole batch: there is no provider to be gentle with.
const chunkSize = 1000

// A Sender delivers to the inbox. The inbox is read from the outcomes that batches record, so
// storing the outcome is the delivery. Connected clients get a live update after the
// announcement that a batch is done. Send therefore does no work. The zero value is ready for
// use.
type Sender struct{}

// Channel returns [delivery.App].
func (Sender) Channel() delivery.Channel { return delivery.App }

// ChunkSize returns the size of a batch.
func (Sender) ChunkSize() int { return chunkSize }

// Send answers Delivered for every message. After the end of ctx it answers Transient, because
// the outcome can no longer be stored.
func (Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(delivery.Result{Detail: delivery.CauseOf(err)}, len(messages))
	}
	return delivery.Repeat(delivery.Result{Status: delivery.Delivered}, len(messages))
}
