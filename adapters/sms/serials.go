package sms

import (
	"context"
	"time"
)

// A Serial is a provider's name of a message that it has taken.
type Serial struct {
	ID string
	// Reference is what the message is called here; see [delivery.Message.Reference].
	Reference string
}

// Serials keeps the names of messages for providers whose receipts name nothing else.
type Serials interface {
	// Keep stores the serials; one that is there is left as it is.
	Keep(ctx context.Context, provider string, serials []Serial) error
	// Find returns the references of those that are known, by serial.
	Find(ctx context.Context, provider string, ids []string) (map[string]string, error)
}

// KeepFor is how long serials are of use: providers report within three days.
const KeepFor = 4 * 24 * time.Hour
