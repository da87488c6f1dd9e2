package delivery

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
	"dropbell/musttest"
)

// manyBatches are stores with a batch each, leased in order.
type manyBatches []*fakeStore

func (m manyBatches) LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error) {
	for _, s := range m {
		if l, err := s.LeaseNext(ctx, c, lasting); err == nil {
			return l, nil
		}
	}
	return nil, ErrNoWork
}

// LeaseSome leases up to most, of which none but the first is large.
func (m manyBatches) LeaseSome(ctx context.Context, c Channel, lasting time.Duration, most int) (list []Lease, err error) {
	for _, s := range m {
		if len(list) == most || len(list) > 0 && len(s.due) > 10 {
			break
		}
		if l, err := s.LeaseNext(ctx, c, lasting); err == nil {
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoWork
	}
	return list, nil
}

func (m manyBatches) Recipients(ctx context.Context, c Channel, ids []user.ID, named bool) ([]user.User, error) {
	largest := slices.MaxFunc(m, func(a, b *fakeStore) int { return len(a.due) - len(b.due) })
	return largest.Recipients(ctx, c, ids, named) // the users of the others are among its own
}

func (m manyBatches) Refusals(context.Context, Channel, []user.ID) (Refusals, error) { return nil, nil }

func (m manyBatches) Consents(context.Context, *Batch, []user.ID) (map[user.ID]bool, error) {
	return nil, nil
}

// leased returns how many of the batches have a holder.
func (m manyBatches) leased() (n int) {
	for _, s := range m {
		s.mu.Lock()
		if s.holder != nil && !s.done {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// drained returns a service with batches of the given sizes. A call of its provider takes a
// second, and four calls may be in flight.
func drained(t *testing.T, sizes ...int) (*fixture, manyBatches) {
	p := newProvider(SMS, 10, time.Second)
	r := newFixture(t, newFakeStore(SMS, 1, time.Hour), p)
	var list manyBatches
	for _, n := range sizes {
		list = append(list, newFakeStore(SMS, n, time.Hour))
	}
	r.Service.Store, r.Parallel[SMS] = list, 4
	return r, list
}

// TestSmallBatchesAreWorkedOnSideBySide: as many small batches are in progress as calls may be
// made. They make no more calls at a time than one large batch.
func TestSmallBatchesAreWorkedOnSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, slices.Repeat([]int{5}, 21)...)
		began := time.Now()
		musttest.OK(t, r.Drain(t.Context(), SMS))
		if took := time.Since(began); r.provider.most != 4 || took > 7*time.Second {
			t.Errorf("%d calls at a time, all after %v", r.provider.most, took)
		}
		for i, s := range list {
			if !s.done || s.outcomes()[Sent] != 5 {
				t.Errorf("batch %d: done %v, %v", i, s.done, s.outcomes())
			}
		}
	})
}

// TestLargeBatchesStayAlone: while a batch of more than one call is in progress, no other batch
// begins. Its calls wait for the calls of small batches that began before it.
func TestLargeBatchesStayAlone(t *testing.T) {
	for _, sizes := range [][]int{{100, 100, 100}, {5, 5, 100, 5, 5, 5, 5, 100, 5}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, list := drained(t, sizes...)
				small := 0
				for _, n := range sizes {
					if n < 10 {
						small++
					}
				}
				most := 0
				ended := make(chan error)
				go func() { ended <- r.Drain(t.Context(), SMS) }()
				for {
					select {
					case err := <-ended:
						musttest.OK(t, err)
						if r.provider.most > 4 || small == 0 && most > 1 {
							t.Errorf("%d calls at a time, %d batches", r.provider.most, most)
						}
						for i, s := range list {
							if !s.done || s.outcomes()[Sent] != sizes[i] {
								t.Errorf("batch %d: done %v, %v", i, s.done, s.outcomes())
							}
						}
						return
					case <-time.After(100 * time.Millisecond):
						most = max(most, list.leased())
					}
				}
			})
		})
	}
}

// TestABatchBesideOthersFails: the error is returned, and the lost batch is left to others.
func TestABatchBesideOthersFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, 5, 5, 5)
		list[1].refuse = func(int) error { return fmt.Errorf("disk full") }
		if err := r.Drain(t.Context(), SMS); err == nil || err.Error() != "disk full" {
			t.Errorf("%v", err)
		}
		if list[1].done || !list[0].done {
			t.Error("the wrong one is done")
		}
	})
}

// countedLeases counts how many batches each lease asks for and gets.
type countedLeases struct {
	manyBatches
	asked, got *[]int
}

func (s countedLeases) LeaseSome(ctx context.Context, c Channel, lasting time.Duration, most int) ([]Lease, error) {
	list, err := s.manyBatches.LeaseSome(ctx, c, lasting, most)
	*s.asked, *s.got = append(*s.asked, most), append(*s.got, len(list))
	return list, err
}

// TestSmallBatchesAreLeasedSeveralAtATime: sixteen batches are leased at first, and more when
// half of them have ended.
func TestSmallBatchesAreLeasedSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, slices.Repeat([]int{1}, 40)...)
		var asked, got []int
		r.Service.Store = countedLeases{list, &asked, &got}
		musttest.OK(t, r.Drain(t.Context(), SMS))
		got = slices.DeleteFunc(got, func(n int) bool { return n == 0 }) // asked each second whether there is more
		if want := []int{16, 8, 8, 8}; !slices.Equal(got, want) || asked[0] != 16 || asked[1] != 8 {
			t.Errorf("asked for %v, got %v, want %v", asked, got, want)
		}
		for i, s := range list {
			if !s.done {
				t.Errorf("batch %d is not done", i)
			}
		}
	})
}

