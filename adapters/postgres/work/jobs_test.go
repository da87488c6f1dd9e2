package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/task"
)

// jobFixture runs jobs.
type jobFixture struct {
	*fixture
	jobs    workdb.Jobs
	service *job.Service
}

func newJobFixture(t *testing.T) *jobFixture {
	w := newFixture(t)
	jobs := workdb.NewJobs(w.DB)
	return &jobFixture{w, jobs, &job.Service{Store: jobs}}
}

// byThree is a cause that can be told in every language.
var byThree = []fault.Field{{Name: "n", Key: "rule.three", Message: "is divisible by \"three\""}}

func (s *jobFixture) start(n job.New) job.Job {
	s.Helper()
	if n.Kind == "" {
		n.Kind = "count"
	}
	if n.Title == "" {
		n.Title = "Count to ten"
	}
	j, err := s.service.Start(s.Context(), pgtest.Clerk, n, staff.ManageTemplates)
	s.Must(err)
	return j
}

func (s *jobFixture) job(id int64) job.Job {
	s.Helper()
	j, err := s.jobs.Job(s.Context(), id)
	s.Must(err)
	return j
}

func (s *jobFixture) lease(id int64, lasting time.Duration) job.Lease {
	s.Helper()
	l, err := s.jobs.LeaseJob(s.Context(), id, []string{"count"}, lasting)
	s.Must(err)
	return l
}

// counter counts to its job's parameter, one number per step.
type counter struct {
	mu    sync.Mutex
	seen  []int64
	delay func(n int64)
}

func (c *counter) Step(_ context.Context, j job.Job) (job.Progress, error) {
	var to, at int64
	if err := json.Unmarshal(j.Params, &to); err != nil {
		return job.Progress{}, err
	}
	if j.Cursor != nil {
		if err := json.Unmarshal(j.Cursor, &at); err != nil {
			return job.Progress{}, err
		}
	}
	at++
	c.mu.Lock()
	c.seen = append(c.seen, at)
	c.mu.Unlock()
	if c.delay != nil {
		c.delay(at)
	}
	p := job.Progress{Cursor: json.RawMessage(fmt.Sprint(at)), Total: to, Done: at, Finished: at >= to}
	if at%3 == 0 {
		p.Failed, p.Errors = at/3, []job.RowError{{Line: at, Row: fmt.Sprintf("row \x00%d", at), Error: "divisible by three", Because: byThree}}
	}
	return p, nil
}

type noQueue struct{}

func (noQueue) Enqueue(context.Context, ...task.Task) error { return nil }

func (s *jobFixture) worker(r job.Runner) *job.Worker {
	return &job.Worker{Store: s.jobs, Queue: noQueue{}, Runners: map[string]job.Runner{"count": r}, LeaseFor: 8 * time.Second,
		Turn: time.Minute, Now: pgtest.Clock, Random: func() float64 { return 0 }}
}

func TestJobIsWorkedOff(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{Params: json.RawMessage(`10`), Total: 10, ShopNumber: 10})
	if j.State != job.Waiting || j.CreatedBy != "staff:7 Ada Okafor" || j.Actor.Role != staff.Marketer || j.Cursor != nil || j.Total != 10 {
		t.Errorf("started %+v", j)
	}
	if n := s.Number(`select count(*) from outbox where topic = $1 and payload->>'job_id' = $2`, event.JobCreated, fmt.Sprint(j.ID)); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := s.Number(`select count(*) from audit where action = 'job.start' and object_id = $1 and shop_number = 10`, fmt.Sprint(j.ID)); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	c := &counter{}
	s.Must(s.worker(c).Run(t.Context(), j.ID))
	got := s.job(j.ID)
	if got.State != job.Done || got.Done != 10 || got.StartedAt == nil || got.FinishedAt == nil || string(got.Cursor) != "10" || got.Reason != "" {
		t.Errorf("ended as %+v", got)
	}
	if len(c.seen) != 10 {
		t.Errorf("steps %v", c.seen)
	}
	var rows []job.RowError
	s.Must(s.service.RowErrors(t.Context(), pgtest.Clerk, j.ID, func(e job.RowError) error { rows = append(rows, e); return nil }))
	last, err := s.service.LastRowError(t.Context(), pgtest.Clerk, j.ID)
	s.Must(err)
	if !reflect.DeepEqual(last, rows[len(rows)-1]) {
		t.Errorf("the last row is %+v", last)
	}
	if len(rows) != 3 || !reflect.DeepEqual(rows[0], job.RowError{Line: 3, Row: "row \uFFFD3", Error: "divisible by three", Because: byThree}) || rows[2].Line != 9 {
		t.Errorf("rows %+v", rows)
	}
	s.Must(s.worker(c).Run(t.Context(), j.ID)) // a task that came twice
	if len(c.seen) != 10 {
		t.Error("a job that is done was worked on")
	}
}

