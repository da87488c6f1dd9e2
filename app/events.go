package app

import (
	"context"
	"encoding/json"

	"dropbell/adapters/watermill"
	"dropbell/domain/fault"
)

// Decoded turns a handler of payloads into a handler of events. A payload that cannot be decoded
// is [fault.ErrInvalid], because a retry cannot decode it either.
func Decoded[T any](handle func(ctx context.Context, eventID string, payload T) error) watermill.HandlerFunc {
	return func(ctx context.Context, e watermill.Event) error {
		var payload T
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			return fault.ErrInvalid.Because("payload of %s: %v", e.Topic, err)
		}
		return handle(ctx, e.ID, payload)
	}
}

// DecodedIf is [Decoded] for events that are acknowledged without reading their payload unless
// wanted reports true.
func DecodedIf[T any](wanted func(context.Context) bool, handle func(ctx context.Context, eventID string, payload T) error) watermill.HandlerFunc {
	decoded := Decoded(handle)
	return func(ctx context.Context, e watermill.Event) error {
		if !wanted(ctx) {
			return nil
		}
		return decoded(ctx, e)
	}
}
