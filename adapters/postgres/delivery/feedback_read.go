package delivery

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// reportsOf returns the reports about a batch's messages, and their causes.
func reportsOf(ctx context.Context, tx pgx.Tx, q delivery.RecipientQuery) (m pg.Reported, causes map[user.ID]string, err error) {
	var sets [4][]byte
	err = tx.QueryRow(ctx, `select delivered, bounced, complained, soft from batch_feedback where batch_id = $1`, q.BatchID).
		Scan(&sets[0], &sets[1], &sets[2], &sets[3])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return m, nil, err
	}
	if m, err = pg.DecodeReported(sets); err != nil {
		return m, nil, err
	}
	rows, err := tx.Query(ctx, `select user_id, cause from feedback_reports
		where batch_id = $1 and user_id > $2 and ($3::bigint = 0 or user_id = $3) and cause <> ''`, q.BatchID, q.After, q.Only)
	if err != nil {
		return m, nil, err
	}
	causes = map[user.ID]string{}
	var id user.ID
	var cause string
	_, err = pgx.ForEachRow(rows, []any{&id, &cause}, func() error {
		causes[id] = cause
		return nil
	})
	return m, causes, err
}
