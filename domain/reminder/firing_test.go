package reminder_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func timersOn(store reminder.FiringStore, q *fakeQueue) *reminder.Timers {
	return &reminder.Timers{Store: store, Queue: q, Now: time.Now, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
}

func slotDueIn(d time.Duration) reminder.Slot {
	return reminder.Slot{ID: 7, TemplateID: 1, Slot: 1, DueAt: time.Now().Add(d), State: reminder.Waiting}
}

func ids(n int) []user.ID {
	list := make([]user.ID, n)
	for i := range list {
		list[i] = user.ID(i + 1)
	}
	return list
}

func TestFireCutsEverybodyOnce(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 120_500} {
		for _, parts := range []int{1, 2, 7} {
			synctest.Test(t, func(t *testing.T) {
				y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(n), parts: parts}, &fakeQueue{}
				musttest.OK(t, timersOn(y, q).Fire(t.Context(), 7))
				if err := timersOn(y, q).Fire(t.Context(), 7); err != nil || len(y.ended) != 1 {
					t.Errorf("a second timer: %v, ended %d times", err, len(y.ended))
				}
				if want := ([delivery.Channels]int64{int64(n), int64(n / 2)}); y.ended[0] != want {
					t.Errorf("counted %v, want %v", y.ended[0], want)
				}
				var got [delivery.Channels][]user.ID
				for _, b := range y.stored {
					if len(b.Users) == 0 || len(b.Users) > delivery.BatchSize || !slices.IsSorted(b.Users) {
						t.Errorf("a batch of %d", len(b.Users))
					}
					got[b.Channel] = append(got[b.Channel], b.Users...)
				}
				for c := range got {
					slices.Sort(got[c])
				}
				if !slices.Equal(got[delivery.App], y.users) || len(got[delivery.Email]) != n/2 || len(slices.Compact(got[delivery.Email])) != n/2 {
					t.Errorf("%d users in %d parts: %d on app, %d on email", n, parts, len(got[delivery.App]), len(got[delivery.Email]))
				}
				woken := map[string]bool{}
				for _, run := range q.named(task.Deliver) {
					woken[run.ID()] = true
				}
				want := 0 // a task for each of a channel's first 64 batches, and then for every eighth
				var batches [delivery.Channels]int
				for _, b := range y.stored {
					if batches[b.Channel] < 64 || batches[b.Channel]%8 == 0 {
						want++
					}
					batches[b.Channel]++
				}
				if len(woken) != want {
					t.Errorf("%d batches, %d tasks, want %d", len(y.stored), len(woken), want)
				}
				if watch := q.named(task.Watch); len(watch) != 1 || !watch[0].At.Equal(time.Now().Add(10*time.Second)) {
					t.Errorf("watchdog %+v", watch)
				}
			})
		}
	}
}

func TestFireGoesOnWhereACrashLeftOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(5000), parts: 2}, &fakeQueue{}
		y.covered[delivery.App] = []delivery.Range{{From: 1, To: 1000}, {From: 2501, To: 3500}}
		musttest.OK(t, timersOn(y, q).Fire(t.Context(), 7))
		seen := map[user.ID]int{}
		for _, b := range y.stored {
			for _, id := range b.Users {
				if b.Channel == delivery.App {
					seen[id]++
				}
			}
		}
		for id := user.ID(1); id <= 5000; id++ {
			want := 1
			if id <= 1000 || id >= 2501 && id <= 3500 {
				want = 0
			}
			if seen[id] != want {
				t.Fatalf("user %d was cut %d times, want %d", id, seen[id], want)
			}
		}
		if y.ended[0][delivery.App] != 5000 {
			t.Errorf("counted %v; those who were cut before are reserved too", y.ended[0])
		}
	})
}

func TestATimerThatWakesEarlyWaits(t *testing.T) {
	for _, wait := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			y, q := &fakeSlotStore{slot: slotDueIn(wait), users: ids(10), parts: 1}, &fakeQueue{}
			start := time.Now()
			musttest.OK(t, timersOn(y, q).Fire(t.Context(), 7))
			if waited := time.Since(start); waited != wait || len(y.ended) != 1 || len(q.named(task.FireSlot)) != 0 {
				t.Errorf("%v early: fired after %v, ended %d times", wait, waited, len(y.ended))
			}
		})
	}
}

// TestTheDatabaseSaysWhenATimerIsEarly: however wrong this machine's clock is, the slot fires at
// its instant by the database's clock.
func TestTheDatabaseSaysWhenATimerIsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, offset := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
			y, q := &fakeSlotStore{users: ids(10), parts: 1, offset: offset}, &fakeQueue{}
			y.slot = slotDueIn(offset + 2*time.Second) // two seconds from now on the database's clock
			start := time.Now()
			musttest.OK(t, timersOn(y, q).Fire(t.Context(), 7))
			if waited := time.Since(start); waited != 2*time.Second || len(y.ended) != 1 {
				t.Errorf("clock off by %v: fired after %v, ended %d times", offset, waited, len(y.ended))
			}
		}
	})
}

func TestATimerFarTooEarlyIsQueuedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &fakeSlotStore{slot: slotDueIn(3*time.Second + time.Millisecond), users: ids(10), parts: 1}, &fakeQueue{}
		start := time.Now()
		musttest.OK(t, timersOn(y, q).Fire(t.Context(), 7))
		again := q.named(task.FireSlot)
		if time.Since(start) != 0 || len(y.stored) != 0 || len(again) != 1 {
			t.Fatalf("after %v: %d batches, queued %+v", time.Since(start), len(y.stored), q.tasks)
		}
		// Its own id is taken by the task that runs now.
		if again[0].ID() == task.Fire(7, time.Time{}).ID() || again[0].At.After(y.slot.DueAt) {
			t.Errorf("queued as %s at %v", again[0].ID(), again[0].At)
		}
	})
}

func TestShutdownWhileATimerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &fakeSlotStore{slot: slotDueIn(2 * time.Second)}, &fakeQueue{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := timersOn(y, q).Fire(ctx, 7); !errors.Is(err, context.DeadlineExceeded) || len(y.ended) != 0 {
			t.Errorf("%v, ended %d times", err, len(y.ended))
		}
	})
}

func TestALostLeaseStopsSilently(t *testing.T) {
	for _, at := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(200_000), parts: 4, loseAt: at}, &fakeQueue{}
			if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
				t.Errorf("lost at %d: %v", at, err)
			}
			if len(y.ended) != 0 || y.stores != at || len(q.named(task.Watch)) != 0 {
				t.Errorf("lost at %d: stored %d times, ended %d times, %d watchdogs", at, y.stores, len(y.ended), len(q.named(task.Watch)))
			}
		})
	}
}

// TestSlowReadingKeepsTheRightToCut: the right to cut is renewed during slow reading, even if all
// batches exist already and nothing is stored.
func TestSlowReadingKeepsTheRightToCut(t *testing.T) {
	for name, covered := range map[string][]delivery.Range{"nothing is covered": nil, "all is covered": {{From: 1, To: 100}}} {
		synctest.Test(t, func(t *testing.T) {
			y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(100), parts: 4}, &fakeQueue{}
			y.covered[delivery.App], y.covered[delivery.Email] = covered, covered
			y.onRead = func() {
				for range 40 {
					<-time.After(time.Second)
					y.mu.Lock()
					if !time.Now().Before(y.keptUntil) {
						t.Errorf("%s: the right to cut has ended while a part is read", name)
					}
					y.mu.Unlock()
				}
			}
			if err := timersOn(y, q).Fire(t.Context(), 7); err != nil || len(y.ended) != 1 || y.ended[0][delivery.App] != 100 {
				t.Errorf("%s: %v, ended %v", name, err, y.ended)
			}
		})
	}
}

// TestWhoLostTheRightStopsReading, long before it would store something.
func TestWhoLostTheRightStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(100), parts: 50}, &fakeQueue{}
		y.covered[delivery.App], y.covered[delivery.Email] = []delivery.Range{{From: 1, To: 100}}, []delivery.Range{{From: 1, To: 100}}
		reads := 0
		y.onRead = func() {
			<-time.After(time.Second)
			y.mu.Lock()
			defer y.mu.Unlock()
			reads++
			y.stolen = true
		}
		start := time.Now()
		if err := timersOn(y, q).Fire(t.Context(), 7); err != nil || len(y.ended) != 0 || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v, ended %d times", err, time.Since(start), len(y.ended))
		}
		<-time.After(time.Minute)
		y.mu.Lock()
		defer y.mu.Unlock()
		if reads > 10 {
			t.Errorf("%d parts were read", reads)
		}
	})
}

func TestFailuresOfTheStoreArePassedOn(t *testing.T) {
	broken := errors.New("disk full")
	for name, y := range map[string]*fakeSlotStore{
		"reading": {readErr: broken}, "storing": {storeErr: broken}, "ending": {endErr: broken}} {
		synctest.Test(t, func(t *testing.T) {
			y.slot, y.users, y.parts = slotDueIn(0), ids(3000), 3
			q := &fakeQueue{}
			if err := timersOn(y, q).Fire(t.Context(), 7); !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
			if name != "ending" && len(y.ended) != 0 {
				t.Errorf("%s failed and the slot was ended", name)
			}
			if len(q.named(task.Watch)) != 0 {
				t.Errorf("%s failed and nobody is told", name)
			}
		})
	}
}

// TestShutdownWhileCutting: a read that the shutdown interrupts must not be taken for a complete
// list of recipients.
func TestShutdownWhileCutting(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(5000), parts: 5, deaf: i%2 == 0}, &fakeQueue{}
			reads := 0
			y.onRead = func() {
				y.mu.Lock()
				defer y.mu.Unlock()
				if reads++; reads == 3 {
					cancel()
				}
			}
			if err := timersOn(y, q).Fire(ctx, 7); !errors.Is(err, context.Canceled) || len(y.ended) != 0 {
				t.Errorf("%v, ended %d times", err, len(y.ended))
			}
		})
	}
}

// TestAQueueThatIsAwayLosesNoBatch: during an outage of the queue batches are stored, and the
// sweep wakes workers for them later.
func TestAQueueThatIsAwayLosesNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &fakeSlotStore{slot: slotDueIn(0), users: ids(3000), parts: 1}, &fakeQueue{fail: errors.New("connection refused")}
		if err := timersOn(y, q).Fire(t.Context(), 7); !errors.Is(err, q.fail) {
			t.Errorf("the watchdog could not be queued and nobody is told: %v", err)
		}
		if len(y.ended) != 1 || len(y.stored) != 5 {
			t.Errorf("%d batches, ended %d times", len(y.stored), len(y.ended))
		}
	})
}
