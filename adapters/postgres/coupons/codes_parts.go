package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/redeemcode"
)

// SaveParts stores checksums and, with the last part, makes the batch ready; see
// [redeemcode.GeneratingStore]. Two processes may save the same parts.
func (s Codes) SaveParts(ctx context.Context, b redeemcode.Batch, parts []redeemcode.Part) error {
	numbers, codes, sums := make([]int64, len(parts)), make([]int64, len(parts)), make([][]byte, len(parts))
	for i, p := range parts {
		numbers[i], codes[i], sums[i] = p.Number, p.Codes, p.SHA256[:]
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var state redeemcode.BatchState
		err := tx.QueryRow(ctx, `select state from code_batches where id = $1 for no key update`, b.ID).Scan(&state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return redeemcode.ErrBatchNotFound
		case err != nil:
			return err
		case state == redeemcode.Revoked:
			return redeemcode.ErrRevoked
		}
		if err := insertParts(ctx, tx, b.ID, numbers, codes, sums); err != nil {
			return err
		}
		return s.countParts(ctx, tx, b.ID)
	})
}

// insertParts returns [redeemcode.ErrKeyMissing] if a part is already stored with
// another checksum.
func insertParts(ctx context.Context, tx pgx.Tx, batchID int64, numbers, codes []int64, sums [][]byte) error {
	_, err := tx.Exec(ctx, `insert into code_parts (batch_id, part, codes, sha256)
		select $1, n, c, h from unnest($2::bigint[], $3::bigint[], $4::bytea[]) as p (n, c, h) on conflict do nothing`, batchID, numbers, codes, sums)
	if err != nil {
		return err
	}
	var differ bool
	err = tx.QueryRow(ctx, `select exists (select from unnest($2::bigint[], $3::bytea[]) as p (n, h)
		join code_parts k on k.batch_id = $1 and k.part = p.n where k.sha256 <> p.h)`, batchID, numbers, sums).Scan(&differ)
	if err == nil && differ {
		return redeemcode.ErrKeyMissing
	}
	return err
}

// countParts updates the batch's counter; a hundred rows at most.
func (s Codes) countParts(ctx context.Context, tx pgx.Tx, batchID int64) error {
	var ready bool
	err := tx.QueryRow(ctx, `
		with done as (select coalesce(sum(codes), 0) as n from code_parts where batch_id = $1),
		before as (select state from code_batches where id = $1)
		update code_batches b set generated = done.n,
			state = case when done.n = b.count then 'ready' else b.state end,
			ready_at = case when done.n = b.count then coalesce(b.ready_at, clock_timestamp()) end
		from done, before where b.id = $1 returning b.state = 'ready' and before.state <> 'ready'`, batchID).Scan(&ready)
	if err != nil || !ready {
		return err
	}
	b, err := oneBatch(ctx, tx, `where b.id = $1`, batchID)
	if err != nil {
		return err
	}
	return announceCodes(ctx, tx, b)
}

// Parts returns the checksums of a batch in order.
func (s Codes) Parts(ctx context.Context, batchID int64) ([]redeemcode.Part, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, `select part, codes, sha256 from code_parts where batch_id = $1 order by part`, batchID), func(row pgx.CollectableRow) (p redeemcode.Part, err error) {
		var sum []byte
		if err := row.Scan(&p.Number, &p.Codes, &sum); err != nil {
			return p, err
		}
		p.SHA256 = [32]byte(sum) // the column holds 32 bytes, always
		return p, nil
	})
	return list, pg.Translate(err)
}
