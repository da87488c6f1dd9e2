// Package drops stores shops, coupon templates with their slots, reservations of
// reminders, and announcements. It cuts slots and announcements into batches. It
// also reads the data of the board, the cockpit, the forecast and the timelines.
package drops

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// Templates stores coupon templates and the slots that belong to them.
type Templates struct{ *pg.DB }

// NewTemplates returns the template store of db.
func NewTemplates(db *pg.DB) Templates { return Templates{db} }

// Template returns the template, or [template.ErrNotFound].
func (s Templates) Template(ctx context.Context, id int64) (template.Template, error) {
	return pg.Template(ctx, s.DB, id)
}

// TemplatesNow returns the existing templates among ids, in any order.
func (s Templates) TemplatesNow(ctx context.Context, ids []int64) ([]template.Template, error) {
	return pg.Collect(ctx, s.Pool, pg.ScanTemplate, `select `+pg.TemplateColumns+pg.TemplateFrom+`where t.id = any($1)`, ids)
}

// Insert creates a draft, and its shop if the shop is new. A second call with the
// same request key returns the template of the first call.
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
		return announceTemplate(ctx, tx, c.Event, event.Template{TemplateID: id, ShopNumber: c.Template.ShopNumber, Version: 1, OpensAt: c.Template.OpensAt})
	})
	if err != nil {
		return c.Template, err
	}
	return s.Template(ctx, id)
}

// insertTemplateSQL returns the id of the new template. It returns no row if the
// request was stored before.
var insertTemplateSQL = func() string {
	columns, params := pg.FieldNames(template.Fields)
	return `insert into templates (` + columns + `, state, request_key) values (` + params + `, 'draft', nullif(@request_key, ''))
on conflict (request_key) do nothing returning id`
}()

// ruleArgs are the parameters that inserting and changing a template share.
func ruleArgs(t template.Template) pgx.StrictNamedArgs {
	args := pg.FieldArgs(template.Fields, t.Spec)
	args["notify_channels"] = max(1, t.NotifyOver) // see pg.TemplateColumns
	args["waitlist"] = cmp.Or(t.Waitlist, template.NoWaitlist)
	args["refund_to"] = cmp.Or(t.RefundTo, template.RefundToHolder)
	args["protection"] = cmp.Or(t.Protection, template.Unprotected)
	args["max_per_order"] = cmp.Or(t.MaxPerOrder, 1)
	args["refund_rule"] = cmp.Or(t.RefundRule, template.Keep)
	args["opening_mode"] = cmp.Or(t.OpeningMode, template.FirstCome)
	return args
}

func (s Templates) insert(ctx context.Context, tx pgx.Tx, c template.Change, id *int64) (created bool, err error) {
	t := c.Template
	_, err = tx.Exec(ctx, `insert into shops (number, name, timezone) values ($1, 'Shop ' || $1::bigint, 'UTC') on conflict do nothing`, t.ShopNumber)
	if err != nil {
		return false, err
	}
	args := ruleArgs(t)
	args["request_key"] = c.RequestKey
	err = tx.QueryRow(ctx, insertTemplateSQL, args).Scan(id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, tx.QueryRow(ctx, `select id from templates where request_key = $1`, c.RequestKey).Scan(id)
	}
	return err == nil, err
}

// saveTemplateSQL returns nothing; no row changes if the version is not @version any more.
var saveTemplateSQL = `
update templates set ` + pg.FieldSets(template.Fields, "state", "published_at", "ended_at", "remind_once") + `, version = version + 1, updated_at = now()
where id = @id and version = @version`

// announceTemplate writes a template's event. The caller has locked the
// template's row, so events are numbered in the order of these locks.
func announceTemplate(ctx context.Context, tx pgx.Tx, topic string, e event.Template) error {
	if err := tx.QueryRow(ctx, `select nextval('hook_sequence'), clock_timestamp()`).Scan(&e.Sequence, &e.At); err != nil {
		return err
	}
	e.At = e.At.UTC()
	return pg.Announce(ctx, tx, topic, e)
}

