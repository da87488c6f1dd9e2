package delivery

import "time"

// Setting is the state of a channel that operators set.
type Setting struct {
	Channel      Channel
	Paused       bool
	PausedReason string
	// PausedAt and PausedBy say since when and by whom; zero unless Paused.
	PausedAt time.Time
	PausedBy string
	// RatePerSecond limits the messages per second that all workers together hand to the
	// provider; 0 = unlimited.
	RatePerSecond int
	UpdatedAt     time.Time
}

// The states of a [Circuit].
const (
	CircuitClosed   = "closed"    // calls pass
	CircuitOpen     = "open"      // calls wait
	CircuitHalfOpen = "half-open" // one call probes
)

// A Circuit is the state of a channel's circuit breaker.
type Circuit struct {
	State string
	// Failures in a row up to now.
	Failures int
	// Until is the end of the pause, or of the probe; zero when closed.
	Until time.Time
	// Detail is the provider's last failing answer, or empty.
	Detail string
	// HeldUntil is the end of the pause that the provider requested, whatever State is; zero if
	// there is none.
	HeldUntil time.Time
}

// A Backlog counts a channel's waiting messages and says how long they have waited. Batches that
// are held or in quiet hours do not count.
type Backlog struct {
	Channel Channel
	Batches int64
	People  int64
	// Oldest is how long ago the oldest waiting batch was due.
	Oldest time.Duration
	// OldestTimed is Oldest without campaigns, which are not urgent.
	OldestTimed time.Duration
}

// ProviderHealth summarizes the calls of a channel's provider in the last minute, over all
// workers. If Calls is zero, no call was made.
type ProviderHealth struct {
	Calls    int64
	Messages int64
	Failed   int64 // messages without a good answer
	Mean     time.Duration
	Slowest  time.Duration
	Error    string // the provider's last words, or empty
}

// A ChannelStatus is everything operators see of one channel.
type ChannelStatus struct {
	Setting
	Configured bool
	// CircuitKnown is false while the circuit cannot be read.
	CircuitKnown bool
	Circuit      Circuit
	Backlog      Backlog
	Provider     ProviderHealth
	// Service is the provider's name, "" = it has none.
	Service string
	Budget  ChannelBudget
}

// ChannelBudget is a channel's daily budget (UTC), in parts of messages and in money.
type ChannelBudget struct {
	PerDay int64 // 0 = nothing bounds it
	Spent  int64
	// MicrosPerDay and MicrosSpent are the limit and the money spent, in millionths of a unit of
	// Currency. MicrosPerDay 0 = no limit.
	MicrosPerDay, MicrosSpent int64
	Currency                  string
	// UsedUp says that messages were skipped today for want of budget.
	UsedUp bool
}

// Bounded reports whether anything is bounded.
func (b ChannelBudget) Bounded() bool { return b.PerDay > 0 || b.MicrosPerDay > 0 }

// Held reports whether the channel waits because its provider asked for it.
func (s ChannelStatus) Held() bool { return s.CircuitKnown && !s.Circuit.HeldUntil.IsZero() }

// Open reports whether the circuit keeps messages back.
func (s ChannelStatus) Open() bool { return s.CircuitKnown && s.Circuit.State != CircuitClosed }

// tellingMessages is the least number of messages from which a provider is judged: one failure
// may be a bad address.
const tellingMessages = 10

// Unanswered reports whether no message of the last minute got a good answer.
func (s ChannelStatus) Unanswered() bool {
	return s.Provider.Messages >= tellingMessages && s.Provider.Failed >= s.Provider.Messages
}
