package gate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestLostShardsHaveTogetherWhatTheyHad: stock moves between shards at random, also
// between shards that are lost afterwards, and some moves to and from lost shards are
// under way. Built from the links of the other shards, the lost shards together hold as
// much stock as before, no shard holds less than nothing, and the ledger of all shards
// adds up.
func TestLostShardsHaveTogetherWhatTheyHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "shards")
		plan := Plan{Shards: n, Epoch: 1, State: Active, Parts: make([]Part, n)}
		shards := make([]Shard, n)
		came := make([]map[int]int64, n)
		for i := range shards {
			allot := rapid.Int64Range(0, 20).Draw(t, "allot")
			plan.Parts[i] = Part{Epoch: 1, Allot: allot}
			shards[i] = Shard{Number: i, Epoch: 1, Open: true, Still: true, Allot: allot, Stock: allot, Gone: map[int]int64{}}
			came[i] = map[int]int64{}
			plan.Template.Stock += allot
		}
		move := func(from, to int, arrives bool) {
			amount := rapid.Int64Range(0, shards[from].Stock).Draw(t, "amount")
			shards[from].Stock -= amount
			shards[from].Out += amount
			shards[from].Gone[to] += amount
			if arrives {
				shards[to].Stock += amount
				shards[to].In += amount
				came[to][from] += amount
			}
		}
		two := func() (int, int) {
			p := rapid.Permutation([]int{0, 1, 2, 3, 4}[:n]).Draw(t, "pair")
			return p[0], p[1]
		}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "shard")
			if rapid.Bool().Draw(t, "claim") && shards[i].Stock > 0 {
				shards[i].Stock--
				shards[i].Accepted++
				plan.Parts[i].Settled++
				plan.Template.Issued++
				continue
			}
			from, to := two()
			move(from, to, true)
		}
		lost := rapid.Permutation([]int{0, 1, 2, 3, 4}[:n]).Draw(t, "order")[:rapid.IntRange(1, n-1).Draw(t, "lost")]
		isLost := map[int]bool{}
		for _, s := range lost {
			isLost[s] = true
		}
		if from, to := two(); isLost[from] || isLost[to] {
			move(from, to, false) // is under way when the shards are lost, and is ended
		}
		links := map[int]map[int]Link{}
		for _, s := range lost {
			links[s] = map[int]Link{}
			for other := range n {
				if !isLost[other] {
					links[s][other] = Link{Came: came[other][s], Gone: shards[other].Gone[s], Whole: true}
				}
			}
		}
		pasts, ok := plan.pasts(lost, links, 1)
		if !ok {
			t.Fatal("the others do not tell")
		}
		var left int64
		for _, s := range lost {
			past := pasts[s]
			shards[s] = Shard{Number: s, Epoch: 1, Open: true, Still: true, Allot: plan.Parts[s].Allot, Stock: past.Stock, Accepted: past.Accepted,
				Returned: past.Returned, Gone: map[int]int64{}}
			for other, l := range past.Links {
				shards[s].In += l.Gone
				shards[s].Out += l.Came
				shards[s].Gone[other] = l.Came
			}
		}
		for _, s := range shards {
			if s.Stock < 0 {
				t.Fatalf("shard %d has %d", s.Number, s.Stock)
			}
			left += s.Stock
		}
		if l := plan.Ledger(shards); l.Difference != 0 || left != plan.Template.Stock-plan.Template.Issued {
			t.Fatalf("%d left of %d, %d issued: %+v %+v", left, plan.Template.Stock, plan.Template.Issued, l, shards)
		}
	})
}

// TestReadyIsEstimatedFromTheEntriesLeft: at first by the assumed rate, then by the rate
// of the entries written so far.
func TestReadyIsEstimatedFromTheEntriesLeft(t *testing.T) {
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := &work{began: began, total: 1000}
	if got := w.ready(began); got != 11*time.Second {
		t.Errorf("at first: %v", got)
	}
	w.done.Store(250)
	if got := w.ready(began.Add(10 * time.Second)); got != 31*time.Second {
		t.Errorf("after a quarter in ten seconds: %v", got)
	}
	w.done.Store(1200) // claims were accepted until the shards were fenced
	if got := w.ready(began.Add(time.Minute)); got != time.Second {
		t.Errorf("in the end: %v", got)
	}
}