// Save stores a change of an existing template, its slots, its audit entry and
// its event in one transaction.
func (s Templates) Save(ctx context.Context, c template.Change) (template.Template, error) {
	t := c.Template
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		args := ruleArgs(t)
		args["id"], args["version"], args["state"] = t.ID, t.Version, t.Stored
		args["published_at"], args["ended_at"], args["remind_once"] = t.PublishedAt, t.EndedAt, t.RemindOnce
		raised, err := raisedBy(ctx, tx, t)
		if err != nil {
			return err
		}
		if err := pg.Change(ctx, tx, fault.ErrStale, saveTemplateSQL, args); err != nil {
			return err
		}
		if err := keepForWaiters(ctx, tx, t, raised); err != nil {
			return err
		}
		if err := keepBudgets(ctx, tx, t); err != nil {
			return err
		}
		if err := reschedule(ctx, tx, t, c.Schedule); err != nil {
			return err
		}
		if c.Schedule == template.MoveSlots && len(t.Doors) > 0 {
			if err := thawDoors(ctx, tx, t.ID); err != nil {
				return err
			}
		}
		if err := pg.InsertAudit(ctx, tx, c.Entry); err != nil {
			return err
		}
		return announceTemplate(ctx, tx, c.Event, event.Template{TemplateID: t.ID, ShopNumber: t.ShopNumber, Version: t.Version + 1, OpensAt: t.OpensAt})
	})
	if pg.Violates(err, "templates_shop_number_fkey") {
		e := &fault.Fields{}
		e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
		return t, e
	}
	if pg.Violates(err, "templates_check") || pg.Violates(err, "templates_held") { // issued <= stock, with concurrent claims
		return t, template.ErrStockBelow
	}
	if err != nil {
		return t, err
	}
	return s.Template(ctx, t.ID)
}

// raisedBy locks the row of a template that has a waitlist and returns by how many coupons the
// change raises its stock. It returns 0 for other templates.
func raisedBy(ctx context.Context, tx pgx.Tx, t template.Template) (n int64, err error) {
	if !t.Waits() {
		return 0, nil
	}
	err = tx.QueryRow(ctx, `select $3 - stock from templates where id = $1 and version = $2 for no key update`, t.ID, t.Version, t.Stock).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fault.ErrStale
	}
	return n, err
}

// keepForWaiters makes the counters of a waitlist if the template has one, and keeps raised stock for
// the users who wait. The counters exist before the first user can join. A drop that staff reopen is
// no longer settled.
func keepForWaiters(ctx context.Context, tx pgx.Tx, t template.Template, raised int64) error {
	if !t.Waits() {
		return nil
	}
	if _, err := tx.Exec(ctx, `insert into waitlists as l (template_id) values ($1) on conflict (template_id) do update set settled = false where l.settled`, t.ID); err != nil {
		return err
	}
	if raised <= 0 {
		return nil
	}
	return pg.KeepForWaiters(ctx, tx, t.ID, raised)
}

// DueToClose returns published templates whose end has passed.
func (s Templates) DueToClose(ctx context.Context, limit int) ([]template.Template, error) {
	return pg.Collect(ctx, s.Pool, pg.ScanTemplate, `select `+pg.TemplateColumns+pg.TemplateFrom+
		`where t.state in ('published', 'paused') and (t.closes_at <= now() or t.valid_until <= now()) order by `+pg.TemplateEndsAt+` limit $1`, limit)
}

// TemplatesWait asks for templates that are due to close.
const TemplatesWait pg.Question = `
(select 1 from templates where state in ('published', 'paused') and closes_at <= statement_timestamp() order by closes_at limit 1)
union all
(select 1 from templates where state in ('published', 'paused') and valid_until is not null and valid_until <= statement_timestamp()
	order by valid_until limit 1)`

// Shops lists every shop.
func (s Templates) Shops(ctx context.Context) ([]template.Shop, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[template.Shop], `select number, name, timezone, claim_url from shops order by number`)
}

// NewestTemplate returns the greatest template id, 0 if there are no templates.
func (s Templates) NewestTemplate(ctx context.Context) (int64, error) {
	var id int64
	err := s.Pool.QueryRow(ctx, `select coalesce(max(id), 0) from templates`).Scan(&id)
	return id, pg.Translate(err)
}
