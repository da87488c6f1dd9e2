package program

import (
	"context"
	"errors"
	"time"

	workdb "dropbell/adapters/postgres/work/move"
	"dropbell/domain/cell"
	"dropbell/domain/pause"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/worker/shell"
)

const (
	// copyEvery is how often changes of home's rows are copied to a cell.
	copyEvery = 500 * time.Millisecond
	// copyWithin bounds one step, and compareWithin the comparison of all rows.
	copyWithin, compareWithin = 30 * time.Second, time.Hour
)

// copier copies home's rows to this program's cell.
func (p *program) copier() workdb.Copier {
	return workdb.Copier{Home: p.home.DB, Cell: p.DB, Number: cell.Number(p.Config.Cell), Erase: func(ctx context.Context, id int64) error {
		err := p.Stores.Users.Erase(ctx, user.ID(id), staff.Entry{Actor: staff.System(), Action: "user.erase", ObjectKind: "user", ObjectID: user.ID(id).String(), Reason: "erased at home"})
		if errors.Is(err, user.ErrNotFound) {
			return nil
		}
		return err
	}}
}

// copies is one run of the loop of copies. All rows are compared first if that is due.
func (p *program) copies(ctx context.Context) error {
	hello, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	if err := p.DB.Ping(hello); err != nil {
		return err
	}
	c := p.copier()
	begin, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	due, err := c.Due(begin)
	if err == nil && due {
		comparing, cancel := context.WithTimeout(ctx, compareWithin)
		defer cancel()
		err = c.Compare(comparing)
	}
	for more := err == nil; more; {
		step, cancel := context.WithTimeout(ctx, copyWithin)
		more, err = c.Step(step)
		cancel()
	}
	return err
}

// awaitCopies returns when the cell has its copies of home's rows. A worker of the role house makes
// them; others wait. It returns false if ctx ended first.
func (p *program) awaitCopies(ctx context.Context) bool {
	told := ""
	for {
		h, err := p.Stores.Cells.Held(ctx)
		if err == nil && h.Joined && int(h.Number) == p.Config.Cell {
			return true
		}
		if err == nil && p.has(shell.House) {
			if err = p.copier().Begin(ctx); err == nil {
				err = p.copies(ctx)
			}
		}
		if err != nil && err.Error() != told && ctx.Err() == nil {
			told = err.Error()
			p.Log.Warn("worker waits for the copies of home's rows", "error", err)
		}
		if !pause.For(ctx, schemaPause) {
			return false
		}
	}
}
