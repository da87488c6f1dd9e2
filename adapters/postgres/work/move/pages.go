package move

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
	"dropbell/killpoint"
)

// pageRows is how many rows are compared, and copied if they differ, at once.
const pageRows = 5000

// shape is what the catalogue says about a table: its columns, its primary key, and the columns
// outside of the key.
type shape struct{ columns, key, types, values []string }

func shapeOf(ctx context.Context, db pgx.Tx, name string) (s shape, err error) {
	rows := pg.Rows(ctx, db, `select quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), coalesce(array_position(i.indkey::int2[], a.attnum), -1)
		from pg_attribute a join pg_index i on i.indrelid = a.attrelid and i.indisprimary
		where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by 3, a.attname`, name)
	var column, kind string
	var place int
	_, err = pgx.ForEachRow(rows, []any{&column, &kind, &place}, func() error {
		if s.columns = append(s.columns, column); place >= 0 {
			s.key, s.types = append(s.key, column), append(s.types, kind)
		} else {
			s.values = append(s.values, column)
		}
		return nil
	})
	if err == nil && len(s.key) == 0 {
		err = fmt.Errorf("%s has no primary key", name)
	}
	return s, err
}

// list returns the columns of t as a list.
func list(columns []string) string { return prefixed("t.", columns) }

func prefixed(prefix string, columns []string) string {
	return prefix + strings.Join(columns, ", "+prefix)
}

// sums are the number of rows and the sum of their hashes.
type sums struct {
	rows int64
	hash string
}

// page is a part of a table's rows in the order of the primary key: after is the key of the last
// row before, to the key of the last row, as SQL; empty = the beginning or the end.
type page struct {
	table
	shape
	after, to string
}

// where is the condition for the rows of the page.
func (p page) where() string {
	text := p.table.of
	if p.after != "" {
		text += ` and (` + list(p.key) + `) > (` + p.after + `)`
	}
	if p.to != "" {
		text += ` and (` + list(p.key) + `) <= (` + p.to + `)`
	}
	return text
}

func (p page) sums(ctx context.Context, db pgx.Tx, columns []string) (s sums, err error) {
	err = db.QueryRow(ctx, `select count(*), coalesce(sum(hashtextextended(row(`+list(columns)+`)::text, 0)::numeric), 0)::text from `+p.name+` t where `+p.where()).Scan(&s.rows, &s.hash)
	return s, err
}

// next returns the page after p.
func (p page) next(ctx context.Context, db pgx.Tx) (page, error) {
	p.after, p.to = p.to, ""
	formats := make([]string, len(p.key))
	for i, kind := range p.types {
		formats[i] = "%L::" + kind
	}
	rows := pg.Rows(ctx, db, fmt.Sprintf(`select format('%s', %s) from %s t where %s order by %s offset %d limit 1`,
		strings.Join(formats, ", "), list(p.key), p.name, p.where(), list(p.key), pageRows-1))
	last, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if len(last) > 0 {
		p.to = last[0]
	}
	return p, err
}

// each calls do with the pages of the table in the source.
func each(ctx context.Context, source pgx.Tx, t table, do func(page) error) error {
	s, err := shapeOf(ctx, source, t.name)
	if err != nil {
		return err
	}
	for p := (page{table: t, shape: s}); ; {
		if p, err = p.next(ctx, source); err != nil {
			return err
		}
		if err := do(p); err != nil || p.to == "" {
			return err
		}
	}
}

// copyRows copies the rows that query selects to a new table of target's transaction, incoming,
// which is like the table called name.
func copyRows(ctx context.Context, source, target pgx.Tx, name string, columns []string, query string) error {
	var rows bytes.Buffer
	if _, err := source.Conn().PgConn().CopyTo(ctx, &rows, `copy (`+query+`) to stdout (format binary)`); err != nil {
		return err
	}
	if _, err := target.Exec(ctx, `create temporary table incoming on commit drop as select `+strings.Join(columns, ", ")+` from `+name+` limit 0`); err != nil {
		return err
	}
	_, err := target.Conn().PgConn().CopyFrom(ctx, &rows, `copy incoming (`+strings.Join(columns, ", ")+`) from stdin (format binary)`)
	return err
}

