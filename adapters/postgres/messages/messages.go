// Package messages stores the texts of messages: every save is a row, and rows
// never change.
package messages

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Messages keeps texts.
type Messages struct{ *pg.DB }

// NewMessages returns the texts of db.
func NewMessages(db *pg.DB) Messages { return Messages{db} }

const versionColumns = `v.id, v.shop_number, v.template_id, v.kind, v.channel, v.language, v.content, coalesce(v.restored_from, 0), v.created_by, v.created_at`

func scanVersion(row pgx.CollectableRow) (v message.Version, err error) {
	var content []byte
	err = row.Scan(&v.ID, &v.Shop, &v.Template, &v.Key.Kind, &v.Key.Channel, &v.Key.Language, &content, &v.RestoredFrom, &v.By, &v.At)
	if err != nil || content == nil {
		return v, err
	}
	v.Text = new(message.Text)
	return v, json.Unmarshal(content, v.Text)
}

// currentSQL returns the newest version of each key of shop $1 and template $2, up to version $3
// (negative = no limit).
const currentSQL = `
select distinct on (v.template_id, v.kind, v.channel, v.language) ` + versionColumns + ` from message_versions v
where v.shop_number = $1 and v.template_id in (0, $2) and ($3 < 0 or v.id <= $3)
order by v.template_id, v.kind, v.channel, v.language, v.id desc`

// Current returns the versions that count; see [message.Store].
func (s Messages) Current(ctx context.Context, p message.Place, upTo int64) ([]message.Version, error) {
	return pg.Collect(ctx, s.Pool, scanVersion, currentSQL, p.Shop, p.Template, upTo)
}

// History returns the versions of one key, the newest first.
func (s Messages) History(ctx context.Context, p message.Place, k message.Key, limit int) ([]message.Version, error) {
	return pg.Collect(ctx, s.Pool, scanVersion, `select `+versionColumns+` from message_versions v where v.shop_number = $1 and v.template_id = $2
		and v.kind = $3 and v.channel = $4 and v.language = $5 order by v.id desc limit $6`, p.Shop, p.Template, k.Kind, k.Channel, k.Language, limit)
}

// Version returns [message.ErrNotFound] if there is none.
func (s Messages) Version(ctx context.Context, id int64) (message.Version, error) {
	return pg.One(ctx, s.Pool, scanVersion, message.ErrNotFound, `select `+versionColumns+` from message_versions v where v.id = $1`, id)
}

// Save adds versions; see [message.Store]. Saves run one after the other. That keeps the order of
// ids, which batches rely on, and makes the comparison with BasedOn reliable. Staff save seldom, and
// a save takes a millisecond.
func (s Messages) Save(ctx context.Context, list ...message.Saving) ([]message.Version, error) {
	var stored []message.Version
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		stored = nil
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('message_versions'))`); err != nil {
			return err
		}
		for _, v := range list {
			saved, err := save(ctx, tx, v)
			if err != nil {
				return err
			}
			stored = append(stored, saved)
		}
		return nil
	})
	return stored, pg.Translate(err)
}

func save(ctx context.Context, tx pgx.Tx, s message.Saving) (message.Version, error) {
	v := s.Version
	var content []byte
	if v.Text != nil {
		var err error
		if content, err = json.Marshal(v.Text); err != nil {
			return v, err
		}
	}
	was, before, err := newest(ctx, tx, v)
	switch {
	case err != nil:
		return v, err
	case string(content) == before && was != 0:
		v.ID = was // nothing to change, and perhaps the repetition of a save
		return v, nil
	case was != s.BasedOn:
		return v, fault.ErrStale
	}
	if err := checkPlace(ctx, tx, v); err != nil {
		return v, err
	}
	err = tx.QueryRow(ctx, `insert into message_versions (shop_number, template_id, kind, channel, language, content, restored_from, created_by)
		values ($1, $2, $3, $4, $5, $6, nullif($7::bigint, 0), $8) returning id, created_at`,
		v.Shop, v.Template, v.Key.Kind, v.Key.Channel, v.Key.Language, content, v.RestoredFrom, v.By).Scan(&v.ID, &v.At)
	if err != nil {
		return v, err
	}
	return v, pg.InsertAudit(ctx, tx, s.Entry)
}

// newest returns the id of the newest version of the key (0 = no version), and the version's
// content in the encoding in which contents are stored.
func newest(ctx context.Context, tx pgx.Tx, v message.Version) (id int64, content string, err error) {
	var raw []byte
	err = tx.QueryRow(ctx, `select id, content from message_versions where shop_number = $1 and template_id = $2
		and kind = $3 and channel = $4 and language = $5 order by id desc limit 1`, v.Shop, v.Template, v.Key.Kind, v.Key.Channel, v.Key.Language).Scan(&id, &raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, "", nil
	}
	if err != nil || raw == nil {
		return id, "", err
	}
	var t message.Text
	if err := json.Unmarshal(raw, &t); err != nil {
		return id, "", err
	}
	again, err := json.Marshal(t)
	return id, string(again), err
}

// checkPlace returns [message.ErrNotFound] unless the shop exists, and the drop exists in that
// shop.
func checkPlace(ctx context.Context, tx pgx.Tx, v message.Version) error {
	var known bool
	err := tx.QueryRow(ctx, `select exists (select from shops where number = $1) and ($2::bigint = 0 or exists (select from templates where id = $2 and shop_number = $1))`,
		v.Shop, v.Template).Scan(&known)
	if err == nil && !known {
		return message.ErrNotFound
	}
	return err
}

// Look records that a member of staff has looked at the messages of a drop. Only the first look
// is kept.
func (s Messages) Look(ctx context.Context, template int64, by string) error {
	_, err := s.Pool.Exec(ctx, `insert into message_looks (template_id, by_member) values ($1, $2) on conflict do nothing`, template, by)
	return pg.Translate(err)
}

// Looked reports whether staff ever have.
func (s Messages) Looked(ctx context.Context, template int64) (looked bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from message_looks where template_id = $1)`, template).Scan(&looked)
	return looked, pg.Translate(err)
}

// OwnUser returns the user whose e-mail address is the member's, to whom a member sends test
// messages; false if there is no such user.
func (s Messages) OwnUser(ctx context.Context, email string) (u user.User, found bool, err error) {
	var push, devices []byte
	err = s.Pool.QueryRow(ctx, `select id, name, email, phone, locale, timezone, push, devices from users where lower(email) = lower($1) and email <> '' order by id limit 1`, email).
		Scan(&u.ID, &u.Name, &u.Email, &u.Phone, &u.Locale, &u.Timezone, &push, &devices)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, false, nil
	}
	if err != nil {
		return u, false, pg.Translate(err)
	}
	return u, true, errors.Join(json.Unmarshal(push, &u.Push), json.Unmarshal(devices, &u.Devices))
}
