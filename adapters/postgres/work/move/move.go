// Package move moves a shop to the database of another installation (ADR 110). Every row keeps its
// ids. Large tables are copied while the shop is in use, page by page, and pages that are equal are
// passed over, so that a move that ended early goes on where it was. Then writes of the shop are
// refused by locks on its rows, which a web and a worker answer for this shop alone; pages that
// have changed since are copied again, all tables are compared by rows and sums, and one
// transaction removes the rows here.
package move

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
	"dropbell/domain/staff"
)

// A Mover moves shops from the database Source to the database Target. Both need sessions of their
// own, and the migrations of this version.
type Mover struct {
	Source, Target *pg.DB
	// Check compares what both sides say about a drop, while its rows are in both and are refused
	// changes; nil = nothing is compared but the rows. An error undoes the last step of the move.
	Check func(ctx context.Context, drop int64) error
	// Tell, if not nil, is called with a line about each step.
	Tell func(line string)
	// Patience is how long a move waits for the workers of both databases, while writes of the shop
	// are refused; 0 = 30 s.
	Patience time.Duration
}

// Moved is the outcome of a move.
type Moved struct {
	To cell.Number
	// Drops are the drops that the shop has.
	Drops []int64
	// Rows were moved, of Tables tables.
	Rows   int64
	Tables int
	// Refused is how long writes of the shop were refused.
	Refused time.Duration
	// Before is whether the shop had moved before, so that nothing was done.
	Before bool
}

// lockWait is how long the last step waits for rows of the shop that others have locked.
const lockWait = "5s"

// move is one run.
type move struct {
	Mover
	shop   int64
	moved  Moved
	target cell.Number
	source cell.Number
	ids    *strings.Replacer
}

// Move moves the shop. A move that died is continued by the next call; a move of a shop that has
// moved does nothing. The error is [cell.ErrNotMovable] with the reason if the shop cannot be moved
// now.
func (m Mover) Move(ctx context.Context, shop int64) (Moved, error) {
	r := &move{Mover: m, shop: shop}
	err := r.alone(ctx, func() error {
		state, err := r.begin(ctx)
		if err != nil {
			return err
		}
		switch state {
		case "left":
			r.moved.Before = true
			return nil
		case "emptied":
			return r.arrive(ctx)
		}
		if err := r.copyBulk(ctx); err != nil {
			return err
		}
		if err := r.leave(ctx); err != nil {
			return err
		}
		return r.arrive(ctx)
	})
	r.moved.To = r.target
	return r.moved, translate(err)
}

// Undo removes what a move that was not finished has copied. The error is [cell.ErrNotMovable] if
// the rows have left the source already: the move can only be continued then.
func (m Mover) Undo(ctx context.Context, shop int64) error {
	r := &move{Mover: m, shop: shop}
	return translate(r.alone(ctx, func() error {
		state, err := r.begin(ctx)
		if err != nil {
			return err
		}
		if state != "leaving" {
			return cell.ErrNotMovable.Because("the rows of shop %d have moved; run worker move %d again to complete the move", shop, shop)
		}
		err = pgx.BeginFunc(ctx, r.Source.Pool, func(source pgx.Tx) error {
			if err := r.readIDs(ctx, source); err != nil {
				return err
			}
			return inTx(ctx, r.Target, "move.undo", func(target pgx.Tx) error {
				for _, t := range slices.Backward(r.tables(bulk, others)) {
					if t.name == "shops" { // may have been there before
						continue
					}
					if _, err := target.Exec(ctx, `delete from `+t.name+` t where `+t.of); err != nil {
						return err
					}
				}
				return r.forget(ctx, target)
			})
		})
		if err != nil {
			return err
		}
		_, err = write(ctx, r.Source, "move.undone", `delete from moves where shop_number = $1`, shop)
		return err
	}))
}

func (r *move) tell(format string, args ...any) {
	if r.Tell != nil {
		r.Tell(fmt.Sprintf(format, args...))
	}
}

// copyBulk copies the large tables as they are at one instant.
func (r *move) copyBulk(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, r.Source.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(source pgx.Tx) error {
		if err := r.readIDs(ctx, source); err != nil {
			return err
		}
		if err := r.refuse(ctx, source); err != nil {
			return err
		}
		for _, step := range []func(context.Context, pgx.Tx) error{r.bringBulk, r.copyUsers, r.passed} {
			if err := step(ctx, source); err != nil {
				return err
			}
		}
		return nil
	})
}

