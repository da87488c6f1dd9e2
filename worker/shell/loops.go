package shell

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/pause"
)

// Rest is the pause between looks of the relay at an outbox that has been empty.
const Rest = 250 * time.Millisecond

// phase is the offset after a full second at which this process runs its periodic jobs. At a
// phase the relay wakes the process anyway, and no timer fires. The phase is random, so that not
// all processes run their jobs at the same time.
var phase = time.Duration(1+rand.N(3)) * Rest

// UntilNext returns the time until the next full period. If period is a whole number of seconds,
// the result is the time until [phase] after the next full period.
func UntilNext(now time.Time, period time.Duration) time.Duration {
	if period%time.Second == 0 {
		now = now.Add(-phase)
	}
	return now.Truncate(period).Add(period).Sub(now)
}

// Runner runs loops and sweeps.
type Runner struct {
	Log *slog.Logger
	// Ask answers which of the questions are true.
	Ask func(context.Context, []postgres.Question) ([]bool, error)
	// Known is called with the name of each job before it runs, and Failed after each failure.
	Known, Failed func(name string)
}

// Every returns a loop that runs job at once and then at each full period of the clock, so that
// the loops of one process wake it together. Failures of job are logged: a repeated error at
// most once a minute.
func (r Runner) Every(period time.Duration, name string, job func(context.Context) error) func(context.Context) error {
	attempt := r.Attempts(name, job)
	return func(ctx context.Context) error {
		for {
			attempt(ctx)
			if !pause.For(ctx, UntilNext(time.Now(), period)) {
				return nil
			}
		}
	}
}

// Attempts returns job as a function without an error. Failures are counted and logged; see
// [Runner.Every].
func (r Runner) Attempts(name string, job func(context.Context) error) func(context.Context) {
	r.Known(name)
	var lastText string
	var lastAt time.Time
	return func(ctx context.Context) {
		err := job(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		r.Failed(name)
		if err.Error() != lastText || time.Since(lastAt) > time.Minute {
			r.Log.Error("job failed", "job", name, "error", err)
			lastText, lastAt = err.Error(), time.Now()
		}
	}
}

// sweepTurn is how long the next sweep waits for a sweep that takes long.
const sweepTurn = 50 * time.Millisecond

// unaskedEvery is the number of turns after which all sweeps run, whatever the answers to their
// questions are. Sweeps also set gauges, and work that a question overlooks is only delayed.
const unaskedEvery = 10

// answersWithin is how long the database may take to answer all questions, including the wait
// for a connection. A lock on a table of one question blocks the whole statement; the limit
// keeps the lock from delaying sweeps that do not use this table.
const answersWithin = time.Second

// Sweeps returns a loop that runs, once per period and one after another, the sweeps that may
// have something to do. One statement asks the questions of all sweeps, so an idle process needs
// one database connection for a moment and wakes once. waits has the questions of each sweep by
// its name; a sweep without questions always runs. A sweep that takes longer than [sweepTurn]
// continues concurrently and is skipped until it has ended.
func (r Runner) Sweeps(period time.Duration, list []Sweep, waits map[string][]postgres.Question) func(context.Context) error {
	type running struct {
		attempt func(context.Context)
		busy    atomic.Bool
	}
	all := make([]*running, len(list))
	for i, c := range list {
		all[i] = &running{attempt: r.Attempts(c.Name, c.Do)}
	}
	ask := r.asks(list, waits)
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
				wait := time.NewTimer(sweepTurn)
				select {
				case <-done:
				case <-wait.C:
				}
				wait.Stop()
			}
		}
		for {
			turn()
			if !pause.For(ctx, UntilNext(time.Now(), period)) {
				return nil
			}
		}
	}
}

// asks returns a function that asks which sweeps may have something to do. If the database does
// not answer in time, all sweeps run: sweeps that can work do so, and the other sweeps report
// the error.
func (r Runner) asks(list []Sweep, waits map[string][]postgres.Question) func(context.Context) (wanted func(i int) bool) {
	var questions []postgres.Question
	asked := map[string][2]int{} // where the questions of a name are among all
	for _, c := range list {
		if _, known := asked[c.Name]; !known {
			first := len(questions)
			questions = append(questions, waits[c.Name]...)
			asked[c.Name] = [2]int{first, len(questions)}
		}
	}
	if len(questions) == 0 {
		return func(context.Context) func(int) bool { return func(int) bool { return true } }
	}
	var answers []bool // nil without an answer
	attempt := r.Attempts("questions", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		if answers, err = r.Ask(ctx, questions); err != nil {
			answers = nil
		}
		return err
	})
	return func(ctx context.Context) func(int) bool {
		attempt(ctx)
		return func(i int) bool {
			of := asked[list[i].Name]
			return answers == nil || of[0] == of[1] || slices.Contains(answers[of[0]:of[1]], true)
		}
	}
}
