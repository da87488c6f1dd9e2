package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const noContact = "''"

// contactColumns are the contacts that each channel needs.
var contactColumns = [delivery.Channels]string{
	delivery.App: noContact, delivery.Email: "email, exists (select from suppressions s where s.address = lower(email) and s.released_at is null)::int::text", delivery.SMS: "phone, coalesce(extract(epoch from phone_verified_at)::bigint::text, '')", delivery.WebPush: "push::text, devices::text", delivery.Webhook: noContact,
}

// Recipients returns the stored data of the users; see [delivery.Store].
func (s Batches) Recipients(ctx context.Context, c delivery.Channel, ids []user.ID, named bool) ([]user.User, error) {
	where, args := pg.UsersAmong(ids)
	if !named && contactColumns[c] == noContact {
		return s.alike(ctx, where, args, ids)
	}
	name := `''`
	if named {
		name = `name`
	}
	known := make([]user.User, 0, len(ids))
	var before user.User // most users share language and zone with their neighbours
	err := s.PlannedOnce(ctx, `select id, locale, timezone, `+name+`, `+contactColumns[c]+` from users where `+where+` order by id`, args, func(rows pgx.Rows) error {
		for rows.Next() {
			u, err := readRecipient(rows.RawValues(), c, before)
			if err != nil {
				return err
			}
			known, before = append(known, u), u
		}
		return rows.Err()
	})
	return known, pg.Translate(err)
}

// suppressedSQL returns the users among $1 whose mail address is suppressed.
const suppressedSQL = `select id from users where id = any($1)
	and exists (select from suppressions s where s.address = lower(email) and s.released_at is null)`

// Refusals returns the users among ids who have opted out of the channel and, for
// mail, the users whose address is suppressed; see [delivery.Store]. It sorts
// ids.
func (s Batches) Refusals(ctx context.Context, c delivery.Channel, ids []user.ID) (delivery.Refusals, error) {
	optedOut, err := s.optOuts.among(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	refusals := make(delivery.Refusals, len(optedOut))
	for id := range optedOut {
		refusals[id] = delivery.ReasonOptedOut
	}
	if c != delivery.Email {
		return refusals, nil
	}
	err = s.PlannedOnce(ctx, suppressedSQL, []any{ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			if id := user.ID(pg.Uint64(rows.RawValues()[0])); refusals[id] == "" {
				refusals[id] = delivery.ReasonSuppressed
			}
		}
		return rows.Err()
	})
	return refusals, pg.Translate(err)
}

// readRecipient decodes the values from the wire format, because the generic
// scanner costs more than the query.
func readRecipient(raw [][]byte, c delivery.Channel, before user.User) (u user.User, err error) {
	u.ID = user.ID(pg.Uint64(raw[0]))
	u.Locale, u.Timezone = sameOr(before.Locale, raw[1]), sameOr(before.Timezone, raw[2])
	u.Name = string(raw[3])
	switch c {
	case delivery.Email:
		u.Email, u.Suppressed = string(raw[4]), string(raw[5]) == "1"
	case delivery.SMS:
		u.Phone = string(raw[4])
		if at, err := strconv.ParseInt(string(raw[5]), 10, 64); err == nil { // "" = is not verified
			u.PhoneVerifiedAt = time.Unix(at, 0)
		}
	case delivery.WebPush:
		if err = json.Unmarshal(raw[4], &u.Push); err == nil && string(raw[5]) != "[]" {
			err = json.Unmarshal(raw[5], &u.Devices)
		}
	}
	return u, err
}

// sameOr returns before if it equals raw, so that no memory is allocated.
func sameOr(before string, raw []byte) string {
	if string(raw) == before {
		return before
	}
	return string(raw)
}

// alike returns only language and time zone of each user. There are few different
// pairs, so a row for each pair costs half as much as a row for each user.
func (s Batches) alike(ctx context.Context, where string, args []any, ids []user.ID) ([]user.User, error) {
	known := make([]user.User, len(ids))
	err := s.PlannedOnce(ctx, `select locale, timezone, array_agg(id) from users where `+where+` group by 1, 2`, args, func(rows pgx.Rows) error {
		for rows.Next() {
			raw := rows.RawValues()
			locale, zone := string(raw[0]), string(raw[1])
			at, asked := 0, false
			for id := range pg.WireIDs(raw[2]) {
				if at, asked = placeOf(id, ids, at); asked {
					known[at] = user.User{ID: id, Locale: locale, Timezone: zone}
				}
			}
		}
		return rows.Err()
	})
	return slices.DeleteFunc(known, func(u user.User) bool { return u.ID == 0 }), pg.Translate(err)
}

// nearby is the number of ids after the last place that are compared one by one.
const nearby = 8

// placeOf returns the index of id in the ascending ids, given the index of the
// previous id. Most ids come in ascending order, a few places apart.
func placeOf(id user.ID, ids []user.ID, after int) (at int, found bool) {
	for at = after; at < min(after+nearby, len(ids)); at++ {
		if ids[at] == id {
			return at, true
		}
	}
	return slices.BinarySearch(ids, id)
}
