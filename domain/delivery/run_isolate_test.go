package delivery

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/user"
)

// fakeProvider accepts a call, refuses a call as a whole because of some messages in it, or makes
// its sender panic.
type fakeProvider struct {
	chunk  int
	bad    map[user.ID]bool // nil = all users
	own    map[user.ID]bool // refused each for itself, by a guard before the call
	panics bool

	mu    sync.Mutex
	calls int
	got   map[user.ID]int
}

var _ Sender = (*fakeProvider)(nil)

func (w *fakeProvider) Channel() Channel { return SMS }
func (w *fakeProvider) ChunkSize() int   { return w.chunk }

func (w *fakeProvider) Send(_ context.Context, ms []Message) []Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	for _, m := range ms {
		if w.own[m.To.ID] {
			continue
		}
		if w.bad != nil && !w.bad[m.To.ID] {
			continue
		}
		if w.panics {
			panic("no idea what to do with " + m.To.Phone)
		}
		return w.guarded(ms, Result{Status: Permanent, Detail: "the provider answered HTTP 400", Whole: true})
	}
	for _, m := range ms {
		if !w.own[m.To.ID] {
			w.got[m.To.ID]++
		}
	}
	return w.guarded(ms, Result{Status: Delivered})
}

// guarded answers the messages that a guard lets through.
func (w *fakeProvider) guarded(ms []Message, answer Result) []Result {
	results := Repeat(answer, len(ms))
	for n, m := range ms {
		if w.own[m.To.ID] {
			results[n] = Result{Status: Permanent, Reason: ReasonCountry}
		}
	}
	return results
}

func newFakeProvider(chunk int, bad ...user.ID) *fakeProvider {
	w := &fakeProvider{chunk: chunk, got: map[user.ID]int{}}
	if len(bad) > 0 {
		w.bad = map[user.ID]bool{}
	}
	for _, id := range bad {
		w.bad[id] = true
	}
	return w
}

// buys makes the fixture's batch of n users go to w.
func buys(t *testing.T, n int, w *fakeProvider) *fixture {
	r := newFixture(t, newFakeStore(SMS, n, time.Hour), newProvider(SMS, w.chunk, 0))
	r.Senders = map[Channel]Sender{SMS: w}
	r.provider.got = w.got
	return r
}

// TestOneMessageThatIsRefusedDoesNotKillItsCall: the provider refuses a call of a hundred
// messages as a whole because of one message. That message becomes dead and ninety-nine are sent,
// in a bounded number of calls. Each call is admitted.
func TestOneMessageThatIsRefusedDoesNotKillItsCall(t *testing.T) {
	for _, bad := range []user.ID{1, 50, 51, 77, 100} {
		synctest.Test(t, func(t *testing.T) {
			w := newFakeProvider(100, bad)
			r := buys(t, 100, w)
			r.must()
			r.want(map[Outcome]int{Sent: 99, Dead: 1})
			r.once()
			e := r.depot.exceptions[bad]
			want := e
			want.Outcome, want.Reason, want.Detail, want.Attempts = Dead, ReasonRefused, "the provider answered HTTP 400", 1
			if diff := cmp.Diff(want, e); diff != "" {
				t.Errorf("exception (-want +got):\n%s", diff)
			}
			if w.calls > 1+2*7 {
				t.Errorf("%d calls to find one message among a hundred", w.calls)
			}
			if r.gate.asked != w.calls || len(r.gate.bad) != 0 {
				t.Errorf("%d calls, %d admitted; failures of the provider: %v", w.calls, r.gate.asked, r.gate.bad)
			}
		})
	}
}