// bring makes the rows of the shop in the target those of the source.
func (r *move) bring(ctx context.Context, source pgx.Tx, tables []table) error {
	if err := r.beginAbove(ctx, source, tables); err != nil {
		return err
	}
	var differ []page
	for _, t := range tables {
		if err := each(ctx, source, t, func(p page) error {
			equal, err := p.equal(ctx, source, r.Target)
			if !equal {
				differ = append(differ, p)
			}
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, p := range slices.Backward(differ) { // rows before the rows that they refer to
		if err := p.remove(ctx, source, r.Target); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for len(differ) > 0 {
		var copied int64
		name := differ[0].name
		for ; len(differ) > 0 && differ[0].name == name; differ = differ[1:] {
			n, err := differ[0].store(ctx, source, r.Target)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			copied += n
		}
		if copied > 0 {
			r.tell("%s: %d rows copied", name, copied)
		}
	}
	return nil
}

// beginAbove makes the next ids of the target greater than the ids of the source: what the target
// plans for new coupons, in the order of their ids, passes over rows that have moved.
func (r *move) beginAbove(ctx context.Context, source pgx.Tx, tables []table) error {
	var names []string
	for _, t := range tables {
		names = append(names, t.name)
	}
	// Events of a drop or a coupon are put in order by their sequence. The margin is more than other
	// sessions draw between the two reads.
	var sequence int64
	if err := source.QueryRow(ctx, `select last_value from hook_sequence`).Scan(&sequence); err != nil {
		return err
	}
	if _, err := write(ctx, r.Target, "move.above", `select setval('hook_sequence', $1 + 100000) from hook_sequence where last_value <= $1`, sequence); err != nil {
		return err
	}
	named, err := pgx.CollectRows(pg.Rows(ctx, source, `select name from cell_identities where name = any($1) order by name`, names), pgx.RowTo[string])
	for _, name := range named {
		var greatest int64
		if err := source.QueryRow(ctx, `select coalesce(max(id), 0) from `+name).Scan(&greatest); err != nil {
			return err
		}
		if _, err := write(ctx, r.Target, "move.above", `select begin_above($1, $2)`, name, greatest); err != nil {
			return err
		}
	}
	return err
}

// leave copies everything once more while writes of the shop are refused, compares, and removes
// the rows from the source.
func (r *move) leave(ctx context.Context) error {
	var began time.Time
	err := inTx(ctx, r.Source, "move.leave", func(source pgx.Tx) error {
		if _, err := source.Exec(ctx, `set local lock_timeout = '`+lockWait+`'`); err != nil {
			return err
		}
		r.tell("writes of shop %d are refused from here on", r.shop)
		began = time.Now()
		for _, lock := range []string{`select from shops where number = $1 for update`, `select from templates where shop_number = $1 order by id for update`,
			`select from slots s where s.template_id in (select id from templates where shop_number = $1) and s.state = 'waiting' order by s.id for update`,
			`select from campaigns where shop_number = $1 order by id for update`,
			`with locked as materialized (select from coupons c where c.template_id in (select id from templates where shop_number = $1) order by c.id for update)
				select count(*) from locked`} {
			if _, err := source.Exec(ctx, lock, r.shop); err != nil {
				return err
			}
		}
		for _, step := range []func(context.Context, pgx.Tx) error{r.readIDs, r.refuse, r.settled, r.bringBulk, r.passed, r.told, r.bringOthers, r.copyUsers, r.check, r.carry, r.remove} {
			if err := step(ctx, source); err != nil {
				return err
			}
		}
		if _, err := source.Exec(ctx, `update moves set state = 'emptied', moved_at = clock_timestamp() where shop_number = $1`, r.shop); err != nil {
			return err
		}
		return r.note(ctx, source, fmt.Sprintf("to cell %d", r.target))
	})
	if !began.IsZero() {
		r.moved.Refused = time.Since(began)
	}
	return err
}

func (r *move) note(ctx context.Context, tx pgx.Tx, reason string) error {
	return pg.InsertAudit(ctx, tx, staff.Entry{Actor: staff.System(), Action: "shop.move", ObjectKind: "shop", ObjectID: strconv.FormatInt(r.shop, 10), ShopNumber: r.shop, Reason: reason})
}

func (r *move) bringBulk(ctx context.Context, source pgx.Tx) error {
	return r.bring(ctx, source, r.tables(bulk))
}

func (r *move) bringOthers(ctx context.Context, source pgx.Tx) error {
	return r.bring(ctx, source, r.tables(others))
}

func (r *move) check(ctx context.Context, _ pgx.Tx) error {
	if r.Check == nil {
		return nil
	}
	for _, drop := range r.moved.Drops {
		if err := r.Check(ctx, drop); err != nil {
			return err
		}
	}
	return nil
}

// carry moves rows that begin work by themselves to moving_rows.
func (r *move) carry(ctx context.Context, source pgx.Tx) error {
	tables := r.tables(acting)
	for i, t := range slices.Backward(tables) {
		tag, err := source.Exec(ctx, `with gone as (delete from `+t.name+` t where `+t.of+` returning t.*)
			insert into moving_rows (shop_number, seq, name, content) select $1, $2 + row_number() over (), $3, to_jsonb(gone) from gone`, r.shop, int64(i)<<40, t.name)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		r.moved.Rows += tag.RowsAffected()
	}
	return nil
}

// remove removes the rows from the source. What each statement removes must be what the target has.
func (r *move) remove(ctx context.Context, source pgx.Tx) error {
	for _, t := range r.tables(unneeded) {
		if _, err := source.Exec(ctx, `delete from `+t.name+` t where `+t.of); err != nil {
			return err
		}
	}
	for _, t := range slices.Backward(r.tables(bulk, others)) {
		s, err := shapeOf(ctx, source, t.name)
		if err != nil {
			return err
		}
		var gone, have sums
		if err := pgx.BeginTxFunc(ctx, r.Target.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(target pgx.Tx) (err error) {
			have, err = page{table: t, shape: s}.sums(ctx, target, s.columns)
			return err
		}); err != nil {
			return err
		}
		if err := source.QueryRow(ctx, `with gone as (delete from `+t.name+` t where `+t.of+` returning hashtextextended(row(`+list(s.columns)+`)::text, 0) as hash)
			select count(*), coalesce(sum(hash::numeric), 0)::text from gone`).Scan(&gone.rows, &gone.hash); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if gone != have {
			return cell.ErrNotMovable.Because("%s changed while it was compared (%d rows here, %d there); nothing was moved, run worker move again", t.name, gone.rows, have.rows)
		}
		if r.moved.Rows += gone.rows; gone.rows > 0 {
			r.moved.Tables++
		}
	}
	return nil
}

// arrivePage is how many rows of moving_rows are stored in the target at once.
const arrivePage = 1000

// arrive stores the rows of moving_rows in the target and ends the move.
func (r *move) arrive(ctx context.Context) error {
	for {
		var names []string
		var contents []string
		var last int64
		err := r.Source.Pool.QueryRow(ctx, `select coalesce(array_agg(name order by seq), '{}'), coalesce(array_agg(content::text order by seq), '{}'), coalesce(max(seq), 0)
			from (select * from moving_rows where shop_number = $1 order by seq limit $2) m`, r.shop, arrivePage).Scan(&names, &contents, &last)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
		if err := inTx(ctx, r.Target, "move.arrive", func(target pgx.Tx) error {
			for from, to := 0, 0; from < len(names); from = to {
				for to = from; to < len(names) && names[to] == names[from]; to++ {
				}
				if _, err := target.Exec(ctx, `insert into `+names[from]+` overriding system value select (jsonb_populate_record(null::`+names[from]+`, c::jsonb)).* from unnest($1::text[]) c
					on conflict do nothing`, contents[from:to]); err != nil {
					return fmt.Errorf("%s: %w", names[from], err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if _, err := write(ctx, r.Source, "move.arrived", `delete from moving_rows where shop_number = $1 and seq <= $2`, r.shop, last); err != nil {
			return err
		}
	}
	if err := inTx(ctx, r.Target, "move.taken", func(target pgx.Tx) error {
		tag, err := target.Exec(ctx, `delete from moves where shop_number = $1 and state = 'arriving'`, r.shop)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return r.note(ctx, target, fmt.Sprintf("from cell %d", r.source))
	}); err != nil {
		return err
	}
	_, err := write(ctx, r.Source, "move.left", `update moves set state = 'left' where shop_number = $1`, r.shop)
	return err
}
