package chaos_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/task"
)

// A trouble is something that happens to a server or a provider.
type trouble struct {
	name string
	do   func(w *system) error
}

var (
	restartPostgres = trouble{"PostgreSQL restarts", func(w *system) error {
		defer w.outage()()
		return w.stack.Postgres.Restart(w.ctx)
	}}
	crashPostgres = trouble{"PostgreSQL crashes and recovers", func(w *system) error {
		defer w.outage()()
		if err := w.stack.Postgres.Kill(); err != nil {
			return err
		}
		return w.stack.Postgres.Restart(w.ctx)
	}}
	pausePostgres = trouble{"PostgreSQL hangs for 5 s", func(w *system) error {
		defer w.outage()()
		w.stack.Postgres.Pause()
		wait(5*time.Second, w.ctx.Done())
		w.stack.Postgres.Resume()
		return nil
	}}
	// The pause is longer than any worker's lease: no lease can be extended, although no worker
	// is dead.
	longPause = trouble{"PostgreSQL hangs for 12 s", func(w *system) error {
		defer w.outage()()
		w.stack.Postgres.Pause()
		wait(12*time.Second, w.ctx.Done())
		w.stack.Postgres.Resume()
		return nil
	}}
	// For a while no outcome can be recorded. Then the worker with the unrecorded outcomes is
	// killed.
	killInPause = trouble{"PostgreSQL hangs for 5 s, and a worker is killed meanwhile", func(w *system) error {
		defer w.outage()()
		w.stack.Postgres.Pause()
		wait(4*time.Second, w.ctx.Done())
		w.killAny(w.fleet.workers, []time.Time{time.Now()}, w.random(12))
		wait(time.Second, w.ctx.Done())
		w.stack.Postgres.Resume()
		return nil
	}}
	haltWorker = trouble{"a worker is halted for 13 s", func(w *system) error {
		name, ok := w.fleet.halt(w.fleet.workers[0], beyondLeases, w.ctx.Done())
		if !ok {
			name, ok = w.fleet.halt(w.fleet.workers[1], beyondLeases, w.ctx.Done())
		}
		if !ok {
			return errors.New("there was none")
		}
		w.say("%s goes on", name)
		return nil
	}}
	emptyRedis = trouble{"Redis restarts empty", func(w *system) error { return w.stack.Redis.Restart(w.ctx, true) }}
	// Programs that are started meanwhile have to wait for it.
	stopRedis = trouble{"Redis is gone for 10 s, and processes start meanwhile", func(w *system) error {
		if err := w.stack.Redis.Kill(); err != nil {
			return err
		}
		w.killAny(w.fleet.workers, []time.Time{time.Now()}, w.random(13))
		w.killAny(w.fleet.webs, []time.Time{time.Now()}, w.random(14))
		wait(10*time.Second, w.ctx.Done())
		return w.stack.Redis.Restart(w.ctx, false)
	}}
	providersDown = trouble{"both providers are down for 4 s", func(w *system) error {
		w.sink.hooks.down.Store(true)
		w.sink.mails.down.Store(true)
		wait(4*time.Second, w.ctx.Done())
		w.sink.hooks.down.Store(false)
		w.sink.mails.down.Store(false)
		return nil
	}}
)

// A span is a time during which nothing could be recorded.
type span struct{ from, to time.Time }

// outage notes that PostgreSQL is away until the function returned is called.
func (w *system) outage() (end func()) {
	from := time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outages = append(w.outages, span{from, time.Now()})
	}
}

// away returns for how long PostgreSQL was away between the two instants.
func (w *system) away(from, to time.Time) (sum time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.outages {
		begin, end := o.from, o.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}

// A lane is one sequence of troubles. If a lane would go on for ever, it ends when over is
// closed; other lanes run to their end.
type lane func(span time.Duration, over <-chan struct{})

// begin starts the lanes. The returned function waits for the end of the span and of every lane.
func (w *system) begin(span time.Duration, lanes ...lane) (end func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() { l(span, over) })
	}
	began := time.Now()
	return func() {
		wait(time.Until(began.Add(span)), w.ctx.Done())
		close(over)
		all.Wait()
	}
}

// moments divides the span into n parts and returns a random instant in each.
func moments(rng *rand.Rand, span time.Duration, n int) []time.Time {
	now, part := time.Now(), span/time.Duration(max(1, n))
	list := make([]time.Time, n)
	for i := range list {
		list[i] = now.Add(time.Duration(i)*part + time.Duration(rng.Int64N(int64(part))))
	}
	return list
}

// troubles runs the troubles one after another, in random order.
func (w *system) troubles(list []trouble, purpose uint64) lane {
	return func(span time.Duration, _ <-chan struct{}) {
		rng := w.random(purpose)
		at := moments(rng, span, len(list))
		for i, n := range rng.Perm(len(list)) {
			wait(time.Until(at[i]), w.ctx.Done())
			w.say("%s", list[n].name)
			if err := list[n].do(w); err != nil {
				w.t.Errorf("%s: %v", list[n].name, err)
			}
		}
	}
}

func (w *system) webTroubles(span time.Duration, _ <-chan struct{}) {
	w.killAny(w.fleet.webs, moments(w.random(7), span, w.webKills), w.random(8))
}

func (w *system) workerTroubles(span time.Duration, _ <-chan struct{}) {
	w.killAny(w.fleet.workers, moments(w.random(9), span, w.workerKills), w.random(10))
}

// killAny kills a random one of the processes at each of the instants. Up to two seconds later
// another process takes its place.
func (w *system) killAny(among []*member, at []time.Time, rng *rand.Rand) {
	var restarts sync.WaitGroup
	for _, instant := range at {
		wait(time.Until(instant), w.ctx.Done())
		victim, other := rng.IntN(len(among)), rng.IntN(2000)
		name, ok := w.fleet.kill(among[victim])
		if !ok { // it is down already
			victim = (victim + 1) % len(among)
			name, ok = w.fleet.kill(among[victim])
		}
		if !ok {
			w.t.Errorf("nothing was left to kill")
			continue
		}
		w.say("kill -9 %s", name)
		restarts.Go(func() {
			wait(time.Duration(other)*time.Millisecond, w.ctx.Done())
			w.fleet.start(among[victim])
		})
	}
	restarts.Wait()
}

// sameBatchTwice repeatedly queues every unfinished batch twice, under names that are new to the
// queue.
func (w *system) sameBatchTwice(_ time.Duration, over <-chan struct{}) {
	n := 0
	repeatedly(w.ctx, 500*time.Millisecond, over, func() {
		n++
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		defer cancel()
		rows, err := w.stack.SQL.Query(ctx, `select id, channel from batches where state <> 'done'`)
		if err == nil {
			var id int64
			var c delivery.Channel
			for rows.Next() && rows.Scan(&id, &c) == nil {
				t := task.Run(id, c.String(), 0, time.Time{})
				// A server that is down is tested by the other lane.
				if w.queue.Enqueue(ctx, t.Again("one"+strconv.Itoa(n)), t.Again("two"+strconv.Itoa(n))) == nil {
					w.report.twice.Add(1)
				}
			}
			rows.Close()
		}
	})
}

// discardLog drops a client library's log lines about a server that was stopped
// on purpose.
type discardLog struct{}

func (discardLog) Printf(context.Context, string, ...any) {}

func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
