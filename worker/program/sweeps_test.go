package program

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/worker/shell"
	"dropbell/worker/workertest"
)

// TestALockHoldsUpOneSweep: while a table that one of the questions reads is locked, the
// database answers none of the questions. Slots fire all the same, and the failure is counted.
func TestALockHoldsUpOneSweep(t *testing.T) {
	p, sql := assembled(t)
	exec := func(statement string) {
		t.Helper()
		if _, err := sql.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows.Drop{OpensAt: time.Now().Add(2 * time.Hour)}.Add(t, sql)
	lock, err := p.DB.Pool.Begin(t.Context())
	if err == nil {
		_, err = lock.Exec(t.Context(), `lock table coupons in access exclusive mode`)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) })
	begun := make(chan struct{}, 1)
	list := append(slices.Clone(p.roles.Sweeps), shell.Sweep{Name: "turns", Do: func(context.Context) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		return nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	p.life = ctx
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop()
	for _, loop := range []func(context.Context) error{p.runner.Sweeps(sweepEvery, list, sweepsWait), p.serveTasks} {
		loops.Go(func() {
			if err := loop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun // the first turn asks nothing
	exec(`insert into slots (template_id, slot, opens_at, due_at, state)
		select 1, 1, date_trunc('second', now()) + interval '290 seconds', date_trunc('second', now()) - interval '10 seconds', 'waiting'`)
	poll(t, "the slot is fired", func() error {
		var fired bool
		err := sql.QueryRow(t.Context(), `select fired_at is not null from slots`).Scan(&fired)
		if err == nil && !fired {
			err = errors.New("the slot waits")
		}
		return err
	})
	poll(t, "a failure of the questions is counted", func() error {
		if n, _ := workertest.Value(t, p.Registry, "dropbell_job_failures_total", "loop=questions"); n == 0 {
			return errors.New("none is")
		}
		return nil
	})
}
