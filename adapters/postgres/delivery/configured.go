package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Configured stores the providers that staff configure; see [provider.Store].
type Configured struct{ *pg.DB }

// NewConfigured returns the providers of db.
func NewConfigured(db *pg.DB) Configured { return Configured{db} }

var providerColumns = pg.FieldColumns(provider.Fields, "p", nil) + `, p.id, coalesce(p.shop_number, 0) as shop, p.channel, p.kind, p.secrets as sealed,
	p.secret_names as secrets, p.version, p.created_at, p.created_by, p.updated_at, p.deleted_at`

var scanProvider = pgx.RowToStructByName[provider.Provider]

func oneProvider(ctx context.Context, on pg.Querier, sql string, args ...any) (p provider.Provider, err error) {
	return pgx.CollectExactlyOneRow(pg.Rows(ctx, on, sql, args...), scanProvider)
}

// All lists the providers that are not deleted; see [provider.Store].
func (s Configured) All(ctx context.Context) ([]provider.Provider, error) {
	return pg.Collect(ctx, s.Pool, scanProvider, `select `+providerColumns+` from providers p where deleted_at is null order by channel, shop_number nulls first, priority, id`)
}

// State returns a number that differs after each change of any provider.
func (s Configured) State(ctx context.Context) (state int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(changed), 0) from providers`).Scan(&state)
	return state, pg.Translate(err)
}

// Provider returns one provider; see [provider.Store].
func (s Configured) Provider(ctx context.Context, id int64) (provider.Provider, error) {
	p, err := oneProvider(ctx, s.Pool, `select `+providerColumns+` from providers p where id = $1 and deleted_at is null`, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, provider.ErrNotFound
	}
	return p, pg.Translate(err)
}

// changing locks the number of providers and the order of their changes: a change
// that commits later gets the greater number.
func changing(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:providers', 0))`)
	return err
}

func providerValues(p provider.Provider) pgx.StrictNamedArgs {
	p.Countries = append([]string{}, p.Countries...) // never null
	args := pg.FieldArgs(provider.Fields, p.Spec)
	args["id"], args["secrets"], args["secret_names"] = p.ID, p.Sealed, append([]string{}, p.Secrets...)
	return args
}

// NewID draws the id of a new provider; see [provider.Store].
func (s Configured) NewID(ctx context.Context) (int64, error) {
	return pg.NewID(ctx, s.DB, "providers")
}

// createProviderSQL returns the new provider.
var createProviderSQL = func() string {
	columns, params := pg.FieldNames(provider.Fields, "id", "channel", "kind", "secrets", "secret_names", "created_by")
	return `
insert into providers as p (` + columns + `, shop_number, changed, request_key)
overriding system value
values (` + params + `, nullif(@shop::bigint, 0), nextval('provider_changes'), nullif(@key, ''))
returning ` + providerColumns
}()

// Create stores a new provider; see [provider.Store].
func (s Configured) Create(ctx context.Context, p provider.Provider, requestKey string, by staff.Actor) (created provider.Provider, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := changing(ctx, tx); err != nil {
			return err
		}
		if requestKey != "" {
			created, err = oneProvider(ctx, tx, `select `+providerColumns+` from providers p where request_key = $1`, requestKey)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		var count int
		var known bool
		if err := tx.QueryRow(ctx, `select (select count(*) from providers where deleted_at is null), $1 = 0 or exists (select from shops where number = $1)`, p.Shop).Scan(&count, &known); err != nil {
			return err
		}
		if !known {
			e := &fault.Fields{}
			e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
			return e
		}
		if count >= provider.MaxProviders {
			return provider.ErrTooMany
		}
		args := providerValues(p)
		args["shop"], args["channel"], args["kind"], args["key"], args["created_by"] = p.Shop, p.Channel, p.Kind, requestKey, pg.AuditActor(by)
		if created, err = oneProvider(ctx, tx, createProviderSQL, args); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, created.Entry(by, "create", nil, created.Shown()))
	})
	return created, err
}

// saveProviderSQL returns the provider, or no row if its version has changed.
var saveProviderSQL = `
update providers p set ` + pg.FieldSets(provider.Fields, "secrets", "secret_names") + `,
    version = version + 1, changed = nextval('provider_changes'), updated_at = clock_timestamp()
where id = @id and version = @version and deleted_at is null returning ` + providerColumns

// Save stores a change; see [provider.Store].
func (s Configured) Save(ctx context.Context, p provider.Provider, e staff.Entry) (saved provider.Provider, err error) {
	args := providerValues(p)
	args["version"] = p.Version
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := changing(ctx, tx); err != nil {
			return err
		}
		if saved, err = oneProvider(ctx, tx, saveProviderSQL, args); errors.Is(err, pgx.ErrNoRows) {
			return fault.ErrStale
		}
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return saved, err
}

// Delete deletes a provider's secrets and settings and keeps its name; see
// [provider.Store].
func (s Configured) Delete(ctx context.Context, p provider.Provider, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := changing(ctx, tx); err != nil {
			return err
		}
		if err := pg.Change(ctx, tx, fault.ErrStale, `update providers set secrets = null, secret_names = '{}', settings = '{}', deleted_at = clock_timestamp(), version = version + 1,
				changed = nextval('provider_changes'), updated_at = clock_timestamp()
			where id = $1 and version = $2 and not enabled and deleted_at is null`, p.ID, p.Version); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Health returns the results of calls by provider; see [provider.Store].
func (s Configured) Health(ctx context.Context, c delivery.Channel) (map[int64]provider.Health, error) {
	rows := pg.Rows(ctx, s.Pool, `select provider_id, sum(calls), sum(messages), sum(failed), sum(total_ms) / greatest(sum(calls), 1), max(slowest_ms),
			coalesce((array_agg(error order by at desc) filter (where error <> ''))[1], ''),
			round(100 * sum(messages) / greatest(sum(sum(messages)) over (), 1))::int
		from provider_calls where at > clock_timestamp() - $1::interval and channel = $2 group by 1`, callsShown, c)
	all := map[int64]provider.Health{}
	var id, slowest int64
	var h provider.Health
	var mean float64
	_, err := pgx.ForEachRow(rows, []any{&id, &h.Calls, &h.Messages, &h.Failed, &mean, &slowest, &h.Error, &h.Share}, func() error {
		h.Mean, h.Slowest = time.Duration(mean)*time.Millisecond, time.Duration(slowest)*time.Millisecond
		all[id] = h
		return nil
	})
	return all, pg.Translate(err)
}
