package audience

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// SetOptOuts changes the channels in mask alone; see [user.Store].
func (s Users) SetOptOuts(ctx context.Context, id user.ID, mask, off uint8, e staff.Entry) (now uint8, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := noneErased(ctx, tx, []user.ID{id}); err != nil {
			return err
		}
		var stored int16
		// One statement, so that of two concurrent changes of different channels both take
		// effect.
		err := tx.QueryRow(ctx, `
			insert into users (id, opt_outs) values ($1, $3::smallint)
			on conflict (id) do update set opt_outs = users.opt_outs & ~$2::smallint | excluded.opt_outs,
				updated_at = case when users.opt_outs & $2::smallint = excluded.opt_outs then users.updated_at else now() end
			returning opt_outs`, id, int16(mask), int16(off&mask)).Scan(&stored)
		if err != nil {
			return err
		}
		if mask&(1<<delivery.SMS) != 0 { // a decision of its own, that START does not take back
			if _, err := tx.Exec(ctx, `delete from sms_stops where user_id = $1`, id); err != nil {
				return err
			}
		}
		if now = uint8(stored); e.Action != "" {
			if err := pg.InsertAudit(ctx, tx, e); err != nil {
				return err
			}
		}
		return pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)})
	})
	return now, err
}
