package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/task"
)

// A Runner works off jobs of one kind.
type Runner interface {
	// Step does one bounded piece of work, about two seconds at most, and returns how
	// far the job is. It may run twice with the same cursor, even on two machines,
	// and one result is kept: its changes must be repeatable. An error that is a
	// fault which no repetition can change ends the job. After any other error the
	// step is tried again.
	Step(ctx context.Context, j Job) (Progress, error)
}

// A Lease is the exclusive right to work on a job, while it is renewed.
type Lease struct {
	Job
	Token string
	// Attempts is how many steps before this one failed in a row.
	Attempts int
}

// A Setback is the state of a job after a step that failed.
type Setback struct {
	Attempts int
	// Wait is how long until the next attempt, if the job continues.
	Wait time.Duration
	// Over ends the job for Reason.
	Over           bool
	Reason, Detail string
}

// WorkStore keeps jobs for workers. A call whose lease no longer holds returns
// [ErrLeaseLost].
type WorkStore interface {
	// LeaseJob takes the job if it is of one of the kinds and due, otherwise it
	// returns [ErrNoWork]. If a silent worker left the job, an attempt is counted.
	LeaseJob(ctx context.Context, id int64, kinds []string, lasting time.Duration) (Lease, error)
	// KeepJob renews the lease.
	KeepJob(ctx context.Context, l Lease, lasting time.Duration) error
	// SaveJob stores a step's progress in one transaction and renews the lease.
	SaveJob(ctx context.Context, l Lease, p Progress, lasting time.Duration) (Job, error)
	// SetBackJob stores that a step failed and gives the lease back.
	SetBackJob(ctx context.Context, l Lease, s Setback) error
	// ReleaseJob gives the lease back; the job may be taken at once.
	ReleaseJob(ctx context.Context, l Lease) error
	// DueJobs returns jobs of the kinds that could be taken, longest due first.
	DueJobs(ctx context.Context, kinds []string, limit int) ([]int64, error)
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Worker works jobs off. Any number of processes may.
type Worker struct {
	Store   WorkStore
	Queue   Queue
	Runners map[string]Runner
	// LeaseFor is how long a silent worker keeps its job.
	LeaseFor time.Duration
	// Turn is how long a worker works on one job before other jobs get their turn.
	Turn time.Duration
	Now  func() time.Time
	// Random spreads repetitions; in [0, 1).
	Random func() float64
	// Failed, if set, is called for every step that failed, for the log.
	Failed func(ctx context.Context, j Job, s Setback, err error)
}

// MaxAttempts is how many steps in a row may fail before the job has failed.
const MaxAttempts = 8

const (
	firstWait = time.Second
	maxWait   = time.Minute
	// stepFor bounds a step that hangs, saveFor the saving of its progress.
	stepFor = time.Minute
	saveFor = 20 * time.Second
)

// Run works on one job for a turn, or until the job is over. It returns nil if
// there is nothing to do for the job.
func (w *Worker) Run(ctx context.Context, id int64) error {
	lease, err := w.Store.LeaseJob(ctx, id, w.kinds(), w.LeaseFor)
	if errors.Is(err, ErrNoWork) {
		return nil
	}
	if err != nil {
		return err
	}
	if lease.Attempts >= MaxAttempts { // it may be the job that kills them
		return w.setBack(ctx, lease, Setback{Attempts: lease.Attempts, Over: true, Reason: ErrWorkersDied.Code, Detail: ErrWorkersDied.Text}, ErrWorkersDied)
	}
	err = w.turn(ctx, lease)
	if errors.Is(err, ErrLeaseLost) {
		return nil // the worker that took the job over continues it, or the job was cancelled
	}
	return err
}

func (w *Worker) turn(ctx context.Context, lease Lease) error {
	ends := w.Now().Add(w.Turn)
	for {
		p, err := w.step(ctx, lease)
		if errors.Is(err, ErrLeaseLost) {
			return err
		}
		if err != nil {
			return w.setBack(ctx, lease, w.setback(lease, err), err)
		}
		saved, err := w.save(ctx, lease, p)
		if err != nil || saved.State.Over() {
			return err
		}
		lease.Job, lease.Attempts = saved, 0
		if ctx.Err() != nil || !w.Now().Before(ends) {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
			defer cancel()
			return w.Store.ReleaseJob(end, lease)
		}
	}
}

// step runs one step to its end even while the process shuts down, and renews the
// lease meanwhile. A lost lease cuts the step off.
func (w *Worker) step(ctx context.Context, lease Lease) (p Progress, err error) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepFor)
	defer cancel()
	lost, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		w.keep(work, lease, func(err error) {
			lost <- err
			cancel()
		})
	}()
	p, err = w.guarded(work, lease.Job)
	cancel()
	<-stopped
	select {
	case e := <-lost:
		return p, e
	default:
		return p, err
	}
}

