package drops

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/export"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// Exports knows the drops to be exported; see [export.Store].
type Exports struct {
	*pg.DB
	// Doors judges the owners of coupons of drops with doors.
	Doors reminder.DoorJudge
}

// NewExports returns the store on db.
func NewExports(db *pg.DB) Exports { return Exports{DB: db} }

// nextExportSQL begins the next attempt to export the drop that has been due for the longest time. The drop is due
// again in ten minutes, twice as long after each failure and at most a day, so that a drop whose export fails or
// kills its worker does not hold up the drops behind it.
const nextExportSQL = `
update exports x set failures = x.failures + 1, late_since = coalesce(x.late_since, x.due_at),
	due_at = clock_timestamp() + least(interval '1 day', interval '10 minutes' * power(2, least(x.failures, 10)))
from (select template_id from exports where due_at <= statement_timestamp() order by due_at, template_id limit 1 for update skip locked) d
where x.template_id = d.template_id returning x.template_id, x.failures`

// exportedDropSQL returns drop $1. Its row stays locked until its export is stored, so that no other worker exports it
// meanwhile, however long that takes. No row: another worker has begun a later attempt.
const exportedDropSQL = `
select x.template_id, t.shop_number, t.name, t.currency, t.state, t.stock, t.issued, t.opens_at, t.closes_at,
	x.final or not exists (select from coupons c where c.template_id = t.id and c.expires_at > statement_timestamp()), statement_timestamp(), t.doors
from exports x join templates t on t.id = x.template_id where x.template_id = $1 and x.failures = $2 for update of x skip locked`

// giveBackSQL makes the drop due at once: the attempt $2 failed for a reason that has nothing to do with the drop.
const giveBackSQL = `update exports set failures = failures - 1, due_at = late_since, late_since = case when failures > 1 then late_since end
	where template_id = $1 and failures = $2 and late_since is not null`

// exportedSQL notes that drop $1 is exported. Unless that was the last export ($5), the drop is due
// again in the night after its last coupon has expired.
const exportedSQL = `
update exports x set failures = 0, late_since = null, exported_at = $2, rows = $3, bytes = $4, final = true,
	due_at = case when not $5 then night_after((select max(expires_at) from coupons where template_id = t.id), s.timezone) end
from templates t join shops s on s.number = t.shop_number where t.id = $1 and x.template_id = $1`

// exportTable is one kind of rows: its columns, each with the expression for it, and the tables from
// which the rows of drop {drop} come.
type exportTable struct {
	name    string
	columns [][2]string
	from    string
}

var exportTables = []exportTable{
	{"coupons", [][2]string{{"coupon_id", "c.id"}, {"user_id", "c.user_id"}, {"origin", "c.origin"}, {"state", "c.state"}, {"issued_at", "c.issued_at"}, {"expires_at", "c.expires_at"},
		{"order_id", "c.order_id"}, {"discount", "c.discount"}, {"used_at", "c.used_at"}, {"door", "{door}"}}, `coupons c where c.template_id = {drop} order by c.id`},
	{"payments", [][2]string{{"coupon_id", "o.coupon_id"}, {"at", "o.at"}, {"step", "o.step"}, {"outcome", "o.outcome"}, {"from_state", "o.from_state"}, {"to_state", "o.to_state"},
		{"order_id", "o.order_id"}, {"order_amount", "o.order_amount"}, {"discount", "o.discount"}},
		`coupon_operations o join coupons c on c.id = o.coupon_id where c.template_id = {drop} order by o.coupon_id, o.id`},
	{"reservations", [][2]string{{"user_id", "r.user_id"}, {"slots", "r.slots"}, {"reserved_at", "r.created_at"}, {"changed_at", "r.updated_at"}},
		`reservations r where r.template_id = {drop} order by r.user_id`},
	{"deliveries", [][2]string{{"kind", "b.kind"}, {"channel", "b.channel"}, {"due_at", "b.due_at"}, {"due", "sum(b.due_count)"}, {"sent", "sum(b.sent_count)"}, {"skipped", "sum(b.skipped_count)"},
		{"expired", "sum(b.expired_count)"}, {"dead", "sum(b.dead_count)"}}, `batches b where b.template_id = {drop} and b.kind <> 'campaign' group by b.kind, b.channel, b.due_at order by b.due_at, b.kind, b.channel`},
}

