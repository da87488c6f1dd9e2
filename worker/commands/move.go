package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work/move"
	"dropbell/app"
	"dropbell/domain/cell"
	"dropbell/migrations"
)

var errMoveUsage = errors.New("usage: worker move SHOP [CELL], or worker move SHOP [CELL] undo; SHOP is a number, CELL a name of CELLS")

// moveShop moves a shop to another cell of the installation, or to the database of MOVE_DATABASE_URL,
// or removes what a move that was not finished has copied there.
func moveShop(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	undo := len(args) > 1 && args[len(args)-1] == "undo"
	if undo {
		args = args[:len(args)-1]
	}
	if len(args) != 1 && len(args) != 2 {
		return config.Mistake{Err: errMoveUsage}
	}
	shop, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || shop <= 0 {
		return config.Mistake{Err: fmt.Errorf("%q is no shop; %w", args[0], errMoveUsage)}
	}
	between := func() (source, target *postgres.DB, err error) { return bothDatabases(ctx, getenv) }
	if len(args) == 2 {
		between = func() (source, target *postgres.DB, err error) { return bothCells(ctx, getenv, shop, args[1]) }
	}
	source, target, err := between()
	if err != nil {
		return err
	}
	defer source.Close()
	defer target.Close()
	here, there := app.NewStores(source), app.NewStores(target)
	m := workdb.Mover{Source: source, Target: target, Tell: func(line string) { fmt.Fprintln(out, line) }, Check: func(ctx context.Context, drop int64) error { return sameBalance(ctx, here, there, drop) }}
	if undo {
		if err := m.Undo(ctx, shop); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "shop %d stays here; what was copied to the other database is removed\n", shop)
		return err
	}
	moved, err := m.Move(ctx, shop)
	if err != nil {
		return err
	}
	if moved.Before {
		_, err := fmt.Fprintf(out, "shop %d moved to cell %d before; nothing to do\n", shop, moved.To)
		return err
	}
	for _, drop := range moved.Drops {
		for _, f := range there.Figures() {
			if _, err := f.Recount(ctx, drop); err != nil {
				return fmt.Errorf("the shop has moved; the figures of drop %d are recounted later: %w", drop, err)
			}
		}
	}
	_, err = fmt.Fprintf(out, "shop %d is in cell %d now, with %d drops: %d rows of %d tables are equal there and removed here; writes of the shop were refused for %s\n",
		shop, moved.To, len(moved.Drops), moved.Rows, moved.Tables, moved.Refused.Round(time.Millisecond))
	return err
}

// bothDatabases opens the database of this installation and the database that the shop moves to.
func bothDatabases(ctx context.Context, getenv func(string) string) (source, target *postgres.DB, err error) {
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "DATABASE_SESSION_URL", "MOVE_DATABASE_URL")...)
	if err == nil && cfg.MoveURL == "" {
		err = errors.New("MOVE_DATABASE_URL is missing: the database that the shop moves to")
	}
	if err != nil {
		return nil, nil, config.Mistake{Err: err}
	}
	url, err := sessionURL(ctx, cfg)
	if err != nil {
		return nil, nil, config.Mistake{Err: err}
	}
	if source, err = readyDatabase(ctx, url); err != nil {
		return nil, nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if target, err = readyDatabase(ctx, cfg.MoveURL); err != nil {
		source.Close()
		return nil, nil, fmt.Errorf("MOVE_DATABASE_URL: %w", err)
	}
	if err := sameSchema(ctx, source, target); err != nil {
		source.Close()
		target.Close()
		return nil, nil, err
	}
	return source, target, nil
}

// bothCells opens the cell that has the shop, or has begun to move it, and the cell called name.
func bothCells(ctx context.Context, getenv func(string) string, shop int64, name string) (source, target *postgres.DB, err error) {
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "CELLS")...)
	if err != nil {
		return nil, nil, config.Mistake{Err: err}
	}
	to := slices.IndexFunc(cfg.Cells, func(c config.Cell) bool { return c.Name == name })
	if to < 0 {
		return nil, nil, config.Mistake{Err: fmt.Errorf("%q is no cell of CELLS; %w", name, errMoveUsage)}
	}
	if target, err = readyDatabase(ctx, cfg.Cells[to].URL); err != nil {
		return nil, nil, fmt.Errorf("cell %s: %w", name, err)
	}
	held, err := app.NewStores(target).Cells.Held(ctx)
	if err == nil && slices.Contains(held.Removed, held.Number) {
		err = cell.ErrRemoved
	}
	if err != nil {
		target.Close()
		return nil, nil, fmt.Errorf("cell %s: %w", name, err)
	}
	for n, one := range cfg.Cells {
		if n == to {
			continue
		}
		if source, err = readyDatabase(ctx, one.URL); err != nil {
			err = fmt.Errorf("cell %s: %w", one.Name, err)
			break
		}
		var has bool
		if has, err = app.NewStores(source).Cells.Has(ctx, shop, cell.Number(to)); err == nil && has {
			if err = sameSchema(ctx, source, target); err == nil {
				return source, target, nil
			}
		}
		source.Close()
		if err != nil {
			break
		}
	}
	target.Close()
	if err == nil {
		err = fmt.Errorf("no cell but %s has a shop %d", name, shop)
	}
	return nil, nil, err
}

// sameSchema returns an error unless both databases are at the same migration.
func sameSchema(ctx context.Context, source, target *postgres.DB) error {
	here, err := source.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	there, err := target.SchemaVersion(ctx)
	if err == nil && here != there {
		err = fmt.Errorf("this database is at migration %d and the other one at %d: run worker migrate, or worker migrate contract, on the older one", here, there)
	}
	return err
}

// transactionIdle is longer than one side of a move waits for the other.
const transactionIdle = time.Hour

func readyDatabase(ctx context.Context, url string) (*postgres.DB, error) {
	needs, err := migrations.Released.Latest()
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, url, postgres.Options{AppName: "dropbell-move", TransactionIdle: transactionIdle})
	if err != nil {
		return nil, err
	}
	if err := db.Ready(ctx, needs); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// sameBalance compares the balance sheets of a drop in both databases.
func sameBalance(ctx context.Context, here, there app.Stores, drop int64) error {
	own, err := here.Boards.Balance(ctx, drop)
	if err != nil {
		return err
	}
	copied, err := there.Boards.Balance(ctx, drop)
	if err == nil && !reflect.DeepEqual(own, copied) {
		err = fmt.Errorf("the balance sheets of drop %d differ: %+v here, %+v there; nothing was moved", drop, own, copied)
	}
	return err
}
