package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
)

// run works until ctx ends, then finishes the work in progress and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("worker", getenv, out)
	if err != nil {
		return err
	}
	p, err := build(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serve(ctx)
}

// serve runs every loop until ctx ends or one of them fails for good.
func (p *program) serve(ctx context.Context) error {
	if warning, err := p.queue.CheckRedis(ctx); err != nil {
		p.Log.Warn(redis.Trouble(err)+"; going on, the database keeps what is due", "error", err)
	} else if warning != "" {
		p.Log.Warn(warning)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.life = ctx
	var loops sync.WaitGroup
	start := func(name string, loop func(context.Context) error) {
		loops.Go(func() {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start("operations server", p.serveHTTP)
	if !p.awaitSchema(ctx) || !p.routes.await(ctx) {
		loops.Wait()
		return causeOf(ctx)
	}
	// Before any message goes out, so that the other workers leave this one its part of limits.
	if err := p.processes.Enter(ctx); err != nil {
		p.Log.Warn("this worker is not counted among those that share limits yet", "error", err)
	}
	start("processes", func(ctx context.Context) error { p.processes.Run(ctx); return nil })
	start("erasures", p.every(app.EraseEvery, "erasures", p.Erased.Look))
	start("addresses", p.sealAddresses)
	p.startRoles(start)
	p.Log.Info("worker is running", "channels", p.channelNames(), "roles", p.Config.WorkerRoles)
	loops.Wait()
	if err := causeOf(ctx); err != nil {
		return err
	}
	p.Log.Info("worker has stopped")
	return nil
}

// causeOf returns why ctx ended, nil if it was ended on purpose.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serveTasks starts the queue's servers as soon as Redis answers and drains
// them at the end.
func (p *program) serveTasks(ctx context.Context) error {
	for {
		err := p.servers.Start()
		if err == nil {
			break
		}
		p.Log.Warn("task servers cannot start yet", "error", err)
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
	<-ctx.Done()
	p.servers.Shutdown()
	return nil
}

// every returns a loop that runs job at once and then at each full period of
// the clock: loops of one process wake it together. Its failures are logged, at
// most one line per kind of trouble and minute.
func (p *program) every(period time.Duration, name string, job func(context.Context) error) func(context.Context) error {
	attempt := p.attempts(name, job)
	return func(ctx context.Context) error {
		for {
			attempt(ctx)
			if !sleep(ctx, untilNext(time.Now(), period)) {
				return nil
			}
		}
	}
}

// phase is how long after a full second this process does what it does every
// few seconds: when the relay looks as well, not when timers fire, and not with all of the
// other processes.
var phase = time.Duration(1+rand.N(3)) * relayRest

// untilNext returns how long it is until the next full period, or, if that is
// whole seconds, until the phase after it.
func untilNext(now time.Time, period time.Duration) time.Duration {
	if period%time.Second == 0 {
		now = now.Add(-phase)
	}
	return now.Truncate(period).Add(period).Sub(now)
}

// attempts returns job as something that never fails: failures are counted and
// logged, see [program.every].
func (p *program) attempts(name string, job func(context.Context) error) func(context.Context) {
	p.metrics.failures.WithLabelValues(name) // from 0, so that alerts see the first one
	var lastText string
	var lastAt time.Time
	return func(ctx context.Context) {
		err := job(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		p.metrics.jobFailed(name)
		if err.Error() != lastText || time.Since(lastAt) > time.Minute {
			p.Log.Error("job failed", "job", name, "error", err)
			lastText, lastAt = err.Error(), time.Now()
		}
	}
}

// A chore is a short job of [program.chores].
type chore struct {
	name string
	do   func(context.Context) error
	// waits asks whether there may be anything to do; without questions there always may.
	waits []postgres.Question
}

// choreTurn is how long the next chore waits for one that takes long.
const choreTurn = 50 * time.Millisecond

// unaskedEvery is after how many turns all chores are done whatever the answers are:
// they also set gauges, and a question that overlooks something delays it only.
const unaskedEvery = 10

// answersWithin is how long the database may take to answer all questions, the wait for
// a connection included: a lock on one of their tables holds up the statement, and may
// not hold up the chores that have nothing to do with that table.
const answersWithin = time.Second

// chores returns a loop that does each period, one after the other, the chores that may
// have something to do: one statement asks that for all of them, so that with nothing
// to do they need one database connection for a moment and wake the process once. A
// chore that takes longer than [choreTurn] goes on beside the others, and is left out
// until it is done.
func (p *program) chores(period time.Duration, list []chore) func(context.Context) error {
	type running struct {
		attempt func(context.Context)
		busy    atomic.Bool
	}
	all := make([]*running, len(list))
	for i, c := range list {
		all[i] = &running{attempt: p.attempts(c.name, c.do)}
	}
	ask := p.asks(list)
	return func(ctx context.Context) error {
		var begun sync.WaitGroup
		defer begun.Wait()
		turns := 0
		turn := func() {
			wanted := func(int) bool { return true }
			if turns++; turns%unaskedEvery != 1 {
				wanted = ask(ctx)
			}
			for i, r := range all {
				if !wanted(i) || !r.busy.CompareAndSwap(false, true) {
					continue
				}
				done := make(chan struct{})
				begun.Go(func() {
					defer close(done)
					defer r.busy.Store(false)
					r.attempt(ctx)
				})
				wait := time.NewTimer(choreTurn)
				select {
				case <-done:
				case <-wait.C:
				}
				wait.Stop()
			}
		}
		for {
			turn()
			if !sleep(ctx, untilNext(time.Now(), period)) {
				return nil
			}
		}
	}
}

// asks returns what asks which chores may have something to do. If the database does
// not answer in time all of them may: those that can do their work do it, and the others
// meet the error.
func (p *program) asks(list []chore) func(context.Context) (wanted func(i int) bool) {
	var questions []postgres.Question
	first := make([]int, len(list)+1)
	for i, c := range list {
		questions = append(questions, c.waits...)
		first[i+1] = len(questions)
	}
	if len(questions) == 0 {
		return func(context.Context) func(int) bool { return func(int) bool { return true } }
	}
	var answers []bool // nil without an answer
	attempt := p.attempts("questions", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		if answers, err = p.DB.Ask(ctx, questions); err != nil {
			answers = nil
		}
		return err
	})
	return func(ctx context.Context) func(int) bool {
		attempt(ctx)
		return func(i int) bool {
			return answers == nil || len(list[i].waits) == 0 || slices.Contains(answers[first[i]:first[i+1]], true)
		}
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *program) channelNames() []string {
	var names []string
	for _, c := range delivery.AllChannels() {
		if p.delivery.Senders[c] != nil && p.serves(c) {
			names = append(names, c.String())
		}
	}
	return names
}
