package audience

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/user"
)

// removePushSQL removes one subscription from the list, which keeps its order. The keys are
// compared, too: a browser that has subscribed again under the same endpoint has other keys.
const removePushSQL = `
update users set updated_at = now(), push = coalesce((select jsonb_agg(s.one order by s.n)
		from jsonb_array_elements(push) with ordinality as s (one, n)
		where (s.one ->> 'endpoint', s.one ->> 'p256dh', s.one ->> 'auth') is distinct from (@endpoint, @p256dh, @auth)), '[]')
where id = @id and push @> jsonb_build_array(jsonb_build_object('endpoint', @endpoint::text, 'p256dh', @p256dh::text, 'auth', @auth::text))`

// RemovePush removes a subscription that is gone according to its push service. removed reports
// whether the user still had this subscription with the same keys.
func (s Users) RemovePush(ctx context.Context, id user.ID, gone user.PushSubscription) (removed bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, removePushSQL, pgx.NamedArgs{"id": id, "endpoint": gone.Endpoint, "p256dh": gone.P256dh, "auth": gone.Auth})
		if removed = tag.RowsAffected() > 0; err != nil || !removed {
			return err
		}
		return pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)})
	})
	return removed, err
}