func TestStartTwiceIsOneJob(t *testing.T) {
	s := newJobFixture(t)
	var wg sync.WaitGroup
	ids := make([]int64, 16)
	for i := range ids {
		wg.Go(func() {
			j, err := s.service.Start(t.Context(), pgtest.Clerk, job.New{Kind: "count", Title: "x", RequestKey: "k"}, staff.ManageTemplates)
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}
	wg.Wait()
	if slices.Max(ids) != slices.Min(ids) {
		t.Errorf("jobs %v", ids)
	}
	if n := s.Number(`select count(*) from audit where action = 'job.start'`) + s.Number(`select count(*) from outbox where topic = $1`, event.JobCreated); n != 2 {
		t.Errorf("%d records of one start", n)
	}
	other := pgtest.Clerk
	other.Label = "staff:8"
	j, err := s.service.Start(t.Context(), other, job.New{Kind: "count", Title: "x", RequestKey: "k"}, staff.ManageTemplates)
	s.Must(err)
	again := s.start(job.New{Kind: "other", RequestKey: "k"})
	if j.ID == ids[0] || again.ID == ids[0] {
		t.Error("another actor's or kind's key found the first job")
	}
}

// A running job that has had no worker for a while is stalled: its worker died, or gave the job
// back and no other worker took it.
func TestIdleJobs(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{Params: json.RawMessage(`5`)})
	s.Exec(`update jobs set next_run_at = now() - interval '1 hour'`)
	idle := func(what string, since string) {
		t.Helper()
		got := s.job(j.ID)
		list, err := s.jobs.Jobs(t.Context(), job.Query{Limit: 5})
		s.Must(err)
		if len(list) != 1 || (list[0].IdleSince == nil) != (got.IdleSince == nil) {
			t.Errorf("%s: %+v in the list", what, list)
		}
		if got.IdleSince == nil && since == "" {
			return
		}
		if got.IdleSince == nil || since == "" || s.Number(`select count(*) from jobs where `+since+` = $1`, *got.IdleSince) != 1 {
			t.Errorf("%s: idle since %v, want %s", what, got.IdleSince, since)
		}
	}
	idle("not begun", "")
	l := s.lease(j.ID, time.Hour)
	idle("worked on", "")
	s.Exec(`update jobs set lease_until = now() - interval '9 seconds'`)
	idle("about to be taken over", "")
	s.Exec(`update jobs set lease_until = now() - interval '1 minute'`)
	idle("its worker fell silent", "lease_until")
	s.Must(s.jobs.KeepJob(t.Context(), l, time.Hour))
	s.Must(s.jobs.ReleaseJob(t.Context(), l))
	idle("given back", "")
	s.Exec(`update jobs set next_run_at = now() - interval '1 minute', started_at = now() - interval '1 hour'`)
	idle("taken by nobody", "next_run_at")
	s.Exec(`update jobs set next_run_at = now() + interval '1 minute'`)
	idle("tried again later", "")
	s.Exec(`update jobs set next_run_at = now() - interval '1 minute', state = 'done', finished_at = now()`)
	idle("done", "")
}

// A job whose worker died is taken over at its last saved position. The worker that was thought
// dead can record nothing any more.
func TestTakeOver(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{Params: json.RawMessage(`5`)})
	dead := s.lease(j.ID, time.Millisecond)
	_, err := s.jobs.SaveJob(t.Context(), dead, job.Progress{Cursor: json.RawMessage(`2`), Total: 5, Done: 2}, time.Millisecond)
	s.Must(err)
	s.eventually(func() bool {
		due, err := s.jobs.DueJobs(t.Context(), []string{"count"}, 9)
		s.Must(err)
		return len(due) == 1
	})
	c := &counter{}
	s.Must(s.worker(c).Run(t.Context(), j.ID))
	if !slices.Equal(c.seen, []int64{3, 4, 5}) {
		t.Errorf("went on with %v", c.seen)
	}
	for what, err := range map[string]error{
		"save":  second(s.jobs.SaveJob(t.Context(), dead, job.Progress{Done: 1}, time.Second)),
		"keep":  s.jobs.KeepJob(t.Context(), dead, time.Second),
		"retry": s.jobs.SetBackJob(t.Context(), dead, job.Setback{}),
	} {
		if !errors.Is(err, job.ErrLeaseLost) {
			t.Errorf("%s of a lost lease: %v", what, err)
		}
	}
	s.Must(s.jobs.ReleaseJob(t.Context(), dead)) // nothing to give back
	if got := s.job(j.ID); got.State != job.Done || got.Done != 5 {
		t.Errorf("%+v", got)
	}
}

