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

// Hooks stores the webhook endpoints of shops, the event types that they choose, and the log of
// deliveries; see [hook.Store].
type Hooks struct{ *pg.DB }

// NewHooks returns the endpoints of db.
func NewHooks(db *pg.DB) Hooks { return Hooks{db} }

// endpointColumns are the columns of a [hook.Endpoint] whose waiting deliveries are not counted.
var endpointColumns = endpointFacts + `, 0::bigint as waiting`

var endpointFacts = pg.FieldColumns(hook.Fields, "e", nil) + `, e.id, e.shop_number as shop, e.disabled_reason as why, e.disabled_at, e.failures, e.failing_since,
	e.held_until, e.last_success_at, e.last_failure_at, e.last_error, case when e.old_until > clock_timestamp() then e.old_until end as old_until,
	e.version, e.created_at, e.created_by, array_remove(array[e.secret, case when e.old_until > clock_timestamp() then e.old_secret end], null) as secrets`

// oneEndpoint runs a statement that returns endpointColumns of at most one row.
func oneEndpoint(ctx context.Context, on pg.Querier, sql string, args ...any) (e hook.Endpoint, err error) {
	e, err = pgx.CollectExactlyOneRow(pg.Rows(ctx, on, sql, args...), pgx.RowToStructByName[hook.Endpoint])
	return e, pg.Translate(err)
}

// NewEndpointID draws the id of a new endpoint; see [hook.Store].
func (s Hooks) NewEndpointID(ctx context.Context) (int64, error) {
	return pg.NewID(ctx, s.DB, "hook_endpoints")
}

// CreateEndpoint stores an endpoint; see [hook.Store]. It locks the row of the shop, so that
// concurrent creations count each other.
func (s Hooks) CreateEndpoint(ctx context.Context, n hook.Endpoint, requestKey string, by staff.Actor) (created hook.Endpoint, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var count int
		err := tx.QueryRow(ctx, `select (select count(*) from hook_endpoints e where e.shop_number = s.number) from shops s where s.number = $1 for update`, n.Shop).Scan(&count)
		if errors.Is(err, pgx.ErrNoRows) {
			e := &fault.Fields{}
			e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
			return e
		}
		if err != nil {
			return err
		}
		if requestKey != "" {
			var repeated bool
			if err := tx.QueryRow(ctx, `select exists (select from hook_endpoints where request_key = $1)`, requestKey).Scan(&repeated); err != nil || repeated {
				return errors.Join(err, hook.ErrRepeated)
			}
		}
		// Counted again: the count above was taken before the lock.
		if err := tx.QueryRow(ctx, `select count(*) from hook_endpoints where shop_number = $1`, n.Shop).Scan(&count); err != nil {
			return err
		}
		if count >= hook.MaxEndpoints {
			return hook.ErrTooMany
		}
		columns, params := pg.FieldNames(hook.Fields, "id", "shop_number", "secret", "disabled_reason", "created_by")
		args := endpointArgs(n.Input)
		args["id"], args["shop_number"], args["secret"], args["disabled_reason"], args["created_by"], args["key"] = n.ID, n.Shop, n.Secrets[0], n.Why, pg.AuditActor(by), requestKey
		created, err = oneEndpoint(ctx, tx, `
			insert into hook_endpoints as e (`+columns+`, request_key, disabled_at)
			overriding system value values (`+params+`, nullif(@key, ''), case when not @enabled then clock_timestamp() end)
			returning `+endpointColumns, args)
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, created.Entry(by, "create", nil, created.Shown()))
	})
	if pg.Violates(err, "hook_endpoints_request_key_key") {
		err = hook.ErrRepeated
	}
	return created, err
}

func endpointArgs(in hook.Input) pgx.StrictNamedArgs {
	in.Types = append([]hook.Type{}, in.Types...) // never null
	return pg.FieldArgs(hook.Fields, in)
}

// Endpoint returns one endpoint; see [hook.Store].
func (s Hooks) Endpoint(ctx context.Context, id int64) (hook.Endpoint, error) {
	e, err := oneEndpoint(ctx, s.Pool, `select `+endpointColumns+` from hook_endpoints e where id = $1`, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, hook.ErrNotFound
	}
	return e, err
}

