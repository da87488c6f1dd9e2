package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
)

// A copied table belongs to the installation. Home has its rows, and every other cell a copy of the
// rows that meet the condition of: statements about shops join them (ADR 126). only is the condition
// for replacing a stored row t.
type copied struct {
	table
	only string
	// shared is set for rows that are about an address and arise in any cell: they are never removed by
	// a comparison, and the newest row counts.
	shared bool
}

// newerSuppression compares what happened to an address last.
const newerSuppression = ` and greatest(t.since, t.released_at) < greatest(excluded.since, excluded.released_at)`

// copies are the tables in the order in which rows refer to earlier ones.
var copies = []copied{
	{table: table{"staff", `true`}}, {table: table{"sign_ins", `true`}}, {table: table{"staff_browsers", `true`}}, {table: table{"api_keys", `true`}},
	{table: table{"console_settings", `true`}}, {table: table{"channel_settings", `true`}}, {table: table{"providers", `t.shop_number is null`}},
	{table: table{"alert_destinations", `true`}}, {table: table{"message_versions", `t.shop_number = 0`}}, {table: table{"campaign_limits", `t.shop_number = 0`}},
	{table: table{"users", `true`}}, {table: table{"sms_stops", `true`}}, {table: table{"inbox_reads", `true`}},
	{table: table{"suppressions", `true`}, only: newerSuppression, shared: true},
	{table: table{"segments", `true`}}, {table: table{"segment_members", `true`}},
}

// ofPerson is the column with the user of tables about users. Rows of a user who was erased in a cell
// are not copied to it.
var ofPerson = map[string]string{"users": "id", "sms_stops": "user_id", "inbox_reads": "user_id"}

// erasedUsers is copied by erasing the users in the cell.
const erasedUsers = "erased_users"

// copyPage is how many changes are copied at once.
const copyPage = 1000

// A Copier keeps the copies of home's rows in one cell. It is used by one worker at a time: further
// ones find nothing to do.
type Copier struct {
	Home, Cell *pg.DB
	// Number is the number that the cell must have.
	Number cell.Number
	// Erase erases a user in the cell; repeating it changes nothing.
	Erase func(ctx context.Context, user int64) error
}

// ErrNotEmpty is the error for a database that has rows of an installation of its own, and so cannot
// become a cell of another one.
var ErrNotEmpty = errors.New("the database has users, keys or providers that home does not have: only an empty database becomes a further cell")

// Begin makes home note changes for the cell, and the cell note addresses that nothing is sent to for
// home. Repeating it changes nothing.
func (c Copier) Begin(ctx context.Context) error {
	for _, at := range []struct {
		db   *pg.DB
		want cell.Number
	}{{c.Home, 0}, {c.Cell, c.Number}} {
		var number cell.Number
		if err := at.db.Pool.QueryRow(ctx, `select number from cell`).Scan(&number); err != nil {
			return pg.Translate(err)
		}
		if number != at.want {
			return fmt.Errorf("a database is cell %d and not cell %d: number it with worker cell while it is empty, and keep the order of CELLS", number, at.want)
		}
	}
	var known, removed bool
	if err := c.Cell.Pool.QueryRow(ctx, `select exists (select from removed_cells where cell = $1)`, c.Number).Scan(&removed); err != nil {
		return pg.Translate(err)
	}
	if removed {
		return cell.ErrRemoved
	}
	if err := c.Home.Pool.QueryRow(ctx, `select exists (select from copying_cells where cell = $1)`, c.Number).Scan(&known); err != nil {
		return pg.Translate(err)
	}
	if !known {
		var used bool
		if err := c.Cell.Pool.QueryRow(ctx, `select exists (select from users) or exists (select from api_keys) or exists (select from staff) or exists (select from providers)
			or exists (select from segments)`).Scan(&used); err != nil {
			return pg.Translate(err)
		}
		if used {
			return ErrNotEmpty
		}
		if err := c.beginAfter(ctx); err != nil {
			return err
		}
	}
	names := []string{erasedUsers}
	for _, t := range copies {
		names = append(names, t.name)
	}
	if err := begin(ctx, c.Cell, 0, []string{"suppressions"}); err != nil {
		return err
	}
	return begin(ctx, c.Home, c.Number, names)
}

