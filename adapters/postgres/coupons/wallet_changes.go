package coupons

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon/wallet"
)

// changeSQL are the assignments that record a change of pass p.
const changeSQL = `revision = p.revision + 1, modified_at = greatest(date_trunc('second', clock_timestamp()), p.modified_at + interval '1 second'),
	next_at = clock_timestamp(), changed_at = clock_timestamp(), attempts = 0`

// Note records steps of coupons as changes of their passes; see [wallet.Changes]. The coupons'
// versions ensure that each step is recorded at most once. Rows are locked in the order of ids.
func (s Wallet) Note(ctx context.Context, coupons []int64) (bool, error) {
	tag, err := s.Pool.Exec(ctx, `
		with stepped as (
			select p.coupon_id, c.version from wallet_passes p join coupons c on c.id = p.coupon_id
			where p.coupon_id = any($1) and c.version > p.coupon_version order by p.coupon_id for no key update of p
		)
		update wallet_passes p set coupon_version = s.version, `+changeSQL+` from stepped s where p.coupon_id = s.coupon_id and s.version > p.coupon_version`, coupons)
	return tag.RowsAffected() > 0, pg.Translate(err)
}

// Any reports whether a coupon has a pass.
func (s Wallet) Any(ctx context.Context) (some bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from wallet_passes)`).Scan(&some)
	return some, pg.Translate(err)
}

// NoteExpired makes expiries changes of passes; see [wallet.Changes].
func (s Wallet) NoteExpired(ctx context.Context, limit int) (int, error) {
	tag, err := s.Pool.Exec(ctx, `
		with due as (
			select coupon_id from wallet_passes where not expiry_noted and expires_at <= statement_timestamp() order by expires_at limit $1 for update skip locked
		)
		update wallet_passes p set expiry_noted = true, `+changeSQL+` from due where p.coupon_id = due.coupon_id`, limit)
	return int(tag.RowsAffected()), pg.Translate(err)
}

// noteMissedSQL compares the $2 passes after coupon $1 with their coupons. A pass that another
// worker has locked is skipped until the next round.
const noteMissedSQL = `
with compared as (
	select coupon_id from wallet_passes where coupon_id > $1 order by coupon_id limit $2
), missed as (
	select p.coupon_id, c.version from compared s join wallet_passes p on p.coupon_id = s.coupon_id join coupons c on c.id = s.coupon_id
	where c.version > p.coupon_version for no key update of p skip locked
), noted as (
	update wallet_passes p set coupon_version = m.version, ` + changeSQL + ` from missed m where p.coupon_id = m.coupon_id
)
select case when count(*) < $2 then 0 else max(coupon_id) end from compared`

// NoteMissed records steps of coupons whose event was lost as changes of their passes; see
// [wallet.Changes].
func (s Wallet) NoteMissed(ctx context.Context, after int64, limit int) (last int64, err error) {
	err = s.Pool.QueryRow(ctx, noteMissedSQL, after, limit).Scan(&last)
	return last, pg.Translate(err)
}

// Due reports whether a change is due; see [wallet.Changes].
func (s Wallet) Due(ctx context.Context) (due bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from wallet_passes where next_at <= statement_timestamp() and (lease_until is null or lease_until <= clock_timestamp()))`).Scan(&due)
	return due, pg.Translate(err)
}

// leaseWalletSQL leases up to @limit due passes. It returns them with the state of their
// coupons and the devices that are to be notified.
const leaseWalletSQL = `
with due as (
    select coupon_id from wallet_passes where next_at <= statement_timestamp() and (lease_until is null or lease_until <= clock_timestamp())
    order by next_at limit @limit for update skip locked
), p as (
    update wallet_passes p set lease_token = @token, lease_until = clock_timestamp() + @lasting::interval from due where p.coupon_id = due.coupon_id
    returning p.*
)
select p.coupon_id, p.revision, case when c.id is null then 'expired' when c.state = 'unused' and c.expires_at <= clock_timestamp() then 'expired' else c.state end,
    p.attempts, clock_timestamp() - p.changed_at, p.google and p.google_told < p.revision,
    array(select r.device from wallet_registrations r where r.coupon_id = p.coupon_id and r.told < p.revision order by r.device),
    array(select r.push_token from wallet_registrations r where r.coupon_id = p.coupon_id and r.told < p.revision order by r.device)
from p left join coupons c on c.id = p.coupon_id order by p.next_at, p.coupon_id`