// measured is a fake database and a fake shard on a server whose clock is ahead. Each call
// for the server's clock takes the next duration of takes.
type measured struct {
	Store
	Shards
	now   time.Time // of this machine and of the database
	ahead time.Duration
	takes []time.Duration
	set   []*Offset
}

func (m *measured) Clock(context.Context) (time.Time, error) { return m.now, nil }

func (m *measured) Clocks(context.Context, int64, []int) ([]ServerClock, error) {
	took := m.takes[0]
	if len(m.takes) > 1 {
		m.takes = m.takes[1:]
	}
	m.now = m.now.Add(took) // halted before the clock is read
	return []ServerClock{{"s", m.now.Add(m.ahead)}}, nil
}

func (m *measured) SetTerms(_ context.Context, _ int64, _ int, _ int64, _ Terms, by *Offset) error {
	m.now = m.now.Add(10 * time.Second) // which does not matter any more
	m.set = append(m.set, by)
	return nil
}

// TestSlowMeasurementsOfClocksAreRepeated: a measurement that took longer than a quarter of
// a second is discarded. The terms are put in force even if all measurements are discarded.
func TestSlowMeasurementsOfClocksAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		takes []time.Duration
		err   error
	}{
		"halted once":  {[]time.Duration{40 * time.Second, 251 * time.Millisecond, 20 * time.Millisecond}, nil},
		"always slow":  {[]time.Duration{300 * time.Millisecond}, errSlowClocks},
		"at the limit": {[]time.Duration{250 * time.Millisecond}, nil},
	} {
		m := &measured{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), ahead: 5 * time.Second, takes: c.takes}
		k := &Keeper{Store: m, Shards: m, Now: func() time.Time { return m.now }}
		err := k.setTerms(t.Context(), Plan{Shards: 1, Parts: make([]Part, 1)}, []int{0})
		if !errors.Is(err, c.err) || len(m.set) != 1 {
			t.Fatalf("%s: %v, terms set %d times", name, err, len(m.set))
		}
		by := m.set[0]
		if c.err != nil {
			if by != nil {
				t.Errorf("%s: the clock is set by %v", name, by.Ahead)
			}
			continue
		}
		if off := by.Ahead - m.ahead; by.Server != "s" || off.Abs() > measuredWithin/2 {
			t.Errorf("%s: %q is said to be ahead by %v, it is by %v", name, by.Server, by.Ahead, m.ahead)
		}
	}
}

// TestALostLeaseEndsTheWork: a builder whose lease was taken by another builder is
// stopped at whatever step it is, and does not end the lease of the other builder.
func TestALostLeaseEndsTheWork(t *testing.T) {
	renewals, ended := 0, false
	err := hold(t.Context(), func(_ context.Context, lease time.Duration) error {
		if lease == 0 {
			ended = true
			return nil
		}
		if renewals++; renewals > 1 {
			return ErrStaleEpoch
		}
		return nil
	}, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, func(context.Context) error {
		t.Error("a building was finished whose lease was lost")
		return nil
	})
	if !errors.Is(err, ErrStaleEpoch) || ended {
		t.Errorf("%v, ended %v", err, ended)
	}
}

// TestAFinishedBuildingIsNotRenewed: however long it takes to finish, no renewal makes a gate that is
// open look as if it were being built.
func TestAFinishedBuildingIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int64
		renew := func(context.Context, time.Duration) error {
			renewals.Add(1)
			return nil
		}
		lasting := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(2 * lease):
				return nil
			}
		}
		var before int64
		err := hold(t.Context(), renew, lasting, func(ctx context.Context) error {
			before = renewals.Load()
			return lasting(ctx)
		})
		if n := renewals.Load(); err != nil || before < 8 || n != before {
			t.Errorf("%d renewals before and %d while it was finished, %v", before, n-before, err)
		}
	})
}