// begin makes db note changes of the tables for a cell.
func begin(ctx context.Context, db *pg.DB, other cell.Number, tables []string) error {
	return db.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:copies', 0))`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select copy_changes($1)`, tables); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into copying_cells (cell) values ($1) on conflict do nothing`, other)
		return err
	})
}

// Step copies changes that are due, first those of addresses from the cell to home, and returns
// whether there may be more. It does nothing while another worker copies.
func (c Copier) Step(ctx context.Context) (more bool, err error) {
	back, err := c.step(ctx, c.Cell, c.Home, 0)
	if err != nil {
		return false, err
	}
	more, err = c.step(ctx, c.Home, c.Cell, c.Number)
	return more || back, err
}

// due are changes of one table that follow each other.
type due struct {
	name string
	keys [][]string
}

func (c Copier) step(ctx context.Context, from, to *pg.DB, number cell.Number) (more bool, err error) {
	err = from.Tx(ctx, func(source pgx.Tx) error {
		var alone bool
		if err := source.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('dropbell:copies', 1 + $1))`, int64(number)).Scan(&alone); err != nil || !alone {
			return err
		}
		rows := pg.Rows(ctx, source, `select seq, name, key from copies_due where cell = $1 order by seq limit $2`, number, copyPage)
		var all []due
		var seqs []int64
		var seq int64
		var name string
		var key []string
		if _, err := pgx.ForEachRow(rows, []any{&seq, &name, &key}, func() error {
			if len(all) == 0 || all[len(all)-1].name != name {
				all = append(all, due{name: name})
			}
			d := &all[len(all)-1]
			d.keys, seqs = append(d.keys, slices.Clone(key)), append(seqs, seq)
			return nil
		}); err != nil {
			return err
		}
		for _, d := range all {
			if err := c.copy(ctx, source, to, d); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		more = len(seqs) == copyPage
		_, err = source.Exec(ctx, `delete from copies_due where seq = any($1)`, seqs)
		return err
	})
	return more, pg.Translate(err)
}

// copy makes the rows with the keys in the other database what they are in the source.
func (c Copier) copy(ctx context.Context, source pgx.Tx, to *pg.DB, d due) error {
	if d.name == erasedUsers {
		var ids []int64
		for _, key := range d.keys {
			var id int64
			if _, err := fmt.Sscan(key[0], &id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return c.erase(ctx, source, ids, true)
	}
	i := slices.IndexFunc(copies, func(t copied) bool { return t.name == d.name })
	if i < 0 {
		return nil // a table that is no longer copied
	}
	s, err := shapeOf(ctx, source, d.name)
	if err != nil {
		return err
	}
	t := copies[i]
	t.of += ` and (` + list(s.key) + `) in (` + s.literals(d.keys) + `)`
	return t.store(ctx, source, to, s, true)
}

// literals returns the keys as SQL.
func (s shape) literals(keys [][]string) string {
	rows := make([]string, len(keys))
	for i, key := range keys {
		parts := make([]string, len(key))
		for n, text := range key {
			parts[n] = `'` + strings.ReplaceAll(text, `'`, `''`) + `'::` + s.types[n]
		}
		rows[i] = `(` + strings.Join(parts, ", ") + `)`
	}
	return `values ` + strings.Join(rows, ", ")
}

