package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/cell"
)

var errCellUsage = errors.New("usage: worker cell, or worker cell NUMBER [OLDER]; NUMBER is from 0 to 63, and OLDER the number that worker cell prints for cell 0")

// numberCell prints which cell the database is, or makes an empty database the cell that args name.
func numberCell(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
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
