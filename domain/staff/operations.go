package staff

import (
	"time"

	"dropbell/domain/fault"
)

// ErrMessageNotFound is returned for a poisoned message that does not exist
// or was dealt with already.
var ErrMessageNotFound = fault.New(fault.NotFound, "message_not_found", "no such message, or somebody has dealt with it")

// A ChannelSetting is what operators decided about one channel.
type ChannelSetting struct {
	Channel string // name as in the API, such as "email"
	Paused  bool
	Reason  string
	// RatePerSecond bounds the messages per second; 0 = unlimited.
	RatePerSecond int
	UpdatedAt     time.Time
}

// A DeadMessage is an event that one handler gave up on.
type DeadMessage struct {
	ID        int64
	MessageID string
	Topic     string
	Handler   string
	Reason    string
	Payload   []byte
	At        time.Time
}
