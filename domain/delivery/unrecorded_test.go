package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoCallBeginsBeforeTheLastOneIsRecorded: however long the database is away, only the calls
// in flight would be repeated if this process died now.
func TestNoCallBeginsBeforeTheLastOneIsRecorded(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 5, 100*time.Millisecond))
			r.Parallel[SMS], r.LeaseFor = parallel, time.Minute
			most, away := 0, time.Now().Add(10*time.Second)
			r.depot.refuse = func(int) error {
				r.provider.mu.Lock()
				defer r.provider.mu.Unlock()
				most = max(most, len(r.provider.got)-len(r.depot.sent))
				if time.Now().Before(away) {
					return errAway
				}
				return nil
			}
			r.must()
			r.want(map[Outcome]int{Sent: 100})
			r.once()
			if most == 0 || most > 5*parallel {
				t.Errorf("up to %d messages were sent and not recorded, with %d calls of 5 in parallel", most, parallel)
			}
		})
	}
}

// TestASlowLeaseDoesNotTurnTheClockBack: if the database takes a minute to answer the lease
// request, no message may be sent a minute too late.
func TestASlowLeaseDoesNotTurnTheClockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeStore(SMS, 20, 10*time.Second)
		r := newFixture(t, d, newProvider(SMS, 5, time.Second))
		r.Store = slowStore{d}
		r.must()
		if n := len(r.provider.calls); n > 0 {
			t.Errorf("%d calls began %v after the deadline", n, r.provider.calls[0].Sub(d.worthless))
		}
		r.want(map[Outcome]int{Expired: 20})
	})
}

// slowStore is a fakeStore whose answers take a minute to arrive.
type slowStore struct{ *fakeStore }

func (s slowStore) LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error) {
	l, err := s.fakeStore.LeaseNext(ctx, c, 2*time.Minute)
	<-time.After(time.Minute) // the bubble's clock
	return l, err
}
