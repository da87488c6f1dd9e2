package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
)

// moveLock is the key of the lock that a move holds in both databases.
const moveLock = `hashtextextended('dropbell:move', 0)`

func translate(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" {
		return cell.ErrNotMovable.Because("rows of the shop are locked by another session; nothing was moved")
	}
	return pg.Translate(err)
}

// alone runs do while no other move from the source or to the target runs.
func (r *move) alone(ctx context.Context, do func() error) error {
	for _, db := range []*pg.DB{r.Source, r.Target} {
		conn, err := db.Pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		var got bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock(`+moveLock+`)`).Scan(&got); err != nil {
			return err
		}
		if !got {
			return cell.ErrNotMovable.Because("another move is under way")
		}
		defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock(`+moveLock+`)`) }()
	}
	return do()
}

// begin records the move in both databases and returns its state in the source.
func (r *move) begin(ctx context.Context) (state string, err error) {
	const number = `select number from cell`
	if err = r.Source.Pool.QueryRow(ctx, number).Scan(&r.source); err == nil {
		err = r.Target.Pool.QueryRow(ctx, number).Scan(&r.target)
	}
	if err != nil {
		return "", err
	}
	if r.source == r.target {
		return "", cell.ErrNotMovable.Because("both databases are cell %d; number the other one while it is empty, see worker cell", r.source)
	}
	var to cell.Number
	err = r.Source.Pool.QueryRow(ctx, `select state, cell from moves where shop_number = $1`, r.shop).Scan(&state, &to)
	switch {
	case state == "arriving":
		return "", cell.ErrNotMovable.Because("shop %d is still arriving here from cell %d; complete that move first", r.shop, to)
	case err == nil && to != r.target:
		return "", cell.ErrNotMovable.Because("shop %d moves to cell %d, or has moved there, and not to cell %d", r.shop, to, r.target)
	case err == nil && state != "leaving":
		return state, nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return "", err
	}
	var known, arriving, theirs bool
	if err := r.Source.Pool.QueryRow(ctx, `select exists (select from shops where number = $1)`, r.shop).Scan(&known); err != nil {
		return "", err
	}
	if !known {
		return "", cell.ErrNotMovable.Because("there is no shop %d here", r.shop)
	}
	err = r.Target.Pool.QueryRow(ctx, `select exists (select from moves where shop_number = $1 and state = 'arriving'),
		exists (select from templates where shop_number = $1) or exists (select from campaigns where shop_number = $1) or exists (select from orders where shop_number = $1)`,
		r.shop).Scan(&arriving, &theirs)
	if err != nil {
		return "", err
	}
	if theirs && !arriving {
		return "", cell.ErrNotMovable.Because("the other database has rows of a shop %d already", r.shop)
	}
	// In the target first: rows of a shop that arrives are recognised by it.
	added, err := write(ctx, r.Target, "move.arriving", `insert into moves (shop_number, cell, state) values ($1, $2, 'arriving')
		on conflict (shop_number) do update set cell = excluded.cell, state = excluded.state, started_at = clock_timestamp(), moved_at = null where moves.state in ('left', 'arriving')`,
		r.shop, r.source)
	if err == nil && added == 0 {
		err = cell.ErrNotMovable.Because("shop %d is leaving the other database; complete that move first", r.shop)
	}
	if err != nil {
		return "", err
	}
	_, err = write(ctx, r.Source, "move.leaving", `insert into moves (shop_number, cell, state) values ($1, $2, 'leaving') on conflict (shop_number) do nothing`, r.shop, r.target)
	return "leaving", err
}

// readIDs reads the ids that the conditions of the tables name.
func (r *move) readIDs(ctx context.Context, source pgx.Tx) error {
	var campaigns, uploads []int64
	err := source.QueryRow(ctx, `select array(select id from templates where shop_number = $1 order by id), array(select id from campaigns where shop_number = $1 order by id),
		array(select distinct upload_id from jobs where shop_number = $1 and upload_id is not null)`, r.shop).Scan(&r.moved.Drops, &campaigns, &uploads)
	r.ids = strings.NewReplacer("{shop}", strconv.FormatInt(r.shop, 10), "{drops}", array(r.moved.Drops), "{campaigns}", array(campaigns), "{uploads}", array(uploads))
	return err
}

// array returns the ids as SQL.
func array(ids []int64) string {
	return `'{` + strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") + `}'::bigint[]`
}

// tables returns the tables with the ids in their conditions.
func (r *move) tables(lists ...[]table) []table {
	all := slices.Concat(lists...)
	for i, t := range all {
		all[i].of = r.ids.Replace(t.of)
	}
	return all
}

func (r *move) forget(ctx context.Context, target pgx.Tx) error {
	_, err := target.Exec(ctx, `delete from moves where shop_number = $1`, r.shop)
	return err
}
