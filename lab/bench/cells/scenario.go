// Package cells measures two cells of one installation to be, each a PostgreSQL server of its own
// (ADR 110): how two drops of equal load divide their work, and what the drop of one cell notices
// while the server of the other is halted, and after it was killed. Stores are made once per cell,
// and a drop's id says which stores decide. Claims over HTTP go through the front of a web with both
// cells, and to a web with one database.
//
//	go tool task bench:cells
package cells

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/domain/claim"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs, bin := f.Callers(256), f.Lasting(5), f.Runs(3), f.Bin()
	return func(ctx context.Context) error {
		b := &bench{callers: *callers, lasting: *lasting}
		defer b.close()
		for n := range cell.Number(2) {
			if err := b.add(ctx, n); err != nil {
				return err
			}
		}
		fmt.Println(stack.Machine(ctx, b.cells[0].Stack))
		if err := b.equal(ctx); err != nil {
			return err
		}
		if err := b.front(ctx, *bin, *runs); err != nil {
			return err
		}
		for _, loss := range []struct {
			name string
			do   func() error
		}{
			{"halted", func() error { b.cells[1].Postgres.Pause(); return nil }},
			{"killed", b.cells[1].Postgres.Kill},
		} {
			if err := b.without(ctx, loss.name, loss.do); err != nil {
				return err
			}
		}
		return b.move(ctx)
	}
}

// bench has the cells by their numbers, and a drop in each.
type bench struct {
	cells   []*store
	callers int
	lasting time.Duration
	next    atomic.Int64
}

// store is one cell: its server, and the stores of the rush on it.
type store struct {
	*stack.Stack
	claims                *couponsdb.Claims
	reservations          *dropsdb.Reservations
	claimed, reservedDrop int64
}

func (b *bench) close() {
	for _, c := range b.cells {
		c.claims.Close()
		c.reservations.Close()
		c.Close()
	}
}

// add starts the server of cell n, with a drop that is open and a drop that opens later.
func (b *bench) add(ctx context.Context, n cell.Number) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	c := &store{Stack: s, claims: couponsdb.NewClaims(s.DB, postgres.Grouping{}), reservations: dropsdb.NewReservations(s.DB, postgres.Grouping{})}
	b.cells = append(b.cells, c)
	if _, err := workdb.NewCells(s.DB).Number(ctx, n, 0); err != nil {
		return err
	}
	for _, id := range []*int64{&c.claimed, &c.reservedDrop} {
		t, err := s.Drop(ctx, 3*time.Hour)
		if err != nil {
			return err
		}
		if *id = t.ID; cell.Of(t.ID, 1) != n {
			return fmt.Errorf("drop %d of cell %d names cell %d", t.ID, n, cell.Of(t.ID, 1))
		}
	}
	_, err = s.SQL.Exec(ctx, `update templates set stock = 100000000, opens_at = case when id = $1 then date_trunc('second', now()) - interval '1 hour' else opens_at end`, c.claimed)
	return err
}

// call claims a coupon of a drop, or reserves a reminder of one: the drop's id names the cell whose
// stores decide.
func (b *bench) call(ctx context.Context, drop, i int64) error {
	c := b.cells[cell.Of(drop, 1)]
	if drop == c.claimed {
		r := claim.Request{ID: claim.NewID(rand.Uint64(), drop), TemplateID: drop, UserID: user.ID(i), Origin: claim.ByTap, Key: claim.TapKey(user.ID(i), "k")}
		_, err := c.claims.Claim(ctx, r)
		return err
	}
	v, err := c.reservations.Reserve(ctx, reminder.Change{TemplateID: drop, UserID: user.ID(i), Bits: reminder.StoredBitmap(1)})
	if err == nil && !v.Applied {
		err = fmt.Errorf("refused: %+v", v)
	}
	return err
}

