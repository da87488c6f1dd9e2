package delivery

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// reportsOf returns what was reported of a batch's messages, and the causes.
func reportsOf(ctx context.Context, tx pgx.Tx, q delivery.RecipientQuery) (*marks, map[user.ID]string, error) {
	var sets [5][]byte
	err := tx.QueryRow(ctx, `select delivered, bounced, complained, soft from batch_feedback where batch_id = $1`, q.BatchID).
		Scan(&sets[0], &sets[1], &sets[2], &sets[3])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, err
	}
	m, err := decodeMarks(sets)
	if err != nil {
		return nil, nil, err
	}
	rows, err := tx.Query(ctx, `select user_id, cause from feedback_reports
		where batch_id = $1 and user_id > $2 and ($3::bigint = 0 or user_id = $3) and cause <> ''`, q.BatchID, q.After, q.Only)
	if err != nil {
		return nil, nil, err
	}
	causes := map[user.ID]string{}
	var id user.ID
	var cause string
	_, err = pgx.ForEachRow(rows, []any{&id, &cause}, func() error {
		causes[id] = cause
		return nil
	})
	return m, causes, err
}