// TestMessagesRefusedForThemselves: in a call that is refused as a whole, the sender refuses some
// messages individually. They neither make the other messages dead nor count as the provider's
// answer.
func TestMessagesRefusedForThemselves(t *testing.T) {
	for _, own := range []map[user.ID]bool{{1: true}, {49: true, 50: true, 100: true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newFakeProvider(100, 51)
			w.own = own
			r := buys(t, 100, w)
			r.must()
			r.want(map[Outcome]int{Sent: 99 - len(own), Dead: 1 + len(own)})
			r.once()
			if e := r.depot.exceptions[51]; e.Reason != ReasonRefused || w.calls > 1+2*7 {
				t.Errorf("%+v after %d calls", e, w.calls)
			}
			for id := range own {
				if e := r.depot.exceptions[id]; e.Reason != ReasonCountry {
					t.Errorf("%+v", e)
				}
			}

			w = newFakeProvider(100) // that refuses everything
			w.own = own
			r = buys(t, 100, w)
			r.must()
			r.want(map[Outcome]int{Failed: 100 - len(own), Dead: len(own)})
		})
	}
}

// TestAMessageThatMakesItsSenderPanic: the message is dead with a reason of its own and the
// others are sent. The panic is reported once, without the text of the message.
func TestAMessageThatMakesItsSenderPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeProvider(100, 42, 43)
		w.panics = true
		r := buys(t, 250, w)
		var told []Crash
		r.Crashed = func(c Channel, crash Crash) { told = append(told, crash) }
		r.must()
		r.want(map[Outcome]int{Sent: 248, Dead: 2})
		r.once()
		e := r.depot.exceptions[42]
		if e.Reason != ReasonCrashed || e.Detail != "the sender failed on this message: a panic of type string" || e.Fingerprint == "" {
			t.Errorf("%+v", e)
		}
		if len(told) != 1 || !strings.Contains(string(told[0].Stack), "fakeProvider") || strings.Contains(told[0].What+string(told[0].Stack), "+86") {
			t.Errorf("told %d times: %+v", len(told), told)
		}
	})
}

// TestAMessageThatCannotBeMade stands alone as well.
func TestAMessageThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(Email, 100, time.Hour), newProvider(Email, 50, 0))
		r.OptOutURL = func(id user.ID, _ Channel) string {
			if id == 7 {
				panic(errors.New("seven"))
			}
			return ""
		}
		r.must()
		r.want(map[Outcome]int{Sent: 99, Dead: 1})
		r.once()
		if e := r.depot.exceptions[7]; e.Reason != ReasonCrashed {
			t.Errorf("%+v", e)
		}
	})
}

// TestAGuardThatPanics costs a second, and no process.
func TestAGuardThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 10, 0))
		asked := 0
		r.gate.admit = func(int) time.Duration {
			if asked++; asked == 1 {
				panic("admission")
			}
			return 0
		}
		// The gate holds its lock while it panics; a real admission does not.
		r.Admission = unlockedGate{r.gate}
		r.must()
		if r.depot.done || time.Until(r.depot.readyAt) > time.Second {
			t.Errorf("done %v, ready at %v", r.depot.done, r.depot.readyAt)
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
		r.once()
	})
}

type unlockedGate struct{ *gate }

func (u unlockedGate) Admit(_ context.Context, l Load) (time.Duration, string) {
	return u.gate.admit(l.Messages), ""
}

// TestAProviderThatRefusesEverything: a provider that refuses every call, for example because of
// a wrong address, has failed. There are no dead letters, and each chunk costs six calls.
func TestAProviderThatRefusesEverything(t *testing.T) {
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newFakeProvider(100)
			w.panics = panics
			r := buys(t, 300, w)
			r.must()
			r.want(map[Outcome]int{Failed: 300})
			if w.calls != 3*6 || len(r.gate.bad) != 3 || r.gate.good != 0 {
				t.Errorf("%d calls for three chunks, reported as failed %d, as good %d", w.calls, len(r.gate.bad), r.gate.good)
			}
			e := r.depot.exceptions[1]
			if e.Reason != ReasonProvider || e.Attempts != 1 || !strings.Contains(e.Detail, "every message is refused") {
				t.Errorf("%+v", e)
			}
			w.bad = map[user.ID]bool{} // put right
			r.finish()
			r.want(map[Outcome]int{Sent: 300})
			r.once()
		})
	}
}

