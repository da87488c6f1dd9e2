package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/task"
)

// fakeStore is a store of one job in memory, for tests that need no database.
// Leases are tested against PostgreSQL.
type fakeStore struct {
	mu       sync.Mutex
	lease    Lease
	kept     int
	lost     bool
	released bool
	setbacks []Setback
	saves    int
	total    int64
}

func (d *fakeStore) LeaseJob(context.Context, int64, []string, time.Duration) (Lease, error) {
	return d.lease, nil
}

func (d *fakeStore) KeepJob(context.Context, Lease, time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept++
	if d.lost {
		return ErrLeaseLost
	}
	return nil
}

func (d *fakeStore) SaveJob(_ context.Context, _ Lease, p Progress, _ time.Duration) (Job, error) {
	d.saves++
	j := d.lease.Job
	j.State, j.Done, j.Cursor = Running, p.Done, p.Cursor
	d.total = p.Total
	if p.Finished {
		j.State = Done
	}
	return j, nil
}

func (d *fakeStore) SetBackJob(_ context.Context, _ Lease, s Setback) error {
	d.setbacks = append(d.setbacks, s)
	return nil
}

func (d *fakeStore) ReleaseJob(context.Context, Lease) error { d.released = true; return nil }
func (d *fakeStore) DueJobs(context.Context, []string, int) ([]int64, error) {
	return []int64{7, 8}, nil
}

type fakeQueue struct{ ids []string }

func (l *fakeQueue) Enqueue(_ context.Context, tasks ...task.Task) error {
	for _, t := range tasks {
		l.ids = append(l.ids, t.ID())
	}
	return nil
}

type stepper func(ctx context.Context, j Job) (Progress, error)

func (s stepper) Step(ctx context.Context, j Job) (Progress, error) { return s(ctx, j) }

func workerAt(d *fakeStore, step stepper) *Worker {
	d.lease.Kind = "x"
	return &Worker{Store: d, Queue: &fakeQueue{}, Runners: map[string]Runner{"x": step}, LeaseFor: 9 * time.Second, Turn: 30 * time.Second,
		Now: time.Now, Random: func() float64 { return 0 }}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestLongStepKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeStore{}
		w := workerAt(d, func(ctx context.Context, _ Job) (Progress, error) {
			return Progress{Finished: true}, wait(ctx, 31*time.Second)
		})
		if err := w.Run(t.Context(), 1); err != nil || d.kept != 10 || d.saves != 1 {
			t.Errorf("kept %d times, saved %d: %v", d.kept, d.saves, err)
		}
	})
}

func TestLostLeaseCutsTheStepOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, began := &fakeStore{lost: true}, time.Now()
		w := workerAt(d, func(ctx context.Context, _ Job) (Progress, error) { return Progress{}, wait(ctx, time.Minute) })
		if err := w.Run(t.Context(), 1); err != nil || d.saves != 0 || len(d.setbacks) != 0 {
			t.Errorf("saved %d, set back %v: %v", d.saves, d.setbacks, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it went on for %v", took)
		}
	})
}

func TestStepThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeStore{}
		w := workerAt(d, func(ctx context.Context, _ Job) (Progress, error) { return Progress{}, wait(ctx, time.Hour) })
		if err := w.Run(t.Context(), 1); err != nil || len(d.setbacks) != 1 || d.setbacks[0].Over {
			t.Errorf("%+v: %v", d.setbacks, err)
		}
	})
}

// How many there are is known at the end, if not before.
func TestTotalOfWhatNobodyCounted(t *testing.T) {
	for _, c := range []struct {
		last Progress
		want int64
	}{
		{Progress{Done: 40, Failed: 2}, 0},
		{Progress{Done: 40, Failed: 2, Finished: true}, 42},
		{Progress{Done: 40, Failed: 2, Total: 50, Finished: true}, 50}, // the rest was given up
	} {
		d := &fakeStore{}
		if _, err := workerAt(d, nil).save(t.Context(), d.lease, c.last); err != nil || d.total != c.want {
			t.Errorf("%+v: total %d: %v", c.last, d.total, err)
		}
	}
}