// maxWaitingCount is how many waiting deliveries a list counts per endpoint at most.
const maxWaitingCount = 10_000

// Endpoints lists endpoints with their waiting deliveries; see [hook.Store].
func (s Hooks) Endpoints(ctx context.Context, shops []int64) ([]hook.Endpoint, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByName[hook.Endpoint], `select `+endpointFacts+`,
			(select count(*) from (select from hook_deliveries d where d.endpoint_id = e.id and d.state = 'waiting' limit $2) w) as waiting
		from hook_endpoints e where cardinality($1::bigint[]) = 0 or shop_number = any($1) order by shop_number, id`, append([]int64{}, shops...), maxWaitingCount)
}

// change runs a statement that returns the endpointColumns of one endpoint at its version, and
// records the entry.
func (s Hooks) change(ctx context.Context, entry staff.Entry, sql string, args pgx.StrictNamedArgs) (e hook.Endpoint, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if e, err = oneEndpoint(ctx, tx, sql, args); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, entry)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fault.ErrStale
	}
	return e, err
}

// SaveEndpoint stores a change; see [hook.Store]. One that is enabled begins anew.
func (s Hooks) SaveEndpoint(ctx context.Context, e hook.Endpoint, in hook.Input, entry staff.Entry) (hook.Endpoint, error) {
	args := endpointArgs(in)
	args["id"], args["version"] = e.ID, e.Version
	return s.change(ctx, entry, `
		update hook_endpoints e set `+pg.FieldSets(hook.Fields)+`, version = version + 1, updated_at = clock_timestamp(),
			disabled_reason = case when @enabled then '' when e.enabled then 'staff' else disabled_reason end,
			disabled_at = case when @enabled then null when e.enabled then clock_timestamp() else disabled_at end,
			failures = case when @enabled and (not e.enabled or url <> @url) then 0 else failures end,
			failing_since = case when @enabled and (not e.enabled or url <> @url) then null else failing_since end,
			held_until = case when @enabled and (not e.enabled or url <> @url) then null else held_until end
		where id = @id and version = @version returning `+endpointColumns, args)
}

// RotateSecret stores a new secret; see [hook.Store].
func (s Hooks) RotateSecret(ctx context.Context, e hook.Endpoint, sealed []byte, oldFor time.Duration, entry staff.Entry) (hook.Endpoint, error) {
	return s.change(ctx, entry, `
		update hook_endpoints e set old_secret = secret, old_until = clock_timestamp() + @old_for::interval, secret = @secret, version = version + 1,
			updated_at = clock_timestamp()
		where id = @id and version = @version returning `+endpointColumns,
		pgx.StrictNamedArgs{"id": e.ID, "version": e.Version, "secret": sealed, "old_for": oldFor})
}

// RemoveEndpoint removes an endpoint with its deliveries.
func (s Hooks) RemoveEndpoint(ctx context.Context, id int64, entry staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, hook.ErrNotFound, `delete from hook_endpoints where id = $1`, id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, entry)
	})
}

// SendTest stores a test event with its only delivery; see [hook.Store].
func (s Hooks) SendTest(ctx context.Context, e hook.Endpoint, test hook.Event, entry staff.Entry) (id int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		stored, err := storeEvents(ctx, tx, []hook.Event{test})
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `insert into hook_deliveries (endpoint_id, event_id, cause) values ($1, $2, 'test') returning id`, e.ID, stored[0]).Scan(&id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, entry)
	})
	if pg.Violates(err, "hook_deliveries_endpoint_id_fkey") {
		err = hook.ErrNotFound
	}
	return id, err
}

// Wanted returns which types some shop wants: none, nil for all of them, or these.
func (s Hooks) Wanted(ctx context.Context) (types []hook.Type, all bool, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(array_agg(distinct t) filter (where t is not null), '{}'), coalesce(bool_or(cardinality(w.types) = 0), false)
		from hook_wants w left join lateral unnest(w.types) t on true`).Scan(&types, &all)
	return types, all, pg.Translate(err)
}
