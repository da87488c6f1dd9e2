package pgtest

import "time"

// ShortLease is how long a cut's lease lasts in these tests. The lease is renewed after each
// third of its time, so a machine may be late by 600 ms.
const ShortLease = 900 * time.Millisecond

// SlowReading makes reading take several leases, during which no other worker
// must get the lease.
type SlowReading struct {
	Take  func() error // as another worker
	Taken bool
}

// Read takes several leases, in which it calls Take.
func (s *SlowReading) Read() {
	for range 20 {
		<-time.After(ShortLease / 10)
		s.Taken = s.Taken || s.Take() == nil
	}
}
