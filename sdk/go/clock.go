package dropbell

import (
	"net/http"
	"sync"
	"time"
)

// Clock is how far the server's clock is ahead of this machine's. Each answer has
// the server's time in whole seconds; as every answer bounds the difference from
// both sides, a few answers narrow it down to less than a second.
type Clock struct {
	mu        sync.Mutex
	known     bool
	low, high time.Duration // the difference lies between
}

// Offset returns the difference; ok is false before the first answer.
func (c *Clock) Offset() (ahead time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.low + c.high) / 2, c.known
}

// Now returns the server's time.
func (c *Clock) Now() time.Time {
	ahead, _ := c.Offset()
	return time.Now().Add(ahead)
}

// observe learns from an answer to a request that was sent and received at these
// instants of this machine.
func (c *Clock) observe(sent, received time.Time, h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || h.Get("Age") != "" { // a cache has answered
		return
	}
	low, high := date.Sub(received), date.Add(time.Second).Sub(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && max(low, c.low) <= min(high, c.high) {
		low, high = max(low, c.low), min(high, c.high)
	} // else one of the clocks was set: the known bounds hold no longer
	c.low, c.high, c.known = low, high, true
}
