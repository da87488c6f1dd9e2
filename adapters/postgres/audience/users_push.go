package audience

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

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

// lockBrowserSQL makes concurrent registrations of the same browser wait for each other.
const lockBrowserSQL = `select pg_advisory_xact_lock(hashtextextended('dropbell:browser:' || @endpoint::text, 0))`

// browserHoldersSQL locks the user and every other user who has the browser. The comparison with
// '[]' is the condition of the partial index.
const browserHoldersSQL = `
select id from users where id = @id
	or push <> '[]' and push @> jsonb_build_array(jsonb_build_object('endpoint', @endpoint::text))
order by id for update`

// withoutBrowser are the browsers that do not have the endpoint.
const withoutBrowser = `coalesce((select jsonb_agg(s.one order by s.n) from jsonb_array_elements(users.push) with ordinality as s (one, n)
	where s.one ->> 'endpoint' <> @endpoint), '[]')`

// releaseBrowserSQL takes the browser from the other users.
const releaseBrowserSQL = `update users set updated_at = now(), push = ` + withoutBrowser + ` where id = any(@others)`

// putBrowserSQL adds the browser as the newest of the user's browsers.
const putBrowserSQL = `
insert into users (id, push) values (@id, jsonb_build_array(@browser::jsonb))
on conflict (id) do update set updated_at = now(),
	push = coalesce((select jsonb_agg(kept.one order by kept.n) from (
		select s.one, s.n from jsonb_array_elements(` + withoutBrowser + `) with ordinality as s (one, n) order by s.n desc limit @most) as kept), '[]') || excluded.push`

// PutBrowser adds a browser to a user; see [user.BrowserStore].
func (s Users) PutBrowser(ctx context.Context, id user.ID, p user.PushSubscription) error {
	browser, err := json.Marshal(p)
	if err != nil {
		return err
	}
	args := pgx.NamedArgs{"id": id, "browser": string(browser), "endpoint": p.Endpoint, "most": user.MaxPush - 1, "others": []user.ID{}}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockBrowserSQL, args); err != nil {
			return err
		}
		if err := noneErased(ctx, tx, []user.ID{id}); err != nil {
			return err
		}
		changed, err := pgx.CollectRows(pg.Rows(ctx, tx, browserHoldersSQL, args), pgx.RowTo[user.ID])
		if err != nil {
			return err
		}
		changed = slices.DeleteFunc(changed, func(holder user.ID) bool { return holder == id })
		if args["others"] = changed; len(changed) > 0 {
			if _, err := tx.Exec(ctx, releaseBrowserSQL, args); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, putBrowserSQL, args); err != nil {
			return err
		}
		for _, one := range append(changed, id) {
			if err := pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(one), ToUser: int64(one)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveBrowser removes a browser by its id; see [user.BrowserStore].
func (s Users) RemoveBrowser(ctx context.Context, id user.ID, browser string) error {
	u, err := s.User(ctx, id)
	if errors.Is(err, user.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range u.Push {
		if p.BrowserID() == browser {
			_, err := s.RemovePush(ctx, id, p)
			return err
		}
	}
	return nil
}
