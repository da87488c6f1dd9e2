package move

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
)

// Remove takes a further cell, whose shops have all moved away, out of the installation: no shop comes
// into it any more, home notes no changes for it, and remembers its greatest ids. Remove may be repeated.
// The error is [cell.ErrInUse], with what is left, if the cell is still needed.
func Remove(ctx context.Context, home, target *pg.DB, number cell.Number) error {
	return pg.Translate(home.Tx(ctx, func(tx pgx.Tx) error {
		// As when a shop is settled, so that none is settled meanwhile.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:settling', 0))`); err != nil {
			return err
		}
		var lastID, lastCode int64
		if err := target.Tx(ctx, func(own pgx.Tx) (err error) {
			lastID, lastCode, err = retire(ctx, own, number)
			return err
		}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `with known as (delete from copying_cells where cell = $1)
			insert into removed_cells (cell, last_id, last_code) values ($1, $2, $3) on conflict (cell) do update
				set last_id = greatest(removed_cells.last_id, excluded.last_id), last_code = greatest(removed_cells.last_code, excluded.last_code), removed_at = excluded.removed_at`,
			number, lastID, lastCode)
		return err
	}))
}

// retire makes a database without shops refuse further ones, and returns its greatest id and serial
// number of codes.
func retire(ctx context.Context, tx pgx.Tx, number cell.Number) (lastID, lastCode int64, err error) {
	if _, err := tx.Exec(ctx, `lock table shops, moves, campaigns, outbox in share row exclusive mode`); err != nil {
		return 0, 0, err
	}
	var is cell.Number
	var shops []int64
	var moving, campaigns, events int64
	if err := tx.QueryRow(ctx, `select (select number from cell), array(select number from shops order by number), (select count(*) from moves where state <> 'left'),
		(select count(*) from campaigns), (select count(*) from outbox)`).Scan(&is, &shops, &moving, &campaigns, &events); err != nil {
		return 0, 0, err
	}
	var left []string
	switch {
	case is != number:
		return 0, 0, fmt.Errorf("the database is cell %d and not cell %d: keep the order of CELLS", is, number)
	case len(shops) > 0:
		left = append(left, "shops "+strings.Trim(fmt.Sprint(shops), "[]")+" (worker move SHOP CELL)")
	case campaigns > 0:
		left = append(left, fmt.Sprintf("%d campaigns without a shop", campaigns))
	}
	if moving > 0 {
		left = append(left, fmt.Sprintf("%d moves of shops that are not complete (worker doctor names them)", moving))
	}
	if events > 0 {
		left = append(left, fmt.Sprintf("%d events that its workers have not relayed", events))
	}
	if len(left) > 0 {
		return 0, 0, fmt.Errorf("%w: %s", cell.ErrInUse, strings.Join(left, ", "))
	}
	err = tx.QueryRow(ctx, `insert into removed_cells (cell, last_id, last_code) select $1,
			coalesce((select max(pg_sequence_last_value(pg_get_serial_sequence(name, 'id')::regclass)) from cell_identities), 0), (select next - 1 from code_serials)
		on conflict (cell) do update set removed_at = removed_cells.removed_at returning last_id, last_code`, number).Scan(&lastID, &lastCode)
	return lastID, lastCode, err
}

// beginAfter makes a new database with the number of a cell that was removed draw greater ids than that
// cell did: shops that moved away keep theirs.
func (c Copier) beginAfter(ctx context.Context) error {
	var lastID, lastCode int64
	err := c.Home.Pool.QueryRow(ctx, `select last_id, last_code from removed_cells where cell = $1`, c.Number).Scan(&lastID, &lastCode)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Translate(err)
	}
	_, err = c.Cell.Pool.Exec(ctx, `with codes as (update code_serials set next = greatest(next, $2::bigint + 1)) select begin_above(name, $1) from cell_identities order by name`, lastID, lastCode)
	return pg.Translate(err)
}
