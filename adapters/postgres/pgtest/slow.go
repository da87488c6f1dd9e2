package pgtest

import "time"

// ShortLease is how long the right to cut lasts in these tests.
const ShortLease = 300 * time.Millisecond

// SlowReading makes reading take several leases, in which nobody else must get
// the right to cut.
type SlowReading struct {
	Take  func() error // as somebody else
	Taken bool
}

// Read takes several leases, in which it calls Take.
func (s *SlowReading) Read() {
	for range 30 {
		<-time.After(ShortLease / 10)
		s.Taken = s.Taken || s.Take() == nil
	}
}