// drive calls the drops of the cells in turns.
func (b *bench) drive(ctx context.Context, callers int, cells ...*store) (scenario.Work, error) {
	return scenario.Drive(callers, b.lasting, func(i int64) error {
		c := cells[i%int64(len(cells))]
		drop := c.claimed
		if i/int64(len(cells))%2 == 0 {
			drop = c.reservedDrop
		}
		return b.call(ctx, drop, b.next.Add(1))
	})
}

// spent is what a cell's server has used so far.
type spent struct {
	cpu time.Duration
	wal int64
}

func (c *store) spent(ctx context.Context) (u spent, err error) {
	if u.cpu, err = c.PostgresCPU(ctx); err == nil {
		err = c.SQL.QueryRow(ctx, `select (pg_current_wal_lsn() - '0/0')::bigint`).Scan(&u.wal)
	}
	return u, err
}

// equal measures how the cells divide an equal load, by the processor time and the log of their
// servers.
func (b *bench) equal(ctx context.Context) error {
	var w scenario.Work
	shares, err := b.shares(ctx, func() (err error) {
		w, err = b.drive(ctx, b.callers, b.cells...)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("equal load  %7.0f claims and reservations/s  p99 %4d ms   %s\n", w.PerSecond, w.P99.Milliseconds(), shares)
	return nil
}

// shares says which share cell 0 has of what do costs the servers of both.
func (b *bench) shares(ctx context.Context, do func() error) (string, error) {
	used := func() (list []spent, err error) {
		for _, c := range b.cells {
			u, e := c.spent(ctx)
			list, err = append(list, u), errors.Join(err, e)
		}
		return list, err
	}
	before, err := used()
	if err == nil {
		err = do()
	}
	if err != nil {
		return "", err
	}
	after, err := used()
	if err != nil {
		return "", err
	}
	var cpu, wal [2]float64
	for i := range before {
		cpu[i], wal[i] = float64(after[i].cpu-before[i].cpu), float64(after[i].wal-before[i].wal)
	}
	return fmt.Sprintf("of the time in PostgreSQL cell 0 has %.2f, of the log %.2f", cpu[0]/(cpu[0]+cpu[1]), wal[0]/(wal[0]+wal[1])), nil
}

// without compares the drops of cell 0 while cell 1 is lost with the drops before, and waits until
// cell 1 works again. The callers of cell 1 go on calling meanwhile.
func (b *bench) without(ctx context.Context, name string, lose func() error) error {
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var others sync.WaitGroup
	var failed atomic.Int64
	for range b.callers / 2 {
		others.Go(func() {
			for calling.Err() == nil {
				one, cancel := context.WithTimeout(calling, time.Second)
				if b.call(one, b.cells[1].claimed, b.next.Add(1)) != nil {
					failed.Add(1)
					<-one.Done() // as a client that tries again after a second
				}
				cancel()
			}
		})
	}
	before, err := b.drive(ctx, b.callers/2, b.cells[0])
	if err != nil {
		return err
	}
	if err := lose(); err != nil {
		return err
	}
	failed.Store(0)
	during, err := b.drive(ctx, b.callers/2, b.cells[0])
	if err != nil {
		return fmt.Errorf("cell 0 while cell 1 is %s: %w", name, err)
	}
	lost := failed.Load()
	stop()
	others.Wait()
	if err := b.cells[1].Postgres.Restart(ctx); err != nil {
		return err
	}
	if err := stack.Until(ctx, 100*time.Millisecond, func() (bool, error) { return b.call(ctx, b.cells[1].claimed, b.next.Add(1)) == nil, nil }); err != nil {
		return fmt.Errorf("cell 1 does not claim again: %w", err)
	}
	fmt.Printf("cell 1 %s  cell 0: before %7.0f/s p99 %4d ms, meanwhile %7.0f/s p99 %4d ms, none failed   cell 1: %d calls failed, and it claims again\n",
		name, before.PerSecond, before.P99.Milliseconds(), during.PerSecond, during.P99.Milliseconds(), lost)
	return nil
}
