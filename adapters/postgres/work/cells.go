package work

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
	"dropbell/domain/doctor"
)

// Cells reads and sets which cell the database is.
type Cells struct{ *pg.DB }

// NewCells returns the store of the cell's number in db.
func NewCells(db *pg.DB) Cells { return Cells{db} }

// Cell returns the number of the database's cell. older is the greatest id of a table of shops that
// is older than cells, 0 if there is none.
func (s Cells) Cell(ctx context.Context) (n cell.Number, older int64, err error) {
	err = s.Pool.QueryRow(ctx, `select number, case when number = 0 then (select coalesce(max(since), 1) - 1 from cell_identities) else 0 end from cell`).Scan(&n, &older)
	return n, older, pg.Translate(err)
}

// codeSerials is how many serial numbers of redeem codes each cell has: a 64th of all.
const codeSerials = 1 << 34

// Number makes the database the cell n, and returns whether it was another one. Its ids then begin
// above older, and the serial numbers of its redeem codes differ from those of other cells. It returns [cell.ErrUsed] if the tables of shops have rows: their ids name
// the cell that the database was.
func (s Cells) Number(ctx context.Context, n cell.Number, older int64) (changed bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select number <> $1 from cell for update`, n).Scan(&changed); err != nil || !changed {
			return err
		}
		rows, err := tx.Query(ctx, `select name from cell_identities order by name`)
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, table := range tables {
			name := pgx.Identifier{table}.Sanitize()
			if _, err := tx.Exec(ctx, `lock table `+name+` in share mode`); err != nil {
				return err
			}
			var used bool
			if err := tx.QueryRow(ctx, `select exists (select from `+name+`)`).Scan(&used); err != nil {
				return err
			}
			if used {
				return fmt.Errorf("%w: %s has rows", cell.ErrUsed, strings.ReplaceAll(table, "_", " "))
			}
		}
		_, err = tx.Exec(ctx, `with numbered as (update cell set number = $1) delete from cell_identities`, n)
		if err == nil {
			_, err = tx.Exec(ctx, `update code_serials set next = $1::bigint * $2 + 1`, n, codeSerials)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `select name_cell($1, $2)`, tables, older)
		}
		return err
	})
	return changed && err == nil, err
}

// Moves returns the moves of shops that are not complete, which the doctor shows.
func (s Cells) Moves(ctx context.Context) ([]doctor.Move, error) {
	rows, err := s.Pool.Query(ctx, `select shop_number, state = 'arriving', state = 'emptied', started_at from moves where state <> 'left' order by started_at, shop_number`)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[doctor.Move])
	return list, pg.Translate(err)
}