// copySQL is the statement that writes the rows of the drop as CSV. With doors their owners are placed; see
// [Exports.placeOwners].
func (t exportTable) copySQL(drop int64, doors bool) string {
	door := "null::smallint"
	if doors {
		door = "(select nullif(p.place, 0) from export_places p where p.user_id = c.user_id)"
	}
	list := make([]string, len(t.columns))
	for i, c := range t.columns {
		list[i] = strings.ReplaceAll(c[1], "{door}", door) + " as " + c[0]
	}
	from := strings.ReplaceAll(t.from, "{drop}", strconv.FormatInt(drop, 10))
	return "copy (select " + strings.Join(list, ", ") + " from " + from + ") to stdout with (format csv, header)"
}

func (t exportTable) names() string {
	list := make([]string, len(t.columns))
	for i, c := range t.columns {
		list[i] = c[0]
	}
	return strings.Join(list, ",")
}

// Next is part of [export.Store]. All rows are those of one snapshot. Files of a drop are written
// while its transaction is open.
func (s Exports) Next(ctx context.Context, write func(export.Drop, []export.Table) (export.Manifest, error)) (found bool, err error) {
	var id, attempt int64
	err = s.Pool.QueryRow(ctx, nextExportSQL).Scan(&id, &attempt)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	err = pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error { return s.export(ctx, tx, id, attempt, write) })
	if errors.Is(err, export.ErrUnreachable) {
		_, again := s.Pool.Exec(ctx, giveBackSQL, id, attempt)
		err = errors.Join(err, again)
	}
	return true, pg.Translate(err)
}

// export writes the rows of drop id and stores that they are exported.
func (s Exports) export(ctx context.Context, tx pgx.Tx, id, attempt int64, write func(export.Drop, []export.Table) (export.Manifest, error)) error {
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0; set local timezone = 'UTC'; set local datestyle = 'ISO'; set local statement_timeout = 0`); err != nil {
		return err
	}
	var d export.Drop
	var doors int
	err := tx.QueryRow(ctx, exportedDropSQL, id, attempt).Scan(&d.TemplateID, &d.ShopNumber, &d.Name, &d.Currency, &d.State, &d.Stock, &d.Issued, &d.OpensAt, &d.ClosesAt, &d.Final, &d.At, &doors)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if doors > 0 {
		if err := s.placeOwners(ctx, tx, id); err != nil {
			return err
		}
	}
	d.OpensAt, d.ClosesAt, d.At = d.OpensAt.UTC(), d.ClosesAt.UTC(), d.At.UTC()
	m, err := write(d, s.tables(tx, d.TemplateID, doors > 0))
	if err != nil {
		return err
	}
	rows, bytes := m.Sums()
	_, err = tx.Exec(ctx, exportedSQL, d.TemplateID, d.At, rows, bytes, d.Final)
	return err
}

// placedTogether is how many owners of coupons are judged at once.
const placedTogether = 50_000

// placeOwners writes the door of each owner of a coupon of the drop into a temporary table.
func (s Exports) placeOwners(ctx context.Context, tx pgx.Tx, id int64) error {
	if _, err := tx.Exec(ctx, `create temp table export_places (user_id bigint primary key, place smallint not null) on commit drop`); err != nil {
		return err
	}
	for after := user.ID(0); ; {
		rows := pg.Rows(ctx, tx, `select distinct user_id from coupons where template_id = $1 and user_id > $2 order by user_id limit $3`, id, after, placedTogether)
		owners, err := pgx.CollectRows(rows, pgx.RowTo[user.ID])
		if err != nil || len(owners) == 0 {
			return err
		}
		places, err := s.Doors.Places(ctx, id, owners)
		if err != nil {
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"export_places"}, []string{"user_id", "place"}, pgx.CopyFromSlice(len(owners), func(i int) ([]any, error) {
			return []any{int64(owners[i]), int16(places[i])}, nil
		}))
		if err != nil {
			return err
		}
		after = owners[len(owners)-1]
	}
}

func (s Exports) tables(tx pgx.Tx, drop int64, doors bool) []export.Table {
	list := make([]export.Table, len(exportTables))
	for i, t := range exportTables {
		list[i] = export.Table{Name: t.name, Columns: t.names(), Copy: func(ctx context.Context, to io.Writer) (int64, error) {
			tag, err := tx.Conn().PgConn().CopyTo(ctx, to, t.copySQL(drop, doors))
			return tag.RowsAffected(), pg.Translate(err)
		}}
	}
	return list
}

// Oldest returns since when the drop that has waited for the longest time has been due; the zero time
// if none is.
func (s Exports) Oldest(ctx context.Context) (time.Time, error) {
	var at *time.Time
	err := s.Pool.QueryRow(ctx, `select min(coalesce(late_since, due_at)) from exports where due_at <= statement_timestamp() or late_since is not null`).Scan(&at)
	if at == nil {
		return time.Time{}, pg.Translate(err)
	}
	return *at, pg.Translate(err)
}