// equalKeys compares the keys of incoming with those of t.
func (s shape) equalKeys() string { return `(` + prefixed("i.", s.key) + `) = (` + list(s.key) + `)` }

// equal reports whether the page has the same rows in both databases.
func (p page) equal(ctx context.Context, source pgx.Tx, db *pg.DB) (bool, error) {
	want, err := p.sums(ctx, source, p.columns)
	if err != nil {
		return false, err
	}
	var have sums
	err = pgx.BeginFunc(ctx, db.Pool, func(target pgx.Tx) (err error) {
		have, err = p.sums(ctx, target, p.columns)
		return err
	})
	return have == want, err
}

// remove removes the rows of the page from target that source does not have.
func (p page) remove(ctx context.Context, source pgx.Tx, db *pg.DB) error {
	return inTx(ctx, db, "move.page.remove", func(target pgx.Tx) error {
		var some bool
		if err := target.QueryRow(ctx, `select exists (select from `+p.name+` t where `+p.where()+`)`).Scan(&some); err != nil || !some {
			return err
		}
		if err := copyRows(ctx, source, target, p.name, p.key, `select `+list(p.key)+` from `+p.name+` t where `+p.where()); err != nil {
			return err
		}
		_, err := target.Exec(ctx, `delete from `+p.name+` t where `+p.where()+` and not exists (select from incoming i where `+p.equalKeys()+`)`)
		return err
	})
}

// store stores the rows of the page in target that it does not have or has with other values, and
// returns how many. A row of another shop is never replaced.
func (p page) store(ctx context.Context, source pgx.Tx, db *pg.DB) (n int64, err error) {
	err = inTx(ctx, db, "move.page.store", func(target pgx.Tx) error {
		if err := copyRows(ctx, source, target, p.name, p.columns, `select `+list(p.columns)+` from `+p.name+` t where `+p.where()); err != nil {
			return err
		}
		var taken bool
		if err := target.QueryRow(ctx, `select exists (select from incoming i join `+p.name+` t on `+p.equalKeys()+` where (`+p.table.of+`) is not true)`).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return cell.ErrNotMovable.Because("the other database has rows of other shops with ids of this shop's rows in %s; see worker cell", p.name)
		}
		n, err = upsert(ctx, target, p.name, p.shape, ``)
		return err
	})
	return n, err
}

// upsert stores the rows of incoming in the table. Rows that are there already are replaced if they
// differ and meet the condition only, in which t is the stored row.
func upsert(ctx context.Context, target pgx.Tx, name string, s shape, only string) (int64, error) {
	action := `nothing`
	if len(s.values) > 0 {
		set := make([]string, len(s.values))
		for i, c := range s.values {
			set[i] = c + " = excluded." + c
		}
		action = `update set ` + strings.Join(set, ", ") + ` where row(` + list(s.values) + `) is distinct from row(` + prefixed("excluded.", s.values) + `)` + only
	}
	columns := strings.Join(s.columns, ", ")
	tag, err := target.Exec(ctx, `insert into `+name+` as t (`+columns+`) overriding system value select `+columns+` from incoming on conflict (`+strings.Join(s.key, ", ")+`) do `+action)
	return tag.RowsAffected(), err
}

// inTx runs do in a transaction of its own. The instants of the kill point are right before and right
// after the commit.
func inTx(ctx context.Context, db *pg.DB, point string, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return killpoint.Before(point)
	})
	if err == nil {
		err = killpoint.After(point)
	}
	return err
}

// write runs one statement that changes rows.
func write(ctx context.Context, db *pg.DB, point, sql string, args ...any) (changed int64, err error) {
	err = killpoint.Around(point, func() error {
		tag, err := db.Pool.Exec(ctx, sql, args...)
		changed = tag.RowsAffected()
		return err
	})
	return changed, err
}
