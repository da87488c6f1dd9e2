package work

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
)

const destinationColumns = `d.id, d.shop_number, d.form, d.name, d.url, d.secret, d.sealed, d.language, d.kinds, d.created_by, d.created_at`

// destinationFields are the targets for scanning destinationColumns; [Alerts.open] opens sealed.
func destinationFields(d *alert.Destination, sealed *[]byte) []any {
	return []any{&d.ID, &d.Shop, &d.Form, &d.Name, &d.URL, &d.Secret, sealed, &d.Language, &d.Kinds, &d.CreatedBy, &d.CreatedAt}
}

// address is the sealed part of a destination.
type address struct{ URL, Secret string }

func rowOf(id int64) string { return seal.Row("alert_destinations", id) }

// open fills in the address that is sealed for the destination's row. An address that cannot be
// opened stays empty: the destination gets nothing, and its name is still shown.
func (s Alerts) open(d *alert.Destination, sealed []byte) {
	raw, err := s.box.Open(rowOf(d.ID), sealed)
	var a address
	if err == nil && json.Unmarshal(raw, &a) == nil {
		d.URL, d.Secret = a.URL, a.Secret
	}
}

// seal stores the address of a destination sealed for its row.
func (s Alerts) seal(ctx context.Context, tx pgx.Tx, d alert.Destination) error {
	raw, err := json.Marshal(address{d.URL, d.Secret})
	if err == nil {
		_, err = tx.Exec(ctx, `update alert_destinations set sealed = $2, url = '', secret = '' where id = $1`, d.ID, s.box.Seal(rowOf(d.ID), raw))
	}
	return err
}

// SealStored seals the addresses that are stored unsealed, by an older version or before there
// was a key. Calling it again changes nothing.
func (s Alerts) SealStored(ctx context.Context) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		rows := pg.Rows(ctx, tx, `select `+destinationColumns+` from alert_destinations d where d.removed_at is null
			and (d.sealed is null or $1 and get_byte(d.sealed, 0) = 0) for update`, s.box.Keyed())
		list, err := pgx.CollectRows(rows, s.scanDestination)
		for _, d := range list {
			if err == nil {
				err = s.seal(ctx, tx, d)
			}
		}
		return err
	})
}

// Destinations lists the destinations of the shops.
func (s Alerts) Destinations(ctx context.Context, shops []int64) ([]alert.Destination, error) {
	return pg.Collect(ctx, s.Pool, s.scanDestination, `select `+destinationColumns+` from alert_destinations d where d.removed_at is null
		and (cardinality($1::bigint[]) = 0 or d.shop_number = any($1)) order by d.shop_number, d.name, d.id`, shopsOf(shops))
}

func (s Alerts) scanDestination(row pgx.CollectableRow) (d alert.Destination, err error) {
	var sealed []byte
	err = row.Scan(destinationFields(&d, &sealed)...)
	s.open(&d, sealed)
	return d, err
}

// AddDestination stores d. Destinations of one shop are added one after another: two concurrent
// calls would otherwise exceed the limit together.
func (s Alerts) AddDestination(ctx context.Context, d alert.Destination, most int, e staff.Entry) (alert.Destination, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('alert_destinations', $1))`, d.Shop); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from alert_destinations where shop_number = $1 and removed_at is null`, d.Shop).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return alert.ErrTooMany
		}
		if err := tx.QueryRow(ctx, `insert into alert_destinations (shop_number, form, name, url, language, kinds, created_by)
			values ($1, $2, $3, '', $4, $5, $6) returning id, created_at`, d.Shop, d.Form, d.Name, d.Language, d.Kinds, d.CreatedBy).
			Scan(&d.ID, &d.CreatedAt); err != nil {
			return err
		}
		if err := s.seal(ctx, tx, d); err != nil {
			return err
		}
		return insertDestinationAudit(ctx, tx, d.ID, e)
	})
	return d, err
}

// Destination returns the destination with the id, unless it was removed.
func (s Alerts) Destination(ctx context.Context, id int64) (alert.Destination, error) {
	return pg.One(ctx, s.Pool, s.scanDestination, alert.ErrNoDestination, `select `+destinationColumns+` from alert_destinations d where d.id = $1 and d.removed_at is null`, id)
}

// RemoveDestination deletes the destination's address and secret, and its waiting deliveries.
func (s Alerts) RemoveDestination(ctx context.Context, id int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update alert_destinations set removed_at = clock_timestamp(), url = '', secret = '', sealed = null where id = $1 and removed_at is null`, id)
		if err != nil || tag.RowsAffected() == 0 { // another member was faster
			return err
		}
		if _, err := tx.Exec(ctx, `update alert_deliveries set state = 'dropped', ended_at = clock_timestamp() where destination_id = $1 and state = 'waiting'`, id); err != nil {
			return err
		}
		return insertDestinationAudit(ctx, tx, id, e)
	})
}
