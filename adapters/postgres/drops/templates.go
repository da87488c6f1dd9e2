// Package drops stores shops, coupon templates with their slots, reservations of
// reminders and announcements. It cuts slots and announcements into batches, and
// reads what the board, the cockpit, the forecast and the timelines show.
package drops

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// Templates keeps coupon templates and the slots that belong to them.
type Templates struct{ *pg.DB }

// NewTemplates returns the template store of db.
func NewTemplates(db *pg.DB) Templates { return Templates{db} }

// Template returns [template.ErrNotFound] if there is none.
func (s Templates) Template(ctx context.Context, id int64) (template.Template, error) {
	return pg.Template(ctx, s.DB, id)
}

// Insert creates a draft, and its shop if that is new. A second call with the
// same request key returns the template of the first.
func (s Templates) Insert(ctx context.Context, c template.Change) (template.Template, error) {
	var id int64
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		created, err := s.insert(ctx, tx, c, &id)
		if err != nil || !created {
			return err
		}
		c.Entry.ObjectID = strconv.FormatInt(id, 10)
		if err := pg.InsertAudit(ctx, tx, c.Entry); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, c.Event, event.Template{TemplateID: id, Version: 1, OpensAt: c.Template.OpensAt})
	})
	if err != nil {
		return c.Template, err
	}
	return s.Template(ctx, id)
}

func (s Templates) insert(ctx context.Context, tx pgx.Tx, c template.Change, id *int64) (created bool, err error) {
	t := c.Template
	_, err = tx.Exec(ctx, `insert into shops (number, name, timezone) values ($1, 'Shop ' || $1::bigint, 'UTC') on conflict do nothing`, t.ShopNumber)
	if err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, `
		insert into templates (shop_number, name, description, kind, amount_off, threshold, percent_off, max_off, currency,
			target, product, stock, per_user_limit, opens_at, closes_at, valid_until, valid_hours, obtain, claim_mode,
			claim_url, state, request_key, notify_days, notify_channels)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, 'draft', nullif($21, ''), $22, $23)
		on conflict (request_key) do nothing returning id`,
		t.ShopNumber, t.Name, t.Description, t.Kind, t.AmountOff, t.Threshold, t.PercentOff, t.MaxOff, t.Currency,
		t.Target, t.Product, t.Stock, t.PerUserLimit, t.OpensAt, t.ClosesAt, t.ValidUntil, t.ValidHours, t.Obtain,
		t.ClaimMode, t.ClaimURL, c.RequestKey, t.NotifyDays, max(1, t.NotifyOver)).Scan(id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, tx.QueryRow(ctx, `select id from templates where request_key = $1`, c.RequestKey).Scan(id)
	}
	return err == nil, err
}

// Save stores a change of an existing template, its slots, its audit entry
// and its event in one transaction.
func (s Templates) Save(ctx context.Context, c template.Change) (template.Template, error) {
	t := c.Template
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update templates set shop_number = $3, name = $4, description = $5, kind = $6, amount_off = $7, threshold = $8,
				percent_off = $9, max_off = $10, currency = $11, target = $12, product = $13, stock = $14,
				per_user_limit = $15, opens_at = $16, closes_at = $17, valid_until = $18, valid_hours = $19, obtain = $20,
				claim_mode = $21, claim_url = $22, state = $23, published_at = $24, ended_at = $25, notify_days = $26, notify_channels = $27,
				remind_once = $28,
				version = version + 1, updated_at = now()
			where id = $1 and version = $2`,
			t.ID, t.Version, t.ShopNumber, t.Name, t.Description, t.Kind, t.AmountOff, t.Threshold, t.PercentOff, t.MaxOff,
			t.Currency, t.Target, t.Product, t.Stock, t.PerUserLimit, t.OpensAt, t.ClosesAt, t.ValidUntil, t.ValidHours,
			t.Obtain, t.ClaimMode, t.ClaimURL, t.Stored, t.PublishedAt, t.EndedAt, t.NotifyDays, max(1, t.NotifyOver), t.RemindOnce)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.ErrStale
		}
		if err := reschedule(ctx, tx, t, c.Schedule); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, c.Entry); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, c.Event, event.Template{TemplateID: t.ID, Version: t.Version + 1, OpensAt: t.OpensAt})
	})
	if pg.Violates(err, "templates_shop_number_fkey") {
		e := &fault.Fields{}
		e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
		return t, e
	}
	if pg.Violates(err, "templates_check") { // issued <= stock, while claims go on
		return t, template.ErrStockBelow
	}
	if err != nil {
		return t, err
	}
	return s.Template(ctx, t.ID)
}

// DueToClose returns published templates whose end has passed.
func (s Templates) DueToClose(ctx context.Context, limit int) ([]template.Template, error) {
	rows, err := s.Pool.Query(ctx, `select `+pg.TemplateColumns+pg.TemplateFrom+
		`where t.state in ('published', 'paused') and (t.closes_at <= now() or t.valid_until <= now()) order by `+pg.TemplateEndsAt+` limit $1`, limit)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pg.ScanTemplate)
	return list, pg.Translate(err)
}

// Shops lists every shop.
func (s Templates) Shops(ctx context.Context) ([]template.Shop, error) {
	rows, err := s.Pool.Query(ctx, `select number, name, timezone from shops order by number`)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[template.Shop])
	return list, pg.Translate(err)
}

// NewestTemplate returns the greatest id there is, 0 if there is none.
func (s Templates) NewestTemplate(ctx context.Context) (int64, error) {
	var id int64
	err := s.Pool.QueryRow(ctx, `select coalesce(max(id), 0) from templates`).Scan(&id)
	return id, pg.Translate(err)
}
