package work

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// Held is what one database says about the shops of the installation.
type Held struct {
	Number cell.Number
	// Older is the greatest id that cannot be one of a cell other than 0.
	Older int64
	// Shops are its shops, Arriving those among them that another cell still has, and Left the cells to
	// which shops have moved from here.
	Shops, Arriving []int64
	Left            []cell.Number
	// Joined is whether the database has its copies of home's rows, or is home.
	Joined bool
	// Removed are the cells that were taken out of the installation, as home knows, or the database's
	// own number if it is one of them.
	Removed []cell.Number
}

// Held reads what the database has.
func (s Cells) Held(ctx context.Context) (h Held, err error) {
	var left, removed []int64
	err = s.Pool.QueryRow(ctx, `select number, (select coalesce(min(since), 1) - 1 from cell_identities), array(select number from shops order by number),
		array(select shop_number from moves where state = 'arriving'), array(select distinct m.cell::bigint from moves m where state in ('emptied', 'left')),
		number = 0 or exists (select from copying_cells where cell = 0 and compared_at is not null) and not exists (select from removed_cells where cell = number),
		array(select cell::bigint from removed_cells order by cell) from cell`).
		Scan(&h.Number, &h.Older, &h.Shops, &h.Arriving, &left, &h.Joined, &removed)
	for _, n := range left {
		h.Left = append(h.Left, cell.Number(n))
	}
	for _, n := range removed {
		h.Removed = append(h.Removed, cell.Number(n))
	}
	return h, pg.Translate(err)
}

// Has reports whether the database has the shop, or has begun to move it to the cell.
func (s Cells) Has(ctx context.Context, shop int64, to cell.Number) (has bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from shops where number = $1 and not exists (select from moves where shop_number = $1 and state = 'arriving'))
		or exists (select from moves where shop_number = $1 and state <> 'arriving' and cell = $2)`, shop, to).Scan(&has)
	return has, pg.Translate(err)
}

// Named returns an error if home has further cells than the most that the configuration names: their
// shops would not be served.
func (s Cells) Named(ctx context.Context, most int) error {
	var missing *int64
	err := s.Pool.QueryRow(ctx, `select min(cell)::bigint from copying_cells where cell >= $1 and cell > 0`, most).Scan(&missing)
	if err == nil && missing != nil {
		return fmt.Errorf("CELLS does not name cell %d, which the installation has: name it, or move its shops away and take it out with worker cell remove", *missing)
	}
	return pg.Translate(err)
}

// Copying is how far the copies of home's rows in a cell are behind.
func (s Cells) Copying(ctx context.Context) (list []doctor.Cell, err error) {
	rows := pg.Rows(ctx, s.Pool, `select c.cell::int, (select count(*) from copies_due d where d.cell = c.cell) from copying_cells c where c.cell > 0 order by 1`)
	var one doctor.Cell
	_, err = pgx.ForEachRow(rows, []any{&one.Number, &one.Due}, func() error {
		list = append(list, one)
		return nil
	})
	return list, pg.Translate(err)
}

// Lag says what waits between this database and other cells.
type Lag struct {
	// Due has for each other cell the age of the oldest change that this database has not told it, 0 if
	// it was told all.
	Due map[cell.Number]time.Duration
	// Stalled is how long ago the oldest move of a shop began that is not complete and that no process
	// goes on with, 0 = there is none.
	Stalled time.Duration
}

// Lag reads what waits.
func (s Cells) Lag(ctx context.Context) (l Lag, err error) {
	l.Due = map[cell.Number]time.Duration{}
	rows, err := s.Pool.Query(ctx, `select c.cell, coalesce((select extract(epoch from clock_timestamp() - d.at) from copies_due d where d.cell = c.cell order by d.seq limit 1), 0)::float8
		from copying_cells c`)
	if err != nil {
		return l, pg.Translate(err)
	}
	var n cell.Number
	var seconds float64
	if _, err := pgx.ForEachRow(rows, []any{&n, &seconds}, func() error {
		l.Due[n] = time.Duration(seconds * float64(time.Second))
		return nil
	}); err != nil {
		return l, pg.Translate(err)
	}
	err = s.Pool.QueryRow(ctx, `select coalesce(max(extract(epoch from clock_timestamp() - started_at)), 0)::float8 from moves where state <> 'left' and not exists (
		select from pg_locks where locktype = 'advisory' and objsubid = 1 and database = (select oid from pg_database where datname = current_database())
			and (classid::bigint << 32) | objid::bigint = hashtextextended('dropbell:move', 0))`).Scan(&seconds)
	l.Stalled = time.Duration(seconds * float64(time.Second))
	return l, pg.Translate(err)
}

// Settling calls do while no other process settles a shop. It is called at home.
func (s Cells) Settling(ctx context.Context, do func() error) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:settling', 0))`); err != nil {
			return err
		}
		return do()
	})
}

// KnowElsewhere tells the database which shops other cells have: it refuses to make them.
func (s Cells) KnowElsewhere(ctx context.Context, of cell.Number, shops []int64) error {
	_, err := s.Pool.Exec(ctx, `with gone as (delete from shops_elsewhere where cell = $1 and shop_number <> all($2))
		insert into shops_elsewhere (shop_number, cell) select n, $1 from unnest($2::bigint[]) n
		on conflict (shop_number) do update set cell = excluded.cell where shops_elsewhere.cell <> excluded.cell`, of, shops)
	return pg.Translate(err)
}

// codeSerials is how many serial numbers of redeem codes each cell has: a 64th of all.
const codeSerials = cell.CodeSerials

// Number makes the database the cell n, and returns whether it was another one. Its ids then begin
// above older, and the serial numbers of its redeem codes differ from those of other cells. It returns [cell.ErrUsed] if the tables of shops have rows: their ids name
// the cell that the database was.
func (s Cells) Number(ctx context.Context, n cell.Number, older int64) (changed bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select number <> $1 from cell for update`, n).Scan(&changed); err != nil || !changed {
			return err
		}
		tables, err := pgx.CollectRows(pg.Rows(ctx, tx, `select name from cell_identities order by name`), pgx.RowTo[string])
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
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[doctor.Move], `select shop_number, state = 'arriving', state = 'emptied', started_at from moves where state <> 'left' order by started_at, shop_number`)
}
