package rehearsal

import (
	"context"
	"errors"
	"sync"
	"time"

	"dropbell/domain/detach"
)

// ErrLost says that another worker has ended the rehearsal, because this one did not renew its lease.
var ErrLost = errors.New("the lease of the rehearsal is lost")

// RunStore keeps what runs.
type RunStore interface {
	// Take leases a rehearsal that is asked for, or returns false if there is none. It first ends, as failed, a
	// rehearsal whose worker did not renew its lease.
	Take(ctx context.Context, token string, lease time.Duration) (Rehearsal, bool, error)
	// Note stores the progress and renews the lease, or returns [ErrLost].
	Note(ctx context.Context, id int64, token string, p Progress, lease time.Duration) error
	// Began stores the share and the opening.
	Began(ctx context.Context, id int64, token string, sharePermille int64, opensAt time.Time) error
	// End ends the rehearsal with its report; a nil report means that it failed, for the reason detail.
	End(ctx context.Context, id int64, token string, report *Report, detail string) error
	// Remains returns a rehearsal that has ended and whose world is to be removed now: at once if it
	// failed, otherwise kept after its end. 0 = there is none.
	Remains(ctx context.Context, kept time.Duration) (int64, error)
	// Removed records that the world is gone.
	Removed(ctx context.Context, id int64) error
}

// A Stage runs rehearsals in worlds of their own.
type Stage interface {
	// Play runs the rehearsal to its end. It tells its progress, and begins once its share and opening are known.
	Play(ctx context.Context, r Rehearsal, tell func(Progress), began func(sharePermille int64, opensAt time.Time) error) (Report, error)
	// Remove removes the world of a rehearsal, whether it was made completely or not. It may be repeated.
	Remove(ctx context.Context, id int64) error
}

// A Runner runs rehearsals.
type Runner struct {
	Store RunStore
	Stage Stage
	// Token names this process.
	Token string
	// Lease is how long a process may be silent; Every is how often it stores its progress.
	Lease, Every time.Duration
	// Failed, if set, is called with why a rehearsal failed.
	Failed func(id int64, err error)
}

// Step runs a rehearsal that is asked for, if there is one, and removes worlds that have had their time. Any process
// may call it, any number of times.
func (r *Runner) Step(ctx context.Context) error {
	if err := r.remove(ctx); err != nil {
		return err
	}
	one, ok, err := r.Store.Take(ctx, r.Token, r.Lease)
	if err != nil || !ok {
		return err
	}
	report, err := r.play(ctx, one)
	if errors.Is(err, ErrLost) {
		return nil // its end is stored
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	if err != nil {
		if r.Failed != nil {
			r.Failed(one.ID, err)
		}
		return r.Store.End(ctx, one.ID, r.Token, nil, reason(err))
	}
	return r.Store.End(ctx, one.ID, r.Token, &report, "")
}

// reason is what staff are told of a failure.
func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return Interrupted
	}
	return "an error ended it; the log of the worker has the details"
}

func (r *Runner) remove(ctx context.Context) error {
	for {
		id, err := r.Store.Remains(ctx, Kept)
		if err != nil || id == 0 {
			return err
		}
		if err := r.Stage.Remove(ctx, id); err != nil {
			return err
		}
		if err := r.Store.Removed(ctx, id); err != nil {
			return err
		}
	}
}

// play runs one rehearsal and meanwhile stores its progress. The rehearsal ends when its lease is lost.
func (r *Runner) play(ctx context.Context, one Rehearsal) (report Report, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	latest := Progress{Step: Preparing}
	tell := func(p Progress) { mu.Lock(); latest = p; mu.Unlock() }
	var noting sync.WaitGroup
	noting.Go(func() {
		again := time.NewTicker(r.Every)
		defer again.Stop()
		for {
			mu.Lock()
			p := latest
			mu.Unlock()
			if err := r.Store.Note(ctx, one.ID, r.Token, p, r.Lease); errors.Is(err, ErrLost) {
				cancel(ErrLost)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
	})
	report, err = r.Stage.Play(ctx, one, tell, func(share int64, opensAt time.Time) error {
		return r.Store.Began(ctx, one.ID, r.Token, share, opensAt)
	})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrLost) {
		err = ErrLost
	}
	cancel(nil)
	noting.Wait()
	return report, err
}
