package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/redeemcode"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// bindSQL returns whether the drop of batch $1 is open or to come, and the state of the batch. It locks the batch, whose
// counter the binding changes: two users of one code come one after the other.
const bindSQL = `select t.state in ('published', 'paused') and ` + pg.TemplateEndsAt + ` > clock_timestamp(), b.state
from code_batches b join templates t on t.id = b.template_id where b.id = $1 for no key update of b`

// Bind implements [redeemcode.AccessStore].
func (s Codes) Bind(ctx context.Context, b redeemcode.Batch, serial redeemcode.Serial, by user.ID) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var live bool
		var state redeemcode.BatchState
		err := tx.QueryRow(ctx, bindSQL, b.ID).Scan(&live, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && state != redeemcode.Ready:
			return redeemcode.ErrInvalid
		case err != nil:
			return err
		case !live:
			return template.ErrNotOpen
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
			return err
		}
		var erased, has bool
		err = tx.QueryRow(ctx, `select exists (select from erased_users where user_id = $2), exists (select from door_codes where template_id = $1 and user_id = $2)`,
			b.TemplateID, by).Scan(&erased, &has)
		if err == nil && erased {
			return user.ErrErased
		}
		if err != nil || has {
			return err
		}
		tag, err := tx.Exec(ctx, `insert into door_codes (serial, template_id, batch_id, user_id) values ($1, $2, $3, $4) on conflict do nothing`,
			int64(serial), b.TemplateID, b.ID, by)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return s.whose(ctx, tx, b, by)
		}
		_, err = tx.Exec(ctx, `update code_batches set used = used + 1 where id = $1`, b.ID)
		return err
	})
}

// whose returns nil if the conflict was with a code of another batch that the user entered at the same time, otherwise
// [redeemcode.ErrUsed].
func (s Codes) whose(ctx context.Context, tx pgx.Tx, b redeemcode.Batch, by user.ID) error {
	var own bool
	err := tx.QueryRow(ctx, `select exists (select from door_codes where template_id = $1 and user_id = $2)`, b.TemplateID, by).Scan(&own)
	if err == nil && !own {
		return redeemcode.ErrUsed
	}
	return err
}
