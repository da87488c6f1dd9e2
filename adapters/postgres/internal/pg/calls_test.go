package pg

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/domain/fault"
	"dropbell/musttest"
)

// TestCallsAreLimited: a limited call ends in its time, whether the call is a
// statement, a batch, in a transaction or waiting for a connection. Calls without
// a limit do not end. Each limited call in one context has its own time.
func TestCallsAreLimited(t *testing.T) {
	db, err := Open(t.Context(), localstack.Database(t), Options{MaxConns: 4})
	musttest.OK(t, err)
	defer db.Close()
	const limit = time.Second
	ctx := LimitCalls(t.Context(), limit)
	const slow = `select pg_sleep(60)`
	for name, call := range map[string]func(ctx context.Context, sql string) error{
		"statement": func(ctx context.Context, sql string) error { _, err := db.Pool.Exec(ctx, sql); return err },
		"rows": func(ctx context.Context, sql string) error {
			rows, err := db.Pool.Query(ctx, sql)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[any])
			return err
		},
		"batch": func(ctx context.Context, sql string) error {
			b := &pgx.Batch{}
			b.Queue(sql)
			return db.Pool.SendBatch(ctx, b).Close()
		},
		"transaction": func(ctx context.Context, sql string) error {
			return db.Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql); return err })
		},
	} {
		if err := Translate(call(ctx, slow)); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: a slow call ends with %v", name, err)
		}
		for range 3 {
			if err := call(ctx, `select 1`); err != nil {
				t.Errorf("%s: a quick call after a slow one ends with %v", name, err)
			}
		}
		if err := call(Unlimited(ctx), `select pg_sleep(1.5)`); err != nil {
			t.Errorf("%s: an unlimited call ends with %v", name, err)
		}
	}
	for range 4 {
		held, err := db.Pool.Acquire(t.Context())
		musttest.OK(t, err)
		defer held.Release()
	}
	if _, err := db.Pool.Exec(ctx, `select 1`); !errors.Is(Translate(err), ErrUnavailable) {
		t.Errorf("without a connection: %v", err)
	}
}

// TestHangingUpUndoesNothing: a client that disconnects while its change is being
// stored does not undo the change. The client's deadline still ends the
// transaction.
func TestHangingUpUndoesNothing(t *testing.T) {
	db, err := Open(t.Context(), localstack.Database(t), Options{})
	musttest.OK(t, err)
	defer db.Close()
	store := func(ctx context.Context, shop int, do func()) error {
		return db.Tx(ctx, func(tx pgx.Tx) error {
			do()
			_, err := tx.Exec(context.WithoutCancel(ctx), `insert into shops (number, name, timezone) values ($1, 'x', 'UTC')`, shop)
			return err
		})
	}
	ctx, cancel := context.WithTimeout(LimitCalls(t.Context(), time.Minute), time.Minute)
	if err := store(ctx, 77, cancel); err != nil {
		t.Errorf("hung up: %v", err)
	}
	ctx, cancel = context.WithTimeout(LimitCalls(t.Context(), time.Minute), 50*time.Millisecond)
	defer cancel()
	if err := store(ctx, 78, func() { <-ctx.Done() }); !errors.Is(err, ErrUnavailable) {
		t.Errorf("past its deadline: %v", err)
	}
	var shops []int
	if err := db.Pool.QueryRow(t.Context(), `select array_agg(number) from shops where number in (77, 78)`).Scan(&shops); err != nil || len(shops) != 1 || shops[0] != 77 {
		t.Errorf("stored: %v %v", shops, err)
	}
}

// TestWhoLeavesTheQueue: an operation whose caller stops waiting while the
// operation is queued is never stored. An operation whose group is being stored
// may be stored, and its caller is told so. Operations with equal keys keep their
// order.
func TestWhoLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, nil)
		errs := make([]error, 5)
		leave := make([]context.CancelFunc, len(errs))
		done := make(chan int, len(errs))
		for i, o := range []op{{1, 0}, {2, 1}, {2, 2}, {2, 3}, {3, 4}} {
			ctx, cancel := context.WithCancel(context.Background())
			leave[i] = cancel
			go func() { _, errs[i] = c.Do(ctx, o); done <- i }()
			synctest.Wait()
		}
		for _, i := range []int{0, 1, 4} { // the first is being stored
			leave[i]()
			<-done
		}
		close(p.hold)
		<-done
		<-done
		c.Close()
		if !errors.Is(errs[0], fault.ErrOutcomeUnknown) || !errors.Is(errs[1], context.Canceled) || errs[2] != nil || errs[3] != nil {
			t.Errorf("answers: %v", errs)
		}
		for _, i := range []int{1, 4} {
			if f, ok := errors.AsType[*fault.Fault](errs[i]); !ok || f != errLeft {
				t.Errorf("%d left the queue and was told %v", i, errs[i])
			}
		}
		var stored []int
		for _, g := range p.groups {
			for _, o := range g {
				stored = append(stored, o.n)
			}
		}
		if len(stored) != 3 || stored[0] != 0 || stored[1] != 2 || stored[2] != 3 {
			t.Errorf("stored: %v", stored)
		}
	})
}
