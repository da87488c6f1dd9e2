package work

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event/hook"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

const deliveryColumns = `d.id, d.endpoint_id, d.event_id, d.cause, d.state, d.attempts, d.next_at, d.created_at, d.done_at, v.type, v.subject, v.sequence, v.items,
	coalesce(a.status, 0), coalesce(a.error, '')`

const deliveryFrom = ` from hook_deliveries d join hook_events v on v.id = d.event_id
	left join lateral (select status, error from hook_attempts where delivery_id = d.id order by attempt desc limit 1) a on true `

func deliveryFields(d *hook.Delivery) []any {
	return []any{&d.ID, &d.EndpointID, &d.EventID, &d.Cause, &d.State, &d.Attempts, &d.NextAt, &d.CreatedAt, &d.DoneAt, &d.Type, &d.Subject, &d.Sequence, &d.Items,
		&d.Status, &d.Error}
}

// Deliveries lists deliveries; see [hook.Store].
func (s Hooks) Deliveries(ctx context.Context, q hook.DeliveryQuery) ([]hook.Delivery, error) {
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (d hook.Delivery, err error) { return d, row.Scan(deliveryFields(&d)...) }, `select `+deliveryColumns+deliveryFrom+`
		where d.endpoint_id = $1 and ($2 = '' or d.state = $2) and ($3::bigint = 0 or d.id < $3) order by d.id desc limit $4`, q.EndpointID, q.State, q.Before, q.Limit)
}

// Delivery returns one delivery with its attempts; see [hook.Store].
func (s Hooks) Delivery(ctx context.Context, endpointID, id int64) (d hook.Details, err error) {
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select `+deliveryColumns+`, v.payload`+deliveryFrom+`where d.endpoint_id = $1 and d.id = $2`, endpointID, id).
			Scan(append(deliveryFields(&d.Delivery), &d.Payload)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return hook.ErrDeliveryNotFound
		}
		if err != nil {
			return err
		}
		rows := pg.Rows(ctx, tx, `select attempt, at, took_ms, status, error, response from hook_attempts where delivery_id = $1 order by attempt`, id)
		d.Tries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a hook.Attempt, err error) {
			var ms int64
			err = row.Scan(&a.Attempt, &a.At, &ms, &a.Status, &a.Error, &a.Response)
			a.Took = time.Duration(ms) * time.Millisecond
			return a, err
		})
		return err
	})
	return d, err
}

// Replay sends an event again; see [hook.Store].
func (s Hooks) Replay(ctx context.Context, endpointID, id int64, entry staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, hook.ErrDeliveryNotFound, `
			with again as (
				insert into hook_deliveries (endpoint_id, event_id, cause) select endpoint_id, event_id, 'replay' from hook_deliveries
				where endpoint_id = $1 and id = $2 and state <> 'waiting' returning 1
			), sooner as (
				update hook_deliveries set next_at = clock_timestamp() where endpoint_id = $1 and id = $2 and state = 'waiting' returning 1
			)
			select from again union all select from sooner`, endpointID, id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, entry)
	})
}

// ReplaySince starts deliveries of the past; see [hook.Store].
func (s Hooks) ReplaySince(ctx context.Context, e hook.Endpoint, since time.Time, limit int, entry staff.Entry) (n int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into hook_deliveries (endpoint_id, event_id, cause)
			select $1, v.id, 'replay' from hook_events v
			where v.shop_number = $2 and v.at >= $3 and v.type <> '`+string(hook.TestEvent)+`' and (cardinality($4::text[]) = 0 or v.type = any($4))
				and not exists (select from hook_deliveries d where d.event_id = v.id and d.endpoint_id = $1 and d.state = 'waiting')
			order by v.id limit $5`, e.ID, e.Shop, since, append([]hook.Type{}, e.Types...), limit)
		if err != nil {
			return err
		}
		n = tag.RowsAffected()
		return pg.InsertAudit(ctx, tx, entry)
	})
	return n, err
}

// Hours returns how an endpoint did; see [hook.Store].
func (s Hooks) Hours(ctx context.Context, endpointID int64, since time.Time) ([]hook.Hour, error) {
	rows := pg.Rows(ctx, s.Pool, `select hour, delivered, failed, took_ms from hook_hours where endpoint_id = $1 and hour >= $2 order by hour`, endpointID, since)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h hook.Hour, err error) {
		var ms int64
		err = row.Scan(&h.Hour, &h.Delivered, &h.Failed, &ms)
		h.Took = time.Duration(ms) * time.Millisecond
		return h, err
	})
	return list, pg.Translate(err)
}

// Listen renews a listener and returns events; see [hook.Store]. A renewal within a minute of
// the last renewal writes nothing.
func (s Hooks) Listen(ctx context.Context, l hook.Listener, after int64, limit int) ([]hook.Stored, error) {
	types := append([]hook.Type{}, l.Types...)
	_, err := s.Pool.Exec(ctx, `
		insert into hook_listeners as h (shop_number, listener, types, until) values ($1, $2, $3, clock_timestamp() + $4::interval)
		on conflict (shop_number, listener) do update set types = excluded.types, until = excluded.until,
			since = case when h.until > clock_timestamp() and h.types @> excluded.types and (cardinality(h.types) = 0) = (cardinality(excluded.types) = 0)
				then h.since else clock_timestamp() end
			where h.types <> excluded.types or h.until < clock_timestamp() + $4::interval - interval '1 minute'`, l.Shop, l.Name, types, hook.ListenFor)
	if pg.Violates(err, "hook_listeners_shop_number_fkey") {
		e := &fault.Fields{}
		e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
		return nil, e
	}
	if err != nil {
		return nil, pg.Translate(err)
	}
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[hook.Stored], `select id, type, at, payload from hook_events where shop_number = $1 and id > $2
		and (cardinality($3::text[]) = 0 or type = any($3)) and type <> '`+string(hook.TestEvent)+`' order by id limit $4`, l.Shop, after, types, limit)
}

// Latest returns the id of the newest event of a shop; see [hook.Store].
func (s Hooks) Latest(ctx context.Context, shop int64) (id int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(id), 0) from hook_events where shop_number = $1`, shop).Scan(&id)
	return id, pg.Translate(err)
}

// Attention returns the endpoints of the shops (none = all shops) that are failing or were
// disabled by failures.
func (s Hooks) Attention(ctx context.Context, shops []int64) ([]hook.Endpoint, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByName[hook.Endpoint], `select `+endpointColumns+` from hook_endpoints e
		where (disabled_reason in ('failing', 'gone') or enabled and failing_since < clock_timestamp() - interval '1 hour')
			and (cardinality($1::bigint[]) = 0 or shop_number = any($1)) order by id`, append([]int64{}, shops...))
}
