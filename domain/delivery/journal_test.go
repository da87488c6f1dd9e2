package delivery

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// journalSender is a sender with a journal. It sends one message after the other on each of its
// connections. After its death no message arrives.
type journalSender struct {
	takes time.Duration
	free  chan struct{} // connections

	mu   sync.Mutex
	dead bool
	got  map[user.ID]int
}

func newJournalSender(connections int, takes time.Duration) *journalSender {
	return &journalSender{takes: takes, free: make(chan struct{}, connections), got: map[user.ID]int{}}
}

func (p *journalSender) Channel() Channel { return Email }
func (p *journalSender) ChunkSize() int   { return 50 }

func (p *journalSender) Send(ctx context.Context, ms []Message) []Result {
	p.free <- struct{}{}
	defer func() { <-p.free }()
	out := slices.Repeat([]Result{Unrecorded()}, len(ms))
	recorded := func(context.Context) error { return nil }
	for i, m := range ms {
		<-time.After(p.takes) // the bubble's clock
		if recorded(ctx) != nil {
			return out
		}
		if !p.take(m.To.ID) {
			return Repeat(Result{Detail: "dead"}, len(ms))
		}
		out[i] = Result{Status: Delivered}
		recorded = m.Journal.Accepted(m.To.ID)
	}
	_ = recorded(ctx)
	return out
}

func (p *journalSender) take(id user.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.got[id]++
	}
	return !p.dead
}

// repeated returns how many users got two messages. It fails if a user got more than two or none.
func (p *journalSender) repeated(t *testing.T, due []user.ID) (n int) {
	t.Helper()
	for _, id := range due {
		switch p.got[id] {
		case 1:
		case 2:
			n++
		default:
			t.Errorf("user %d was sent %d messages", id, p.got[id])
		}
	}
	return n
}

// TestAKillRepeatsOneMessagePerConnection: a worker dies at any moment of its dialogue with the
// provider and the database. The worker that takes its batch over repeats at most the message in
// flight on each connection. Recording takes some time.
func TestAKillRepeatsOneMessagePerConnection(t *testing.T) {
	most := 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			connections := 1 + rng.IntN(8)
			p := newJournalSender(connections, time.Duration(1+rng.IntN(30))*time.Millisecond)
			r := newFixture(t, newFakeStore(Email, 1000, time.Hour), newProvider(Email, 50, 0))
			r.Senders, r.Parallel[Email], r.provider.got = map[Channel]Sender{Email: p}, 1+rng.IntN(8), p.got
			store := &slowJournal{fakeStore: r.depot, takes: time.Duration(rng.IntN(40)) * time.Millisecond}
			r.Store = store
			kill := time.AfterFunc(time.Duration(rng.IntN(4000))*time.Millisecond, func() {
				p.mu.Lock()
				p.dead = true
				p.mu.Unlock()
				r.depot.steal()
			})
			defer kill.Stop()
			_ = r.run()
			<-time.After(time.Minute) // nothing of the dead worker is left
			p.mu.Lock()
			p.dead = false
			p.mu.Unlock()
			r.depot.release()
			for !r.depot.done {
				r.must()
			}
			r.want(map[Outcome]int{Sent: 1000})
			n := p.repeated(t, r.depot.due)
			if most = max(most, n); n > connections {
				t.Errorf("seed %d: %d messages were repeated over %d connections", seed, n, connections)
			}
		})
	}
	if most == 0 {
		t.Error("no kill hit a message under way")
	}
}

// slowJournal is a fakeStore that takes its time to record single messages.
type slowJournal struct {
	*fakeStore
	takes time.Duration
}

func (s *slowJournal) LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error) {
	l, err := s.fakeStore.LeaseNext(ctx, c, lasting)
	if err != nil {
		return nil, err
	}
	return slowAccepting{l, s.takes}, nil
}

type slowAccepting struct {
	Lease
	takes time.Duration
}

func (s slowAccepting) Accepted(ctx context.Context, id user.ID, via int64) error {
	<-time.After(s.takes) // the bubble's clock
	return s.Lease.Accepted(ctx, id, via)
}

// TestWhatAFormerRunHandedOver: recipients whose messages a former run handed to the provider are
// sent, whatever the outcomes of the other recipients are. This includes recipients that had
// failed before.
func TestWhatAFormerRunHandedOver(t *testing.T) {
	for _, stop := range []string{"", ReasonMoved, Held} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(Email, 100, time.Hour), newProvider(Email, 50, 0))
			r.depot.accepted = []user.ID{3, 5, 7}
			r.depot.exceptions[5] = Exception{UserID: 5, Outcome: Failed, Reason: ReasonProvider, Attempts: 2}
			r.depot.exceptions[7] = Exception{UserID: 7, Outcome: Expired, Reason: ReasonDeadline}
			r.depot.stop = stop
			if err := r.run(); err != nil {
				t.Fatal(err)
			}
			if stop == Held {
				r.depot.stop = ""
			}
			r.finish()
			want := map[Outcome]int{Sent: 99, Expired: 1}
			if stop == ReasonMoved {
				want = map[Outcome]int{Sent: 2, Skipped: 97, Expired: 1}
			}
			r.want(want)
			if e := r.depot.exceptions[5]; e.Outcome != Recovered {
				t.Errorf("%+v", e)
			}
			for _, id := range []user.ID{3, 5, 7} {
				if r.provider.got[id] != 0 {
					t.Errorf("user %d was sent the message again", id)
				}
			}
		})
	}
}

// TestTheJournalOutlastsADatabaseThatIsAway, and gives up with the lease.
func TestTheJournalOutlastsADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newJournalSender(2, 10*time.Millisecond)
		r := newFixture(t, newFakeStore(Email, 200, time.Hour), newProvider(Email, 50, 0))
		r.Senders, r.Parallel[Email], r.LeaseFor, r.provider.got = map[Channel]Sender{Email: p}, 4, time.Minute, p.got
		away := time.Now().Add(100 * time.Millisecond)
		r.depot.refuse = func(int) error {
			if since := time.Since(away); since > 0 && since < 20*time.Second {
				return errAway
			}
			return nil
		}
		r.must()
		r.want(map[Outcome]int{Sent: 200})
		r.once()
	})
}