func second[T any](_ T, err error) error { return err }

func (w *fixture) eventually(ok func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			w.Fatal("it did not happen")
		}
		pause := time.NewTimer(5 * time.Millisecond)
		<-pause.C
	}
}

// Many workers share one job: every step is saved by one worker only.
func TestOneWorkerSaves(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{Params: json.RawMessage(`40`)})
	c := &counter{}
	var wg sync.WaitGroup
	for range 8 {
		w := s.worker(c)
		w.LeaseFor, w.Turn = 40*time.Millisecond, 0 // a turn is one step, and leases run out all the time
		c.delay = func(n int64) {
			if n%5 == 0 {
				pause := time.NewTimer(60 * time.Millisecond)
				<-pause.C
			}
		}
		wg.Go(func() {
			for s.job(j.ID).State != job.Done && t.Context().Err() == nil {
				if err := w.Run(t.Context(), j.ID); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := s.job(j.ID)
	if got.State != job.Done || got.Done != 40 {
		t.Errorf("%+v", got)
	}
	if n := s.Number(`select count(*) from job_errors`); n != 13 {
		t.Errorf("%d row errors, want 13: a step was saved twice, or none", n)
	}
}

func TestCancelAJob(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{Params: json.RawMessage(`100`), ShopNumber: 10})
	c := &counter{}
	c.delay = func(n int64) {
		if n == 3 {
			_, err := s.service.Cancel(t.Context(), pgtest.Clerk, j.ID)
			s.Must(err)
		}
	}
	s.Must(s.worker(c).Run(t.Context(), j.ID))
	got := s.job(j.ID)
	if got.State != job.Cancelled || got.Done != 2 || len(c.seen) != 3 || got.FinishedAt == nil {
		t.Errorf("%+v after steps %v", got, c.seen)
	}
	if _, err := s.service.Cancel(t.Context(), pgtest.Clerk, j.ID); !errors.Is(err, job.ErrOver) {
		t.Errorf("cancelled twice: %v", err)
	}
	if n := s.Number(`select count(*) from audit where action = 'job.cancel'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	waiting := s.start(job.New{})
	_, err := s.service.Cancel(t.Context(), pgtest.Clerk, waiting.ID)
	s.Must(err)
	if _, err := s.jobs.LeaseJob(t.Context(), waiting.ID, []string{"count"}, time.Second); !errors.Is(err, job.ErrNoWork) {
		t.Errorf("a cancelled job can be taken: %v", err)
	}
}

func TestStepsThatFail(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{})
	for i := range job.MaxAttempts {
		s.Exec(`update jobs set next_run_at = now()`) // as if the wait were over
		s.Must(s.worker(failing{errors.New("a bug with a secret in it")}).Run(t.Context(), j.ID))
		got := s.job(j.ID)
		if last := i == job.MaxAttempts-1; last != (got.State == job.Failed) || got.Reason != "internal" || got.Detail != "" {
			t.Fatalf("after attempt %d: %+v", i+1, got)
		}
		if got.State == job.Running {
			if _, err := s.jobs.LeaseJob(t.Context(), j.ID, []string{"count"}, time.Second); !errors.Is(err, job.ErrNoWork) {
				t.Errorf("it did not have to wait: %v", err)
			}
		}
	}
	good := s.start(job.New{Params: json.RawMessage(`2`)})
	s.Must(s.worker(failing{postgres.ErrUnavailable}).Run(t.Context(), good.ID))
	s.Exec(`update jobs set next_run_at = now()`)
	s.Must(s.worker(&counter{}).Run(t.Context(), good.ID))
	if n := s.Number(`select attempts from jobs where id = $1 and state = 'done' and reason = ''`, good.ID); n != 0 {
		t.Errorf("%d attempts after success", n)
	}
}

type failing struct{ error }

func (f failing) Step(context.Context, job.Job) (job.Progress, error) { return job.Progress{}, f.error }

// A job that kills its workers is given up.
func TestJobThatKills(t *testing.T) {
	s := newJobFixture(t)
	j := s.start(job.New{})
	for i := range job.MaxAttempts + 1 {
		l := s.lease(j.ID, time.Hour)
		if l.Attempts != i {
			t.Fatalf("lease %d has %d attempts", i, l.Attempts)
		}
		s.Exec(`update jobs set lease_until = now() - interval '1 second'`)
	}
	s.Must(s.worker(&counter{}).Run(t.Context(), j.ID))
	if got := s.job(j.ID); got.State != job.Failed || got.Reason != "job_workers_died" {
		t.Errorf("%+v", got)
	}
}

func TestWhoSeesWhichJobs(t *testing.T) {
	s := newJobFixture(t)
	mine, theirs, all := s.start(job.New{ShopNumber: 10}), s.start(job.New{ShopNumber: 11}), s.start(job.New{})
	viewer := staff.Actor{Label: "staff:1", Role: staff.Viewer}
	limited := staff.Actor{Label: "staff:2", Role: staff.Marketer, Shops: []int64{10}}
	self := staff.Actor{Label: "staff:7", Role: staff.Marketer, Shops: []int64{12}}
	for _, c := range []struct {
		by    staff.Actor
		sees  []int64
		stops []int64
	}{
		{viewer, []int64{all.ID, theirs.ID, mine.ID}, nil},
		{limited, []int64{mine.ID}, []int64{mine.ID}},
		{self, []int64{all.ID, theirs.ID, mine.ID}, []int64{all.ID}},
	} {
		list, err := s.service.Jobs(t.Context(), c.by, job.Query{Limit: 10})
		s.Must(err)
		var ids, open, own []int64
		for _, j := range list {
			ids = append(ids, j.ID)
		}
		for _, id := range []int64{all.ID, theirs.ID, mine.ID} {
			if _, err := s.service.Job(t.Context(), c.by, id); err == nil {
				open = append(open, id)
			} else if !errors.Is(err, job.ErrNotFound) {
				t.Error(err)
			}
			if err := s.service.RowErrors(t.Context(), c.by, id, nil); err == nil {
				own = append(own, id)
			}
		}
		if !slices.Equal(ids, c.sees) || !slices.Equal(open, c.sees) || !slices.Equal(own, c.stops) {
			t.Errorf("%s lists %v, opens %v, owns %v; want %v and %v", c.by.Label, ids, open, own, c.sees, c.stops)
		}
	}
	if _, err := s.service.Start(t.Context(), limited, job.New{Kind: "x", Title: "x", ShopNumber: 11}, staff.ManageTemplates); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("started in another shop: %v", err)
	}
	if _, err := s.service.Start(t.Context(), viewer, job.New{Kind: "x", Title: "x"}, staff.ManageTemplates); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("started by a viewer: %v", err)
	}
	first, err := s.service.Jobs(t.Context(), viewer, job.Query{Limit: 2, Kind: "count", States: []job.State{job.Waiting}})
	s.Must(err)
	rest, err := s.service.Jobs(t.Context(), viewer, job.Query{Limit: 2, Before: first[1].ID})
	s.Must(err)
	if len(first) != 2 || len(rest) != 1 || rest[0].ID != mine.ID {
		t.Errorf("pages %v %v", first, rest)
	}
}
