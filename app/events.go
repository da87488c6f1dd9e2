package app

import (
	"context"
	"encoding/json"

	"dropbell/adapters/watermill"
	"dropbell/domain/fault"
)

// Decoded adapts a handler of payloads to one of events. A payload that does not
// decode is [fault.ErrInvalid]: it will not decode the next time either.
func Decoded[T any](handle func(ctx context.Context, eventID string, payload T) error) watermill.HandlerFunc {
	return func(ctx context.Context, e watermill.Event) error {
		var payload T
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			return fault.ErrInvalid.Because("payload of %s: %v", e.Topic, err)
		}
		return handle(ctx, e.ID, payload)
	}
}
