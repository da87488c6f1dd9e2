package messages

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/picture"
	"dropbell/domain/staff"
)

// Pictures keeps the libraries of pictures. It is a [picture.Store].
type Pictures struct{ *pg.DB }

// NewPictures returns the libraries of db.
func NewPictures(db *pg.DB) Pictures { return Pictures{db} }

// lockPicture makes changes of one picture exclude each other until the transaction ends. The
// library's size is counted under the lock of the shop.
func lockPicture(ctx context.Context, tx pgx.Tx, shop int64) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('pictures', $1))`, shop)
	return err
}

// Add stores a picture; see [picture.Store].
func (s Pictures) Add(ctx context.Context, p picture.Picture, put func(context.Context) error, e staff.Entry) (picture.Picture, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockPicture(ctx, tx, p.Shop); err != nil {
			return err
		}
		var known, stored bool
		var count int
		err := tx.QueryRow(ctx, `select exists (select from shops where number = $1), exists (select from pictures where shop_number = $1 and hash = $2),
			(select count(*) from pictures where shop_number = $1)`, p.Shop, p.Hash).Scan(&known, &stored, &count)
		switch {
		case err != nil:
			return err
		case !known:
			return picture.ErrNotFound.Because("there is no such shop; create it first")
		case !stored && count >= picture.MaxPictures:
			return picture.ErrFull
		}
		// The file comes first: a row without its file would be a broken picture.
		if err := put(ctx); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `insert into pictures (shop_number, hash, type, width, height, bytes, name, alt, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			on conflict (shop_number, hash) do update set alt = excluded.alt returning id, name, created_by, created_at`,
			p.Shop, p.Hash, p.Type, p.Width, p.Height, p.Bytes, p.Name, p.Alt, p.By).Scan(&p.ID, &p.Name, &p.By, &p.At)
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return p, pg.Translate(err)
}

// usesSQL returns the texts of shop $1 that contain $2 now: template (0 = none), campaign (0 =
// none) and name.
const usesSQL = `
select v.template_id, 0::bigint, coalesce(t.name, '') from (
	select distinct on (template_id, kind, channel, language) template_id, content from message_versions where shop_number = $1
	order by template_id, kind, channel, language, id desc) v left join templates t on t.id = v.template_id
where strpos(v.content::text, $2) > 0 and (v.template_id = 0 or t.id is not null) group by v.template_id, t.name
union all
select 0, c.id, c.name from campaigns c where c.shop_number = $1 and strpos(c.content::text, $2) > 0
order by 1, 2 limit 20`

func uses(ctx context.Context, q pg.Reader, shop int64, hash string) ([]picture.Use, error) {
	return pgx.CollectRows(pg.Rows(ctx, q, usesSQL, shop, hash), func(row pgx.CollectableRow) (u picture.Use, err error) {
		return u, row.Scan(&u.Template, &u.Campaign, &u.Name)
	})
}

// Pictures returns pictures of the shop, the newest first.
func (s Pictures) Pictures(ctx context.Context, shop, before int64, limit int) ([]picture.Picture, error) {
	rows := pg.Rows(ctx, s.Pool, `select id, shop_number, hash, type, width, height, bytes, name, alt, created_by, created_at from pictures
		where shop_number = $1 and ($2 = 0 or id < $2) order by id desc limit $3`, shop, before, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p picture.Picture, err error) {
		return p, row.Scan(&p.ID, &p.Shop, &p.Hash, &p.Type, &p.Width, &p.Height, &p.Bytes, &p.Name, &p.Alt, &p.By, &p.At)
	})
	for i := range list {
		if err == nil {
			list[i].Uses, err = uses(ctx, s.Pool, shop, list[i].Hash)
		}
	}
	return list, pg.Translate(err)
}

// Describe changes the alternative text of a picture.
func (s Pictures) Describe(ctx context.Context, p picture.Picture, e staff.Entry) error {
	return pg.Translate(s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, picture.ErrNotFound, `update pictures set alt = $3 where shop_number = $1 and hash = $2`, p.Shop, p.Hash, p.Alt); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	}))
}

// Remove removes a picture; see [picture.Store]. It takes the lock of saves of texts too, so that
// no text gets the picture meanwhile.
func (s Pictures) Remove(ctx context.Context, shop int64, hash string, remove func(context.Context, picture.Picture) error, e staff.Entry) error {
	return pg.Translate(s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockPicture(ctx, tx, shop); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('message_versions'))`); err != nil {
			return err
		}
		p := picture.Picture{Shop: shop, Hash: hash}
		err := tx.QueryRow(ctx, `delete from pictures where shop_number = $1 and hash = $2 returning type`, shop, hash).Scan(&p.Type)
		if errors.Is(err, pgx.ErrNoRows) {
			return picture.ErrNotFound
		}
		if err != nil {
			return err
		}
		used, err := uses(ctx, tx, shop, hash)
		if err == nil && len(used) > 0 {
			return picture.InUse(used)
		}
		if err == nil {
			err = remove(ctx, p)
		}
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	}))
}

// PictureFiles keeps the files of pictures in the database. It is a [picture.Files].
type PictureFiles struct{ *pg.DB }

// NewPictureFiles returns the files of db.
func NewPictureFiles(db *pg.DB) PictureFiles { return PictureFiles{db} }

// Put stores a file.
func (s PictureFiles) Put(ctx context.Context, p picture.Picture, content []byte) error {
	_, err := s.Pool.Exec(ctx, `insert into picture_files (shop_number, hash, content) values ($1, $2, $3) on conflict do nothing`, p.Shop, p.Hash, content)
	return pg.Translate(err)
}

// Get returns a file, or [picture.ErrNotFound].
func (s PictureFiles) Get(ctx context.Context, p picture.Picture) (content []byte, err error) {
	err = s.Pool.QueryRow(ctx, `select content from picture_files where shop_number = $1 and hash = $2`, p.Shop, p.Hash).Scan(&content)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, picture.ErrNotFound
	}
	return content, pg.Translate(err)
}

// Remove removes a file.
func (s PictureFiles) Remove(ctx context.Context, p picture.Picture) error {
	_, err := s.Pool.Exec(ctx, `delete from picture_files where shop_number = $1 and hash = $2`, p.Shop, p.Hash)
	return pg.Translate(err)
}
