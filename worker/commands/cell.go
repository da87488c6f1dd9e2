package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"dropbell/adapters/config"
	workdb "dropbell/adapters/postgres/work/move"
	"dropbell/app"
	"dropbell/domain/cell"
)

var errCellUsage = errors.New("usage: worker cell, worker cell NUMBER [OLDER], or worker cell remove NAME; NUMBER is from 0 to 63, and OLDER the number that worker cell prints for cell 0")

// numberCell prints which cell the database is, or makes an empty database the cell that args name.
func numberCell(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 2 && args[0] == "remove" {
		return removeCell(ctx, args[1], getenv, out)
	}
	wanted, older, err := parseCell(args)
	if err != nil {
		return config.Mistake{Err: err}
	}
	cfg, err := config.LoadOnly(getenv, databaseVariables()...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	return withDatabase(ctx, cfg, func(stores app.Stores) error {
		if len(args) == 0 {
			n, older, err := stores.Cells.Cell(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "this database is cell %d\n", n)
			held, err := stores.Cells.Held(ctx)
			if err != nil {
				return err
			}
			for _, gone := range held.Removed {
				fmt.Fprintf(out, "cell %d was taken out of the installation\n", gone)
			}
			if older > 0 {
				fmt.Fprintf(out, "ids up to %d may be older than cells: number another database with worker cell NUMBER %d\n", older, older)
			}
			return nil
		}
		changed, err := stores.Cells.Number(ctx, wanted, older)
		if errors.Is(err, cell.ErrUsed) {
			return config.Mistake{Err: err}
		}
		if err == nil && !changed {
			_, err = fmt.Fprintf(out, "this database was cell %d before; nothing to do\n", wanted)
			return err
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "this database is cell %d now\n", wanted)
		}
		return err
	})
}

// removeCell takes the last cell of CELLS out of the installation.
func removeCell(ctx context.Context, name string, getenv func(string) string, out io.Writer) error {
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "CELLS")...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	last := len(cfg.Cells) - 1
	if last < 1 || cfg.Cells[last].Name != name {
		return config.Mistake{Err: fmt.Errorf("%q is not the last cell of CELLS: only that one can be taken out, since the order of the others is their numbers", name)}
	}
	home, err := readyDatabase(ctx, cfg.Cells[0].URL)
	if err != nil {
		return fmt.Errorf("cell %s: %w", cfg.Cells[0].Name, err)
	}
	defer home.Close()
	target, err := readyDatabase(ctx, cfg.Cells[last].URL)
	if err != nil {
		return fmt.Errorf("cell %s: %w", name, err)
	}
	defer target.Close()
	if err := workdb.Remove(ctx, home, target, cell.Number(last)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "cell %s is taken out: no request reaches it. Take it out of CELLS, and restart the workers, then web\n", name)
	return err
}

func parseCell(args []string) (n cell.Number, older int64, err error) {
	if len(args) == 0 {
		return 0, 0, nil
	}
	number, err := strconv.Atoi(args[0])
	n = cell.Number(number)
	if err != nil || len(args) > 2 || !n.Valid() {
		return 0, 0, errCellUsage
	}
	if len(args) == 2 {
		if older, err = strconv.ParseInt(args[1], 10, 64); err != nil || older < 0 || older > cell.MaxOlder {
			return 0, 0, errCellUsage
		}
	}
	return n, older, nil
}
