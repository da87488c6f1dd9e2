// Package chaos_test proves by destruction that no reminder is lost. It runs the real programs
// with a real PostgreSQL and Redis and with providers that count, destroys processes and servers
// at random moments, and then accounts for every single reservation. docs/proof.md describes the
// assertions and the reasons for them.
//
// The seed of all random decisions is printed. DROPBELL_CHAOS_SEED repeats the decisions, but
// not the interleaving of the processes.
package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/asynq"
	"dropbell/lab/bench/stack"
)

// A size says how much is reserved and how much is destroyed.
type size struct {
	drops, users int // each user reserves three channels of each drop
	late         int // users per drop that reserve while the drop fires
	deadline     int // users of the drop whose providers are down past the opening

	booking time.Duration // within which the reservations arrive
	apart   time.Duration // between the instants at which the drops are due
	storm   time.Duration // within which things are destroyed

	webKills, workerKills int
	whileBooking          []trouble
	whileSending          []trouble

	hook, mail   [2]time.Duration // how long a webhook call and a mail take
	hooks, mails map[fault]int
	patience     time.Duration // of a client

	// servers starts the servers that the programs use; nil = [stack.Start].
	servers func(*system) (*stack.Stack, error)
}

var short = size{
	drops: 5, users: 400, late: 60, deadline: 160,
	booking: 7 * time.Second, apart: 3 * time.Second, storm: 20 * time.Second,
	webKills: 1, workerKills: 3,
	whileBooking: []trouble{restartPostgres},
	whileSending: []trouble{emptyRedis, killInPause, providersDown},
	hook:         [2]time.Duration{400 * time.Millisecond, 1500 * time.Millisecond},
	mail:         [2]time.Duration{10 * time.Millisecond, 50 * time.Millisecond},
	hooks:        map[fault]int{refuse: 2, throttle: 2, dropBefore: 2, dropAfter: 2, hang: 1, late: 1},
	mails:        map[fault]int{refuse: 3, throttle: 3, dropBefore: 3, dropAfter: 3, hang: 1, late: 1},
	patience:     8 * time.Second,
}

func TestChaosShort(t *testing.T) {
	t.Parallel()
	destroy(t, short)
}

// A system is everything that takes part.
type system struct {
	*size
	t      *testing.T
	ctx    context.Context
	seed   uint64
	start  time.Time
	stack  *stack.Stack
	sink   *sink
	fleet  *fleet
	crowd  *crowd
	queue  *asynq.Queue
	report report
	env    []string // of all programs

	mu        sync.Mutex
	outages   []span
	emptied   []span // when Redis may have lost accepted writes
	redisAway []span // when Redis was away, for whatever reason
}

// random returns a source of random numbers for one purpose. Other random decisions do not
// change its numbers.
func (w *system) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) }

// say logs a line with the seconds since the start.
func (w *system) say(format string, args ...any) {
	w.t.Helper()
	w.t.Logf("%6.1f s  %s", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...))
}

func destroy(t *testing.T, s size) {
	w := &system{size: &s, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.build()
	users := w.people()
	w.takeover(users[:100])
	drops := w.book(users)
	w.weather(drops, users)
	for _, d := range drops {
		w.settled(d, 4*time.Minute)
		w.account(d, everybodySent)
	}
	w.sample(drops, users)
	w.pastDeadline(users[:s.deadline])
	w.print()
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("DROPBELL_CHAOS_SEED")
	n, err := strconv.ParseUint(text, 10, 64)
	if text == "" {
		n, err = rand.Uint64()>>32, nil
	}
	if err != nil {
		t.Fatalf("DROPBELL_CHAOS_SEED: %v", err)
	}
	t.Logf("seed %d (repeat with DROPBELL_CHAOS_SEED=%d)", n, n)
	return n
}

func (w *system) build() {
	w.startServers()
	hooks := newDeck(w.random(1), 3, w.hooks)
	mails := newDeck(w.random(2), 40, w.mails)
	w.sink = newSink(w.t, *w.size, hooks, mails)
	w.fleet = launch(w.ctx, &fleet{t: w.t, stack: w.stack, sink: w.sink, env: w.env}, 2, 2)
	w.crowd = &crowd{newClient(w.t, w.fleet, w.patience), &ledger{fates: map[reservation]reservationState{}}, w.random(3)}
	var err error
	if w.queue, err = asynq.NewQueue(w.stack.RedisURL, quietLog()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.queue.Close() })
	w.say("two web and two worker processes are running")
}

// startServers starts the servers that the programs use, until the end of the test.
func (w *system) startServers() {
	start := w.servers
	if start == nil {
		start = func(w *system) (*stack.Stack, error) { return stack.StartNew(w.ctx) }
	}
	var err error
	if w.stack, err = start(w); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.stack.Close)
}

// people inserts users. Their ids have gaps, like the ids of a shop's users.
func (w *system) people() []int64 {
	rng := w.random(4)
	users := make([]int64, 0, w.users+w.late*w.drops)
	for id := int64(1000); len(users) < cap(users); id += 1 + rng.Int64N(9) {
		users = append(users, id)
	}
	rng.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	w.crowd.tell(w.ctx, users)
	w.copied(len(users), `select count(*) from users where id = any($1)`, users)
	return users
}

// copied waits until the database of the drops has n of the rows of home that the statement counts. With
// one database it has them at once.
func (w *system) copied(n int, count string, args ...any) {
	w.t.Helper()
	var has int
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, w.ctx.Done()) {
		if err := w.stack.SQL.QueryRow(w.ctx, count, args...).Scan(&has); err == nil && has == n {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d of %d rows came from home: %s", has, n, count)
		}
	}
}

// book lets all users reserve under faults. Then it moves the openings near, so that one drop
// after another becomes due. At each of these instants more users try to reserve in time.
func (w *system) book(users []int64) []*drop {
	var drops []*drop
	for i := range w.drops {
		drops = append(drops, w.crowd.publish(w.ctx, fmt.Sprintf("Chaos %d", i+1), 24*time.Hour))
	}
	end := w.begin(w.booking, w.webTroubles, w.troubles(w.whileBooking, 5))
	w.crowd.carryOut(w.ctx, w.crowd.spread(drops, users[:w.users], w.booking))
	end()
	w.say("%d reminders are acknowledged, %d cancelled, %d without an answer; %d repeated requests",
		w.crowd.ledger.count(accepted), w.crowd.ledger.count(withdrawn), w.crowd.ledger.count(unknown), w.crowd.repeats.Load())
	first := time.Now().Add(4 * time.Second).Truncate(time.Second)
	for i, d := range drops {
		w.crowd.move(w.ctx, d, first.Add(time.Duration(i)*w.apart))
	}
	return drops
}

// weather sends everything through the storm.
func (w *system) weather(drops []*drop, users []int64) {
	var late []visit
	for i, d := range drops {
		late = append(late, w.crowd.latecomers(d, users[w.users+i*w.late:][:w.late])...)
	}
	w.sink.hooks.open.Store(true)
	w.sink.mails.open.Store(true)
	end := w.begin(w.storm, w.workerTroubles, w.troubles(w.whileSending, 6), w.sameBatchTwice)
	w.crowd.carryOut(w.ctx, late)
	end()
	w.say("the storm is over")
}