// Lease leases due changes; see [wallet.Changes].
func (s Wallet) Lease(ctx context.Context, limit int, lasting time.Duration) (token string, due []wallet.Change, err error) {
	token = uuid.NewString()
	due, err = pgx.CollectRows(pg.Rows(ctx, s.Pool, leaseWalletSQL, pgx.StrictNamedArgs{"limit": limit, "token": token, "lasting": lasting}), func(row pgx.CollectableRow) (c wallet.Change, err error) {
		var names, tokens []string
		err = row.Scan(&c.CouponID, &c.Revision, &c.State, &c.Attempts, &c.Age, &c.Google, &names, &tokens)
		for i, name := range names {
			c.Devices = append(c.Devices, wallet.Device{Name: name, Token: tokens[i]})
		}
		return c, err
	})
	return token, due, pg.Translate(err)
}

// recordWalletSQL stores the outcome of a lease. A device may have registered meanwhile; until
// the device is told of the revision, the pass stays due.
const recordWalletSQL = `
update wallet_passes p set lease_token = null, lease_until = null, attempts = case when g.revision = p.revision then p.attempts + 1 else 0 end,
    google_told = case when g.google then greatest(p.google_told, g.revision) else p.google_told end,
    next_at = case when g.revision <> p.revision then least(p.next_at, clock_timestamp())
        when g.again is not null then clock_timestamp() + g.again
        when exists (select from wallet_registrations r where r.coupon_id = p.coupon_id and r.told < p.revision) then clock_timestamp() end
from unnest(@ids::bigint[], @revisions::bigint[], @googles::bool[], @again::interval[]) as g (id, revision, google, again)
where p.coupon_id = g.id and p.lease_token = @token`

// Record stores the results of a lease; see [wallet.Changes]. A separate first statement locks
// the passes, so that the following statements see every device that has registered.
func (s Wallet) Record(ctx context.Context, token string, results []wallet.Result) error {
	args := pgx.StrictNamedArgs{"token": token}
	var ids, revisions, toldIDs, toldRevisions, goneIDs []int64
	var googles []bool
	var again []*time.Duration
	var told, gone, toldTokens, goneTokens []string
	for _, r := range results {
		ids, revisions, googles, again = append(ids, r.CouponID), append(revisions, r.Revision), append(googles, r.Google), append(again, r.Again)
		for _, d := range r.Told {
			told, toldTokens, toldIDs, toldRevisions = append(told, d.Name), append(toldTokens, d.Token), append(toldIDs, r.CouponID), append(toldRevisions, r.Revision)
		}
		for _, d := range r.Gone {
			gone, goneTokens, goneIDs = append(gone, d.Name), append(goneTokens, d.Token), append(goneIDs, r.CouponID)
		}
	}
	args["ids"], args["revisions"], args["googles"], args["again"] = ids, revisions, googles, again
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from wallet_passes where coupon_id = any($1) order by coupon_id for no key update`, ids); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update wallet_registrations r set told = greatest(r.told, g.revision)
			from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) as g (device, token, id, revision)
			where r.device = g.device and r.coupon_id = g.id and r.push_token = g.token`, told, toldTokens, toldIDs, toldRevisions); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from wallet_registrations r using unnest($1::text[], $2::text[], $3::bigint[]) as g (device, token, id)
			where r.device = g.device and r.coupon_id = g.id and r.push_token = g.token`, gone, goneTokens, goneIDs); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, recordWalletSQL, args)
		return err
	})
}
