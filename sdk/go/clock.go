package dropbell

import (
	"net/http"
	"sync"
	"time"
)

// Clock measures how far the server's clock is ahead of this machine's clock. Each answer has
// the server's time in whole seconds and limits the difference from above and below. A few
// answers narrow the difference down to less than a second.
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

// observe narrows the difference by an answer. sent and received are the times of the request
// and of its answer on this machine.
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
