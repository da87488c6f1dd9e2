package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/killpoint"
)

// WaitsFor is part of [draw.OperatorStore].
func (s Draws) WaitsFor(ctx context.Context, templateID int64) (w draw.DrawWork, waits bool, err error) {
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+drawColumns+drawFrom+`where d.template_id = $1 and d.state in ('drawn', 'offered') and not exists (select from`+unanswered+`)
			and exists (select from templates where id = $1 and waitlist <> 'off')
			and exists (select from draw_entries e where e.template_id = $1 and e.state = 'entered' and e.user_id > d.waits_to)`, templateID)
		if err != nil {
			return err
		}
		w.Draw, err = pgx.CollectExactlyOneRow(rows, scanDraw)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if waits = err == nil; !waits {
			return err
		}
		if w.Rows, err = readChunks(ctx, tx, templateID); err == nil {
			w.Struck, err = readStrikes(ctx, tx, templateID)
		}
		return err
	})
	return w, waits, pg.Translate(err)
}

// EnterWaiting is part of [draw.OperatorStore].
func (s Draws) EnterWaiting(ctx context.Context, templateID int64, limit int, rank func(draw.Ticket) (int64, bool)) (more bool, err error) {
	err = killpoint.Around("draw.wait", func() error {
		return s.Tx(ctx, func(tx pgx.Tx) error {
			more = false
			var after int64
			err := tx.QueryRow(ctx, `select waits_to from draws where template_id = $1 and state in ('drawn', 'offered') and not exists (select from`+unanswered+`) for update`, templateID).Scan(&after)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			rows := pg.Rows(ctx, tx, `select user_id, ticket from draw_entries where template_id = $1 and state = 'entered' and user_id > $2 order by user_id limit $3`,
				templateID, after, limit)
			var users, ranks []int64
			var id int64
			var ticket [16]byte
			n := 0
			if _, err = pgx.ForEachRow(rows, []any{&id, &ticket}, func() error {
				n, after = n+1, id
				if place, listed := rank(ticket); listed {
					users, ranks = append(users, id), append(ranks, place)
				}
				return nil
			}); err != nil || n == 0 {
				return err
			}
			if err := pg.EnterWaiters(ctx, tx, templateID, users, ranks); err != nil {
				return err
			}
			more = n == limit
			_, err = tx.Exec(ctx, `update draws set waits_to = $2 where template_id = $1`, templateID, after)
			return err
		})
	})
	return more, err
}