// store makes the rows that meet the condition in the other database what they are in the source. Rows
// that the source does not have are removed if remove is set.
func (t copied) store(ctx context.Context, source pgx.Tx, to *pg.DB, s shape, remove bool) error {
	return inTx(ctx, to, "copies.store", func(target pgx.Tx) error {
		person := ofPerson[t.name]
		if person != "" {
			if _, err := target.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
				return err
			}
		}
		if err := copyRows(ctx, source, target, t.name, s.columns, `select `+list(s.columns)+` from `+t.name+` t where `+t.of); err != nil {
			return err
		}
		if remove {
			if _, err := target.Exec(ctx, `delete from `+t.name+` t where `+t.of+` and not exists (select from incoming i where `+s.equalKeys()+`)`); err != nil {
				return err
			}
		}
		if person != "" {
			if _, err := target.Exec(ctx, `delete from incoming i where exists (select from erased_users e where e.user_id = i.`+person+`)`); err != nil {
				return err
			}
		}
		_, err := upsert(ctx, target, t.name, s, t.only)
		return err
	})
}

// erase erases the users in the cell who were erased at home, and lets those be known again whose
// erasure was lifted there. The cell notes its own instants, by which its processes learn of erasures.
// again also erases users whom the cell has noted as erased: their erasure may have died.
func (c Copier) erase(ctx context.Context, home pgx.Tx, ids []int64, again bool) error {
	var erased, lifted, here []int64
	if err := home.QueryRow(ctx, `select coalesce(array_agg(u) filter (where e.user_id is not null), '{}'), coalesce(array_agg(u) filter (where e.user_id is null), '{}')
		from unnest($1::bigint[]) u left join erased_users e on e.user_id = u`, ids).Scan(&erased, &lifted); err != nil {
		return err
	}
	if _, err := write(ctx, c.Cell, "copies.lift", `delete from erased_users where user_id = any($1)`, lifted); err != nil {
		return err
	}
	if err := c.Cell.Pool.QueryRow(ctx, `select coalesce(array_agg(u order by u), '{}') from unnest($1::bigint[]) u
		where $2 or not exists (select from erased_users e where e.user_id = u) or exists (select from users where id = u)`, erased, again).Scan(&here); err != nil {
		return err
	}
	for _, id := range here {
		if err := c.Erase(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Compare makes all copies what home has, page by page: pages that are equal are passed over. A change
// that was not noted, such as one of a restored database, is found by it.
func (c Copier) Compare(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, c.Home.Pool, func(home pgx.Tx) error {
		if err := c.compareErased(ctx, home); err != nil {
			return err
		}
		for _, t := range copies {
			if err := each(ctx, home, t.table, func(p page) error {
				equal, err := p.equal(ctx, home, c.Cell)
				if err != nil || equal {
					return err
				}
				own := t
				own.of = p.where()
				return own.store(ctx, home, c.Cell, p.shape, !t.shared)
			}); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		return nil
	})
	const compared = `update copying_cells set compared_at = clock_timestamp() where cell = $1`
	if err == nil {
		_, err = write(ctx, c.Cell, "copies.compared", compared, 0)
	}
	if err == nil {
		_, err = write(ctx, c.Home, "copies.compared", compared, c.Number)
	}
	return pg.Translate(err)
}

// compareErased erases in the cell all users who were erased at home, and lifts erasures that home
// does not have.
func (c Copier) compareErased(ctx context.Context, home pgx.Tx) error {
	for _, side := range []interface {
		Query(context.Context, string, ...any) (pgx.Rows, error)
	}{home, c.Cell.Pool} {
		for after := int64(0); ; {
			rows := pg.Rows(ctx, side, `select user_id from erased_users where user_id > $1 order by user_id limit $2`, after, pageRows)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
			if err := c.erase(ctx, home, ids, false); err != nil {
				return err
			}
			after = ids[len(ids)-1]
		}
	}
	return nil
}

// Due is whether all rows are to be compared: they were not yet, or not within the last day.
func (c Copier) Due(ctx context.Context) (due bool, err error) {
	err = c.Home.Pool.QueryRow(ctx, `select compared_at is null or compared_at < clock_timestamp() - interval '1 day' from copying_cells where cell = $1`, c.Number).Scan(&due)
	return due, pg.Translate(err)
}