// Shutdown lets the step in hand finish, saves it and gives the job back.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		d := &fakeStore{}
		w := workerAt(d, func(step context.Context, _ Job) (Progress, error) {
			stop()
			return Progress{Done: 1}, wait(step, time.Second)
		})
		if err := w.Run(ctx, 1); err != nil || d.saves != 1 || !d.released || len(d.setbacks) != 0 {
			t.Errorf("saved %d, released %v, set back %v: %v", d.saves, d.released, d.setbacks, err)
		}
	})
}

func TestEverybodyHasTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeStore{}
		w := workerAt(d, func(ctx context.Context, _ Job) (Progress, error) { return Progress{}, wait(ctx, 2*time.Second) })
		if err := w.Run(t.Context(), 1); err != nil || d.saves != 15 || !d.released {
			t.Errorf("saved %d, released %v: %v", d.saves, d.released, err)
		}
	})
}

func TestWhatAnErrorMeans(t *testing.T) {
	fields := &fault.Fields{}
	fields.Add("column", "rule.required", "is required")
	for _, c := range []struct {
		err    error
		over   bool
		reason string
		detail string
		wait   time.Duration
	}{
		{errors.New("password=secret"), false, "internal", "", time.Second},
		{fmt.Errorf("%w (dial tcp 10.0.0.1)", fault.New(fault.Unavailable, "overloaded", "not now")), false, "overloaded", "not now", time.Second},
		{&fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "slowly"), After: 20 * time.Second}, false, "rate_limited", "slowly", 20 * time.Second},
		{&fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "slowly"), After: time.Hour}, false, "rate_limited", "slowly", time.Minute},
		{ErrUploadNotFound, true, "upload_not_found", ErrUploadNotFound.Text, time.Second},
		{staff.ErrForbidden, true, "forbidden", staff.ErrForbidden.Text, time.Second},
		{fields, true, "invalid_request", "column: is required", time.Second},
	} {
		d := &fakeStore{}
		var told error
		w := workerAt(d, func(context.Context, Job) (Progress, error) { return Progress{}, c.err })
		w.Failed = func(_ context.Context, _ Job, _ Setback, err error) { told = err }
		if err := w.Run(t.Context(), 1); err != nil || len(d.setbacks) != 1 {
			t.Fatalf("%v: %v", c.err, err)
		}
		if got := d.setbacks[0]; got != (Setback{Attempts: 1, Over: c.over, Reason: c.reason, Detail: c.detail, Wait: c.wait}) || !errors.Is(told, c.err) {
			t.Errorf("%v: %+v, told %v", c.err, got, told)
		}
	}
}

func TestPanicIsAnAttempt(t *testing.T) {
	d := &fakeStore{}
	w := workerAt(d, func(context.Context, Job) (Progress, error) { panic("no") })
	if err := w.Run(t.Context(), 1); err != nil || len(d.setbacks) != 1 || d.setbacks[0].Reason != "internal" {
		t.Errorf("%+v: %v", d.setbacks, err)
	}
}

func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, random := rapid.IntRange(1, 200).Draw(t, "attempts"), rapid.Float64Range(0, 0.999).Draw(t, "random")
		got, most, next := backoff(n, random), backoff(n, 0), backoff(n+1, 0)
		if got > most || got < most*3/4-1 || most < time.Second || most > time.Minute || next < most {
			t.Fatalf("attempt %d waits %v of %v, the next one %v", n, got, most, next)
		}
	})
}

func TestSweepQueuesUnderANewKeyEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		w := workerAt(&fakeStore{}, nil)
		w.Queue = q
		for range 2 {
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = wait(t.Context(), time.Second)
		}
		seen := map[string]bool{}
		for _, id := range q.ids {
			seen[id] = true
		}
		if len(seen) != 4 {
			t.Errorf("queued %v", q.ids)
		}
	})
}

func TestTitlesAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "title")
		if n := len([]rune(title(s + s + s))); n > maxTitle {
			t.Fatalf("%d characters", n)
		}
	})
	if title("  Grant  ") != "Grant" {
		t.Error("spaces are kept")
	}
}