// TestACampaignThatIsRefused: every message of a campaign is refused. The cause may be the text
// that staff wrote, so the channel is not paused, and the dead letters come after the usual
// number of attempts.
func TestACampaignThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeProvider(100)
		r := buys(t, 100, w)
		r.depot.subject.Kind = KindCampaign
		r.finish()
		r.want(map[Outcome]int{Dead: 100})
		if len(r.gate.bad) != 0 || w.calls > 8*6 {
			t.Errorf("%d calls, failures of the provider: %v", w.calls, r.gate.bad)
		}
	})
}

// TestHalvesWaitForTheirAdmission: a half that is not admitted in time is left to the next run.
// No message is sent twice.
func TestHalvesWaitForTheirAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeProvider(100, 3, 99)
		r := buys(t, 100, w)
		r.gate.admit = func(call int) time.Duration {
			if call%4 == 0 {
				return time.Minute
			}
			return 0
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 98, Dead: 2})
		r.once()
	})
}

// TestIsolationInAnyWeather: any messages may be bad, the database is away at times, workers
// stop, and admissions wait. Bad messages become dead, and the others are sent once. The
// unrecorded results never exceed one call for each parallel call.
func TestIsolationInAnyWeather(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var mu sync.Mutex
			roll := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rng.IntN(n)
			}
			users, chunk, parallel := 1+roll(300), 1+roll(100), 1+roll(4)
			w := newFakeProvider(chunk, 1_000_000)
			w.panics = roll(2) == 0
			for range roll(6) {
				w.bad[user.ID(1+roll(users))] = true
			}
			r := buys(t, users, w)
			r.Parallel[SMS], r.LeaseFor = parallel, time.Minute
			r.Random = func() float64 { return float64(roll(1000)) / 1000 }
			most := 0
			r.depot.refuse = func(int) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				most = max(most, len(w.got)-len(r.depot.sent))
				if roll(5) == 0 {
					return errAway
				}
				return nil
			}
			r.gate.admit = func(int) time.Duration { return time.Duration(max(0, roll(10)-7)) * time.Second }
			for !r.depot.done {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+roll(20_000))*time.Millisecond)
				_ = r.RunNext(ctx, SMS)
				cancel()
				<-time.After(time.Duration(1+roll(2000)) * time.Millisecond) // the bubble's clock
				if time.Since(r.depot.worthless) > time.Hour {
					t.Fatalf("seed %d: never done: %v", seed, r.depot.outcomes())
				}
			}
			r.once()
			for _, id := range r.depot.due {
				if dead := r.depot.exceptions[id].Outcome == Dead; dead != w.bad[id] || dead == (r.depot.sent[id] == 1) {
					t.Errorf("seed %d: user %d, bad %v: sent %d, %+v", seed, id, w.bad[id], r.depot.sent[id], r.depot.exceptions[id])
				}
			}
			if most > parallel*chunk {
				t.Errorf("seed %d: %d messages unrecorded, with %d calls of %d in parallel", seed, most, parallel, chunk)
			}
		})
	}
}

// TestTheNumberOfFurtherCallsIsBounded for any number of bad messages in a call.
func TestTheNumberOfFurtherCallsIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			n := 2 + rng.IntN(99)
			k := 1 + rng.IntN(min(n, 8))
			w := newFakeProvider(100, 1_000_000)
			for _, at := range rng.Perm(n)[:k] {
				w.bad[user.ID(at+1)] = true
			}
			r := buys(t, n, w)
			r.must()
			if most := 1 + 2*k*bits.Len(uint(n)) + 3; w.calls > most {
				t.Errorf("%d calls for %d bad among %d, want at most %d", w.calls, k, n, most)
			}
		})
	}
}
