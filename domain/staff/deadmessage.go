package staff

import (
	"time"

	"dropbell/domain/fault"
)

// ErrNoDeadMessage is returned when there is no such dead message, or when it was
// replayed or discarded before.
var ErrNoDeadMessage = fault.New(fault.NotFound, "dead_message_not_found", "there is no such message, or it has been dealt with; load the list again")

// A DeadMessage is an event whose handler failed for good. Operators send it again
// or discard it.
type DeadMessage struct {
	ID        int64
	MessageID string
	Topic     string
	Handler   string
	Reason    string
	Payload   []byte
	At        time.Time
}