// TestABatchThatTakesLongKeepsNoOtherWaiting: batches that become ready while a slow batch is in
// progress are leased within a second.
func TestABatchThatTakesLongKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, 5, 5)
		r.provider.takes = 30 * time.Second
		began := time.Now()
		list[1].readyAt = began.Add(10 * time.Second)
		musttest.OK(t, r.Drain(t.Context(), SMS))
		if took := time.Since(began); !list[0].done || !list[1].done || took > 42*time.Second {
			t.Errorf("done %v and %v, after %v", list[0].done, list[1].done, took)
		}
	})
}

// TestABatchReadyBeforeTheLastOneEnds is leased, although no worker was woken for it.
func TestABatchReadyBeforeTheLastOneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, 5, 5)
		list[1].readyAt = time.Now().Add(500 * time.Millisecond)
		if err := r.Drain(t.Context(), SMS); err != nil || !list[0].done || !list[1].done {
			t.Errorf("%v; done %v and %v", err, list[0].done, list[1].done)
		}
	})
}

// TestFullBatchesOfOneCall are worked on as many at a time as calls may be made.
func TestFullBatchesOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, BatchSize, BatchSize, BatchSize, BatchSize, BatchSize, BatchSize)
		r.provider.chunk = BatchSize
		began := time.Now()
		musttest.OK(t, r.Drain(t.Context(), SMS))
		if took := time.Since(began); r.provider.most != 4 || took > 3*time.Second {
			t.Errorf("%d calls at a time, all after %v", r.provider.most, took)
		}
		for i, s := range list {
			if !s.done {
				t.Errorf("batch %d is not done", i)
			}
		}
	})
}

// leasedTogether are batches that are leased at once, whatever their sizes: medium batches may be.
type leasedTogether struct{ manyBatches }

func (m leasedTogether) LeaseSome(ctx context.Context, c Channel, lasting time.Duration, _ int) (list []Lease, err error) {
	for _, s := range m.manyBatches {
		if l, err := s.LeaseNext(ctx, c, lasting); err == nil {
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoWork
	}
	return list, nil
}

// slowAdmission answers its nth call after takes[n], and refuses all calls after these until then.
type slowAdmission struct {
	*gate
	takes []time.Duration
	asked atomic.Int64
	until time.Time
}

func (a *slowAdmission) Admit(ctx context.Context, l Load) (time.Duration, string) {
	if n := int(a.asked.Add(1)); n <= len(a.takes) {
		time.Sleep(a.takes[n-1])
	} else if left := time.Until(a.until); left > 0 {
		return left, ReasonProvider
	}
	return a.gate.Admit(ctx, l)
}

// TestPostponedBatchesGiveTheirPermitsBack: two batches of several calls share the permits. The
// provider's circuit opens while both hold permits and wait for further permits. Both batches are
// released, and their messages are sent when the circuit closes.
func TestPostponedBatchesGiveTheirPermitsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, 100, 100)
		r.provider.takes = 0
		r.Service.Store = leasedTogether{list}
		began := time.Now()
		// The first batch has all four permits, of which the second gets two after a second. After
		// another second both batches get two permits each.
		r.Admission = &slowAdmission{gate: r.gate, until: began.Add(30 * time.Second),
			takes: []time.Duration{time.Second, time.Second, 2 * time.Second, 2 * time.Second, time.Second, time.Second}}
		musttest.OK(t, r.Drain(t.Context(), SMS))
		if took := time.Since(began); took > 5*time.Second || list[0].done || list[1].done {
			t.Errorf("after %v: done %v and %v", took, list[0].done, list[1].done)
		}
		time.Sleep(time.Until(began.Add(31 * time.Second)))
		musttest.OK(t, r.Drain(t.Context(), SMS))
		for i, s := range list {
			if !s.done || s.outcomes()[Sent] != 100 {
				t.Errorf("batch %d: done %v, %v", i, s.done, s.outcomes())
			}
		}
	})
}

// panickingGuard panics for batches of one recipient.
type panickingGuard struct{}

func (panickingGuard) Screen(_ context.Context, b *Batch) (Screen, error) {
	if len(b.Left) == 1 {
		panic("no such recipient")
	}
	return nil, errAway
}

// TestAPanicBesideOthers is the error of its batch, and is reported; the others go on.
func TestAPanicBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list := drained(t, 5, 1, 5)
		var crashes []string
		r.Crashed = func(_ Channel, c Crash) { crashes = append(crashes, c.What) }
		r.Guards = map[Kind]Guard{KindNotice: panickingGuard{}}
		list[1].subject.Kind = KindNotice
		err := r.Drain(t.Context(), SMS)
		if err == nil || len(crashes) != 1 || !list[0].done || list[1].done || !list[2].done {
			t.Errorf("%v, crashes %q, done %v %v %v", err, crashes, list[0].done, list[1].done, list[2].done)
		}
	})
}
