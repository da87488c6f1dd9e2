package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
)

// Wallet stores which coupons have a pass in a wallet, and the devices that registered for a
// pass; see [wallet.Store] and [wallet.Changes].
type Wallet struct{ *pg.DB }

// NewWallet returns the passes of db.
func NewWallet(db *pg.DB) Wallet { return Wallet{db} }

// issueSQL records that coupon $1 has a pass. The coupon's row is locked, so any step that
// this statement does not see commits later, and the step's event then finds the pass.
const issueSQL = `
insert into wallet_passes as p (coupon_id, user_id, expires_at, google, coupon_version)
select c.id, c.user_id, c.expires_at, $2, c.version from (select * from coupons where id = $1 for share) c
where not exists (select from erased_users e where e.user_id = c.user_id)
on conflict (coupon_id) do update set google = true where $2 and not p.google`

// Issue records that the coupon has a pass; see [wallet.Store].
func (s Wallet) Issue(ctx context.Context, couponID int64, google bool) error {
	var known bool
	err := s.Pool.QueryRow(ctx, `select google or not $2 from wallet_passes where coupon_id = $1`, couponID, google).Scan(&known)
	if known || err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return pg.Translate(err)
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, issueSQL, couponID, google)
		return err
	})
}

// sheetSQL returns coupon $1 with the data that its pass shows.
var sheetSQL = `
select ` + ownedColumns + `, clock_timestamp(), t.shop_number, h.name, h.timezone, t.name, left(t.description, 1000), coalesce(u.locale, ''), newest_message(),
	coalesce(p.modified_at, date_trunc('second', c.updated_at)), ` + pg.WorthColumns + `
from coupons c join templates t on t.id = c.template_id join shops h on h.number = t.shop_number
	left join users u on u.id = c.user_id left join wallet_passes p on p.coupon_id = c.id
where c.id = $1`

// Sheet returns the coupon with the data that its pass shows; see [wallet.Store].
func (s Wallet) Sheet(ctx context.Context, couponID int64) (x wallet.Sheet, err error) {
	fields := append(pg.RowPlaces(&x.Coupon), &x.Now, &x.ShopNumber, &x.Shop, &x.Zone, &x.Drop, &x.About, &x.Locale, &x.TextsUpTo, &x.Modified)
	err = s.Pool.QueryRow(ctx, sheetSQL, couponID).Scan(append(fields, pg.WorthFields(&x.Worth)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return x, coupon.ErrNotFound
	}
	return x, pg.Translate(err)
}

// Register stores a device; see [wallet.Store]. The pass is locked first. So a worker that
// records results at the same time sees the device, and two devices that register at the same
// time count each other.
func (s Wallet) Register(ctx context.Context, device string, couponID int64, token string) (added bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var revision, owner, others int64
		err := tx.QueryRow(ctx, `select revision, user_id from wallet_passes where coupon_id = $1 for no key update`, couponID).Scan(&revision, &owner)
		if errors.Is(err, pgx.ErrNoRows) {
			return wallet.ErrUnknown
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select count(*) from wallet_registrations where coupon_id = $1 and device <> $2`, couponID, device).Scan(&others); err != nil {
			return err
		}
		if others >= wallet.MaxDevices {
			return wallet.ErrFull
		}
		// A device that is new to a pass that has changed is woken for it.
		if err := tx.QueryRow(ctx, `
			insert into wallet_registrations as r (device, coupon_id, user_id, push_token, told) values ($1, $2, $3, $4, case when $5::bigint > 1 then 0 else $5 end)
			on conflict (device, coupon_id) do update set push_token = excluded.push_token returning xmax = 0`, device, couponID, owner, token, revision).Scan(&added); err != nil {
			return err
		}
		if !added || revision == 1 {
			return nil
		}
		_, err = tx.Exec(ctx, `update wallet_passes set next_at = clock_timestamp(), changed_at = clock_timestamp(), attempts = 0 where coupon_id = $1`, couponID)
		return err
	})
	return added, err
}

// Unregister removes a device; see [wallet.Store].
func (s Wallet) Unregister(ctx context.Context, device string, couponID int64) error {
	_, err := s.Pool.Exec(ctx, `delete from wallet_registrations where device = $1 and coupon_id = $2`, device, couponID)
	return pg.Translate(err)
}

// Changed lists passes that have changed; see [wallet.Store].
func (s Wallet) Changed(ctx context.Context, device string, since time.Time) (ids []int64, latest time.Time, err error) {
	rows := pg.Rows(ctx, s.Pool, `
		select p.coupon_id, p.modified_at from wallet_registrations r join wallet_passes p on p.coupon_id = r.coupon_id
		where r.device = $1 and p.modified_at >= $2 order by p.modified_at, p.coupon_id`, device, since)
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id, &latest}, func() error {
		ids = append(ids, id)
		return nil
	})
	return ids, latest, pg.Translate(err)
}
