package audience

import (
	"context"
	"crypto/sha256"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/event"
	"dropbell/domain/user"
)

// smsBit is the channel's bit among opt-outs.
const smsBit = 1 << delivery.SMS

// stopSQL opts out the users with one of the numbers $1 and returns them. Users who had opted
// out before are neither changed nor returned.
const stopSQL = `
update users u set opt_outs = u.opt_outs | $2::smallint, updated_at = now()
from (select id from users where phone = any($1::text[]) and phone <> '' order by id for update) mine
where u.id = mine.id and u.opt_outs & $2::smallint = 0 returning u.id`

// startSQL opts in the users with one of the numbers $1 whom STOP had opted out, and returns
// them.
const startSQL = `
update users u set opt_outs = u.opt_outs & ~$2::smallint, updated_at = now()
from (select u.id from users u join sms_stops s on s.user_id = u.id where u.phone = any($1::text[]) and u.phone <> '' order by u.id for update of u) mine
where u.id = mine.id and u.opt_outs & $2::smallint <> 0 returning u.id`

// CarryOut applies a word (STOP or START) in one transaction; see [feedback.Words].
func (s Users) CarryOut(ctx context.Context, word feedback.Word, r feedback.Reply, numbers []string) error {
	id := sha256.Sum256([]byte(r.ID))
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// The row waits for a transaction that carries out the same message.
		tag, err := tx.Exec(ctx, `insert into sms_replies (provider, id, word, users) values ($1, $2, $3, 0) on conflict do nothing`, r.Provider, id[:], string(word))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		sql := map[feedback.Word]string{feedback.Stop: stopSQL, feedback.Start: startSQL}[word]
		if sql == "" {
			return nil
		}
		ids, err := pgx.CollectRows(pg.Rows(ctx, tx, sql, numbers, int16(smsBit)), pgx.RowTo[user.ID])
		if err != nil || len(ids) == 0 {
			return err
		}
		if word == feedback.Stop {
			// A separate statement: the trigger of the update deletes only rows that were stored
			// before the update.
			if _, err := tx.Exec(ctx, `insert into sms_stops (user_id) select unnest($1::bigint[]) on conflict do nothing`, ids); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `update sms_replies set users = $3 where provider = $1 and id = $2`, r.Provider, id[:], len(ids)); err != nil {
			return err
		}
		for _, id := range ids {
			if err := pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)}); err != nil {
				return err
			}
		}
		return nil
	})
}
