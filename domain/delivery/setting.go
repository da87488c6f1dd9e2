package delivery

import "time"

// Setting is what operators decide about a channel.
type Setting struct {
	Channel      Channel
	Paused       bool
	PausedReason string
	// RatePerSecond is the most messages per second all workers together
	// hand to the provider; 0 = unlimited.
	RatePerSecond int
	UpdatedAt     time.Time
}