// keep renews the lease until ctx ends. A renewal that fails for a reason other
// than a lost lease is tried again: the save decides whether the lease still holds.
func (w *Worker) keep(ctx context.Context, lease Lease, lose func(error)) {
	tick := time.NewTicker(max(w.LeaseFor/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := w.Store.KeepJob(ctx, lease, w.LeaseFor); errors.Is(err, ErrLeaseLost) && ctx.Err() == nil {
				lose(err)
				return
			}
		}
	}
}

// guarded turns a runner's panic into an error, so that one bad job does not end
// other jobs.
func (w *Worker) guarded(ctx context.Context, j Job) (p Progress, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("runner of %s panicked: %v", j.Kind, r)
		}
	}()
	return w.Runners[j.Kind].Step(ctx, j)
}

func (w *Worker) save(ctx context.Context, lease Lease, p Progress) (Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	if p.Finished && p.Total == 0 { // of a file whose rows were not counted before
		p.Total = p.Done + p.Failed
	}
	return w.Store.SaveJob(ctx, lease, p, w.LeaseFor)
}

func (w *Worker) setBack(ctx context.Context, lease Lease, s Setback, cause error) error {
	if w.Failed != nil {
		w.Failed(ctx, lease.Job, s, cause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	return w.Store.SetBackJob(ctx, lease, s)
}

// setback decides the state of the job after err.
func (w *Worker) setback(l Lease, err error) Setback {
	s := Setback{Attempts: l.Attempts + 1, Reason: fault.CodeOf(err), Detail: faultText(err)}
	switch fault.KindOf(err) {
	case 0:
		s.Reason = "internal"
	case fault.Invalid, fault.NotFound, fault.Conflict, fault.Denied, fault.Unauthenticated:
		s.Over = true
	}
	s.Over = s.Over || s.Attempts >= MaxAttempts
	s.Wait = backoff(s.Attempts, w.Random())
	if after, ok := errors.AsType[*fault.RetryAfter](err); ok {
		s.Wait = max(s.Wait, min(after.After, maxWait))
	}
	return s
}

// faultText returns the fault's own text, without the cause that an adapter added.
// The text of an error that is no fault belongs in the log.
func faultText(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Text
	}
	if f, ok := errors.AsType[*fault.Fields](err); ok {
		return f.Error()
	}
	return ""
}

// backoff returns 1, 2, 4, … seconds up to a minute, shortened at random by up to a
// quarter.
func backoff(attempts int, random float64) time.Duration {
	wait := maxWait
	if attempts >= 1 && attempts <= 6 {
		wait = min(maxWait, firstWait<<(attempts-1))
	}
	return wait - time.Duration(random*float64(wait)/4)
}

// sweepBatch is how many due jobs one sweep queues.
const sweepBatch = 50

// Sweep queues every job that could be taken: new jobs whose event was lost, jobs
// of silent workers, jobs that waited, and jobs whose turn is over. It does not
// depend on the contents of the queue.
func (w *Worker) Sweep(ctx context.Context) error {
	due, err := w.Store.DueJobs(ctx, w.kinds(), sweepBatch)
	if err != nil || len(due) == 0 {
		return err
	}
	tasks := make([]task.Task, len(due))
	for i, id := range due {
		// The key contains the second: the key of a task whose worker died stays
		// taken for minutes. A second task for the same job finds the job leased.
		tasks[i] = task.RunJob(id).Again(w.Now().Truncate(time.Second).Format("150405"))
	}
	return w.Queue.Enqueue(ctx, tasks...)
}

func (w *Worker) kinds() []string { return slices.Sorted(maps.Keys(w.Runners)) }
