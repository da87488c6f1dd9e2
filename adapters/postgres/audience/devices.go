package audience

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/user"
)

// seenSQL returns the user's phone if it is stored with the same values and was seen lately, so
// that nothing has to be written.
const seenSQL = `
select d from users, jsonb_array_elements(devices) as d
where id = @id and devices @> jsonb_build_array(@device::jsonb) and d @> @device::jsonb
	and d -> 'app' is not distinct from @device::jsonb -> 'app'
	and (d ->> 'seen_at')::timestamptz > now() - @again::interval`

// holdersSQL locks the user and every other user who has one of the tokens. The comparison with
// '[]' is the condition of the partial index.
const holdersSQL = `
select id from users where id = @id
	or devices <> '[]' and devices @> jsonb_build_array(jsonb_build_object('token', @token::text))
	or devices <> '[]' and devices @> jsonb_build_array(jsonb_build_object('token', @replaced::text))
order by id for update`

// lockTokensSQL makes concurrent registrations of the same phone wait for each other. A phone
// that replaces no other phone has one token. The empty token is not locked: all users would
// share its lock.
const lockTokensSQL = `
select pg_advisory_xact_lock(hashtextextended('dropbell:device:' || t, 0)) from unnest(array[@token::text, @replaced::text]) as t where t <> '' order by t`

// releaseSQL takes the tokens from the other users.
const releaseSQL = `
update users set updated_at = now(), devices = ` + withoutTokens + `
where id = any(@others)`

// withoutTokens are the phones that have neither of the two tokens.
const withoutTokens = `coalesce((select jsonb_agg(d order by (d ->> 'seen_at')::timestamptz) from jsonb_array_elements(users.devices) as d
	where d ->> 'token' <> all(array[@token::text, @replaced::text])), '[]')`

// putDeviceSQL adds the phone; a user without a language gets the phone's language.
const putDeviceSQL = `
insert into users (id, locale, devices) values (@id, @locale, jsonb_build_array(@device::jsonb || jsonb_build_object('seen_at', now())))
on conflict (id) do update set updated_at = now(),
	locale = case when users.locale = '' then excluded.locale else users.locale end,
	devices = coalesce((select jsonb_agg(d order by (d ->> 'seen_at')::timestamptz) from (
		select d from jsonb_array_elements(` + withoutTokens + `) as d order by (d ->> 'seen_at')::timestamptz desc limit @most) as kept), '[]') || excluded.devices
returning devices -> -1`

// forgetConsentsSQL removes the consents that were given with a WeChat account, for the users
// among @losers who have no WeChat account left.
const forgetConsentsSQL = `
update reservations set consents = null where user_id = any(@losers) and consents is not null
	and not exists (select from users where id = reservations.user_id and devices @> '[{"platform":"wechat"}]')`

// PutDevice adds a phone to a user; see [user.DeviceStore].
func (s Users) PutDevice(ctx context.Context, id user.ID, d user.Device, replaced string) (stored user.Device, err error) {
	values := map[string]any{"platform": d.Platform, "token": d.Token, "app_version": d.AppVersion, "locale": d.Locale}
	if d.App != "" {
		values["app"] = d.App
	}
	device, err := json.Marshal(values)
	if err != nil {
		return stored, err
	}
	args := pgx.NamedArgs{"id": id, "device": string(device), "token": d.Token, "replaced": replaced, "locale": d.Locale,
		"most": user.MaxDevices - 1, "again": user.SeenAgain, "others": []user.ID{}}
	var raw []byte
	if replaced == "" {
		err = s.Pool.QueryRow(ctx, seenSQL, args).Scan(&raw)
		if err == nil {
			return stored, json.Unmarshal(raw, &stored)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return stored, pg.Translate(err)
		}
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockTokensSQL, args); err != nil {
			return err
		}
		if err := noneErased(ctx, tx, []user.ID{id}); err != nil {
			return err
		}
		holders, err := pgx.CollectRows(pg.Rows(ctx, tx, holdersSQL, args), pgx.RowTo[user.ID])
		if err != nil {
			return err
		}
		others := []user.ID{}
		for _, h := range holders {
			if h != id {
				others = append(others, h)
			}
		}
		if args["others"] = others; len(others) > 0 {
			if _, err := tx.Exec(ctx, releaseSQL, args); err != nil {
				return err
			}
			if err := forgetConsents(ctx, tx, d, others...); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, putDeviceSQL, args).Scan(&raw); err != nil {
			return err
		}
		for _, changed := range append(others, id) {
			if err := pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(changed), ToUser: int64(changed)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return stored, err
	}
	return stored, json.Unmarshal(raw, &stored)
}

// dropDeviceSQL removes one phone.
const dropDeviceSQL = `
update users set updated_at = now(), devices = coalesce((select jsonb_agg(d order by (d ->> 'seen_at')::timestamptz) from jsonb_array_elements(devices) as d
	where d ->> 'token' <> @token), '[]')
where id = @id and devices @> jsonb_build_array(jsonb_build_object('token', @token::text))`

// RemoveDevice removes a phone by its id; see [user.DeviceStore].
func (s Users) RemoveDevice(ctx context.Context, id user.ID, device string) error {
	var raw []byte
	err := s.Pool.QueryRow(ctx, `select devices from users where id = $1`, id).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Translate(err)
	}
	var list []user.Device
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, d := range list {
		if d.DeviceID() == device {
			_, err := s.removeToken(ctx, id, d, `true`, nil)
			return err
		}
	}
	return nil
}

// RemoveGone removes a phone whose app is gone according to its push service, unless the phone
// has registered again since it was read. removed reports whether a phone was removed.
func (s Users) RemoveGone(ctx context.Context, id user.ID, gone user.Device) (removed bool, err error) {
	return s.removeToken(ctx, id, gone, `not exists (select from jsonb_array_elements(devices) as d
		where d ->> 'token' = @token and (d ->> 'seen_at')::timestamptz > @seen)`, gone.SeenAt)
}

func (s Users) removeToken(ctx context.Context, id user.ID, d user.Device, condition string, seen any) (removed bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, dropDeviceSQL+` and `+condition, pgx.NamedArgs{"id": id, "token": d.Token, "seen": seen})
		if removed = tag.RowsAffected() > 0; err != nil || !removed {
			return err
		}
		if err := forgetConsents(ctx, tx, d, id); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)})
	})
	return removed, err
}

// forgetConsents removes the consents that users gave with the device, after they lost the
// device.
func forgetConsents(ctx context.Context, tx pgx.Tx, lost user.Device, losers ...user.ID) error {
	if !lost.Platform.OneTime() {
		return nil
	}
	_, err := tx.Exec(ctx, forgetConsentsSQL, pgx.NamedArgs{"losers": losers})
	return err
}
