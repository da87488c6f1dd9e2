package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/event"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// gatePage is how many rows of a gate are read by one statement.
const gatePage = 5000

// Gates stores the plans of claim gates, and the outcomes of accepted claims. It
// implements [gate.Store].
type Gates struct{ *pg.DB }

// NewGates returns the gates of db.
func NewGates(db *pg.DB) Gates { return Gates{db} }

// GatesWait asks for a gate that may need a step; see [Gates.Unreconciled].
const GatesWait pg.Question = `
	(select from gates where state <> 'retired' order by template_id limit 1)
	union all
	(select from templates t where t.claim_mode = 'gate' and t.state in ('published', 'paused')
		and not exists (select from gates g where g.template_id = t.id) order by t.id limit 1)`

// Unreconciled implements [gate.Store].
func (s Gates) Unreconciled(ctx context.Context, after int64, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		select id from (
			-- two questions, each with an index of its own
			(select t.id from templates t where t.claim_mode = 'gate' and t.state in ('published', 'paused') and t.id > $1
				and not exists (select from gates g where g.template_id = t.id) order by t.id limit $2)
			union all
			(select g.template_id from gates g where g.state <> 'retired' and g.template_id > $1 order by g.template_id limit $2)
		) ids order by id limit $2`, after, limit)
}

// planSQL reads one plan in one statement, so that the numbers of issued, settled and refused
// claims are of one moment.
var planSQL = `select ` + pg.TemplateColumns + `, clock_timestamp(), coalesce(g.shards, 0), coalesce(g.epoch, 0), coalesce(g.state, ''),
	coalesce(g.base, 0), coalesce(g.reason, ''), g.built_at,
	coalesce((select array_agg(array[f.epoch, f.allot, f.settled, f.refused] order by f.shard) from gate_shards f where f.template_id = t.id), '{}')
	from templates t join shops s on s.number = t.shop_number left join gates g on g.template_id = t.id where t.id = $1`

// Plan implements [gate.Store].
func (s Gates) Plan(ctx context.Context, templateID int64) (gate.Plan, error) {
	plan, err := readPlan(ctx, s.Pool, templateID)
	return plan, pg.Translate(err)
}

func readPlan(ctx context.Context, q pg.Querier, templateID int64) (gate.Plan, error) {
	return pg.One(ctx, q, scanPlan, template.ErrNotFound, planSQL, templateID)
}

func scanPlan(row pgx.CollectableRow) (gate.Plan, error) {
	var p gate.Plan
	var builtAt *time.Time
	var parts [][]int64
	rest := []any{&p.Now, &p.Shards, &p.Epoch, &p.State, &p.Base, &p.Reason, &builtAt, &parts}
	if err := row.Scan(append(pg.TemplateFields(&p.Template), rest...)...); err != nil {
		return p, err
	}
	if builtAt != nil {
		p.BuiltAt = *builtAt
	}
	p.Parts = make([]gate.Part, p.Shards)
	for i, part := range parts {
		p.Parts[i] = gate.Part{Epoch: part[0], Allot: part[1], Settled: part[2], Refused: part[3]}
	}
	return p, nil
}

// Begin implements [gate.Store].
func (s Gates) Begin(ctx context.Context, plan gate.Plan, newest int64, shards int, reason string, lease time.Duration) (gate.Plan, error) {
	tag, err := s.Pool.Exec(ctx, `
		insert into gates as g (template_id, shards, epoch, state, reason, lease_until)
		values ($1, $2, $6::bigint + 1, 'building', $3, clock_timestamp() + $4::interval)
		on conflict (template_id) do update set epoch = greatest(g.epoch, $6) + 1, state = 'building', reason = excluded.reason,
			lease_until = excluded.lease_until
			where g.epoch = $5 and g.built_at is not distinct from $7 and (g.state = 'standing' or g.state = 'building' and g.lease_until <= clock_timestamp())`,
		plan.Template.ID, shards, reason, lease, plan.Epoch, newest, builtAt(plan))
	if err != nil {
		return gate.Plan{}, pg.Translate(err)
	}
	if tag.RowsAffected() == 0 {
		return gate.Plan{}, gate.ErrStaleEpoch
	}
	return s.Plan(ctx, plan.Template.ID)
}

// builtAt returns when the last building ended; nil = none has.
func builtAt(p gate.Plan) *time.Time {
	if p.BuiltAt.IsZero() {
		return nil
	}
	return &p.BuiltAt
}

// lockTemplate locks the template's row before any other row, as every transaction that
// decides claims does. It waits for the lock as briefly as these transactions do. After a
// timeout the keeper goes on with other gates, and returns to this gate in its next sweep.
func lockTemplate(ctx context.Context, tx pgx.Tx, templateID int64) error {
	if err := pg.LimitLocks(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select from templates where id = $1 for no key update`, templateID)
	return err
}

// Renew implements [gate.Store].
func (s Gates) Renew(ctx context.Context, templateID, epoch int64, lease, ready time.Duration) error {
	tag, err := s.Pool.Exec(ctx, `update gates set lease_until = clock_timestamp() + $3::interval, ready_at = clock_timestamp() + $4::interval
		where template_id = $1 and epoch = $2 and state = 'building'`, templateID, epoch, lease, ready)
	return fencedBy(tag.RowsAffected(), err)
}

// Ready returns the time until the gate, or its shards that are being built, will be open, as
// the builder estimates. 0 = nothing is being built, or the estimate has passed.
func (s Gates) Ready(ctx context.Context, templateID int64) (in time.Duration, err error) {
	err = s.Pool.QueryRow(ctx, `select ready_at - clock_timestamp() from gates where template_id = $1 and ready_at > clock_timestamp()`, templateID).Scan(&in)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return in, pg.Translate(err)
}

// Clock implements [gate.Store].
func (s Gates) Clock(ctx context.Context) (now time.Time, err error) {
	err = s.Pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, pg.Translate(err)
}

// StartEpoch implements [gate.Store].
func (s Gates) StartEpoch(ctx context.Context, templateID, epoch int64) (plan gate.Plan, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update gates g set base = t.issued from templates t
			where g.template_id = $1 and t.id = g.template_id and g.epoch = $2 and g.state = 'building'`, templateID, epoch)
		if err := fencedBy(tag.RowsAffected(), err); err != nil {
			return err
		}
		if plan, err = readPlan(ctx, tx, templateID); err != nil {
			return err
		}
		parts := gate.Split(max(0, plan.Sellable()-plan.Template.Issued), plan.Shards)
		_, err = tx.Exec(ctx, `insert into gate_shards as f (template_id, shard, allot, epoch)
			select $1, n - 1, allot, $3 from unnest($2::bigint[]) with ordinality as a (allot, n)
			on conflict (template_id, shard) do update set allot = excluded.allot, epoch = excluded.epoch, settled = 0, refused = 0, lease_until = null`,
			templateID, parts, epoch)
		if err != nil {
			return err
		}
		plan, err = readPlan(ctx, tx, templateID)
		return err
	})
	return plan, err
}

// fencedBy returns [gate.ErrStaleEpoch] if nothing was changed.
func fencedBy(changed int64, err error) error {
	if err == nil && changed == 0 {
		return gate.ErrStaleEpoch
	}
	return pg.Translate(err)
}

// Activate implements [gate.Store].
func (s Gates) Activate(ctx context.Context, templateID, epoch int64) error {
	tag, err := s.Pool.Exec(ctx, `update gates set state = 'standing', built_at = clock_timestamp()
		where template_id = $1 and epoch = $2 and state = 'building'`, templateID, epoch)
	return fencedBy(tag.RowsAffected(), err)
}

// Retire implements [gate.Store].
func (s Gates) Retire(ctx context.Context, templateID, epoch int64) error {
	tag, err := s.Pool.Exec(ctx, `update gates set state = 'retired' where template_id = $1 and epoch = $2 and state = 'building'`, templateID, epoch)
	return fencedBy(tag.RowsAffected(), err)
}

// Allot implements [gate.Store]. Two concurrent allotments may each overshoot one shard. The
// check is on the sum over all shards after the update, which must not exceed the stock. A
// separate statement locks the template before the update, so that the update sees what the
// other allotment has committed.
func (s Gates) Allot(ctx context.Context, templateID, epoch int64, parts []int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		var active bool
		err := tx.QueryRow(ctx, `select exists (select from gates where template_id = $1 and epoch = $2 and state = 'standing')`,
			templateID, epoch).Scan(&active)
		if err != nil {
			return err
		}
		if !active {
			return gate.ErrStaleEpoch
		}
		return pg.Change(ctx, tx, gate.ErrOverAllotted, `
			with given as (
				select f.shard, greatest(f.allot, a.allot) as allot
				from gate_shards f join unnest($3::bigint[]) with ordinality as a (allot, n) on f.shard = a.n - 1 where f.template_id = $1
			)
			update gate_shards f set allot = given.allot from given where f.template_id = $1 and f.shard = given.shard
				and exists (select from templates t join gates g on g.template_id = t.id where t.id = $1 and g.epoch = $2 and g.state = 'standing'
					and g.base + (select sum(allot) from given) <= t.stock - t.held)`, templateID, epoch, parts)
	})
}

// UserCounts implements [gate.Store].
func (s Gates) UserCounts(ctx context.Context, templateID, after int64) ([]gate.UserCount, int64, error) {
	return readPage(ctx, s.Pool, `select u.user_id, u.issued, coalesce(u.household, 0),
			case when u.household is null then 0 else (select sum(issued)::int from claim_counts where template_id = $1 and household = u.household) end
		from claim_counts u where u.template_id = $1 and u.user_id > $2 order by u.user_id limit $3`,
		templateID, after, pgx.RowToStructByPos[gate.UserCount], func(c gate.UserCount) int64 { return int64(c.UserID) })
}

// A keyed record also holds the sort key of its row.
type keyed struct {
	gate.IdempotencyRecord
	row int64
}

func scanKeyed(row pgx.CollectableRow) (k keyed, err error) {
	return k, row.Scan(&k.UserID, &k.Origin, &k.Key, &k.Claim, &k.Household, &k.row)
}

// CouponRecords implements [gate.Store], in the order of the coupons' ids.
func (s Gates) CouponRecords(ctx context.Context, templateID, after int64) ([]gate.IdempotencyRecord, int64, error) {
	return s.records(ctx, `select user_id, origin, origin_key, claim_id, `+householdOfRecord+`, id from coupons u where template_id = $1 and id > $2 order by id limit $3`,
		templateID, after)
}

// RefusedRecords implements [gate.Store]. A refused redeem code and a refused claim of a campaign get no
// record, so that the code can be used again and the campaign's claim is decided anew.
func (s Gates) RefusedRecords(ctx context.Context, templateID, after int64) ([]gate.IdempotencyRecord, int64, error) {
	return s.records(ctx, `select user_id, origin, case when origin in ('code', 'campaign') and coupon_id is null then '' else origin_key end, claim_id, `+householdOfRecord+`, claim_id
		from claim_results u where template_id = $1 and claim_id > $2 order by claim_id limit $3`, templateID, after)
}

// records returns a page without records that cannot be repeated, which have no key.
func (s Gates) records(ctx context.Context, sql string, templateID, after int64) ([]gate.IdempotencyRecord, int64, error) {
	rows, next, err := readPage(ctx, s.Pool, sql, templateID, after, scanKeyed, func(k keyed) int64 { return k.row })
	return repeatable(rows), next, err
}

func repeatable(rows []keyed) []gate.IdempotencyRecord {
	list := make([]gate.IdempotencyRecord, 0, len(rows))
	for _, k := range rows {
		if k.Key != "" {
			list = append(list, k.IdempotencyRecord)
		}
	}
	return list
}

// readPage reads up to [gatePage] rows of a template after the sort key after. It returns the
// sort key after which the next page begins, or 0 if this page is the last.
func readPage[T any](ctx context.Context, q pg.Querier, sql string, templateID, after int64, scan pgx.RowToFunc[T], place func(T) int64) ([]T, int64, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, q, sql, templateID, after, gatePage), scan)
	if err != nil || len(list) < gatePage {
		return list, 0, pg.Translate(err)
	}
	return list, place(list[len(list)-1]), nil
}

// Held returns the number of coupons of the template for each of these users, without users
// that have none, and the requests that led to the coupons. Entries without a user have the number
// of coupons of each of the households. Shards that are being filled call Held.
func (s Gates) Held(ctx context.Context, templateID int64, users []user.ID, households []int64) ([]gate.UserCount, []gate.IdempotencyRecord, error) {
	var counts []gate.UserCount
	var records []keyed
	b := &pgx.Batch{} // a transaction of its own
	b.Queue(pg.IndexesOnly)
	b.Queue(`select user_id, origin, origin_key, claim_id, 0, id from coupons where user_id = any($2) and template_id = $1`, templateID, users).
		Query(func(rows pgx.Rows) (err error) {
			records, err = pgx.CollectRows(rows, scanKeyed)
			return err
		})
	count := func(rows pgx.Rows) (err error) {
		counts, err = pgx.AppendRows(counts, rows, pgx.RowToStructByPos[gate.UserCount])
		return err
	}
	b.Queue(`select user_id, issued, 0, 0 from claim_counts where template_id = $1 and user_id = any($2)`, templateID, users).Query(count)
	if len(households) > 0 {
		b.Queue(`select 0, 0, household, sum(issued)::int from claim_counts where template_id = $1 and household = any($2) group by household`,
			templateID, households).Query(count)
	}
	err := s.Pool.SendBatch(ctx, b).Close()
	return counts, repeatable(records), pg.Translate(err)
}

// Refilled implements [gate.Store] and [gate.Recorder].
func (s Gates) Refilled(ctx context.Context, templateID int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		return pg.Announce(ctx, tx, event.GateRefilled, event.Gate{TemplateID: templateID})
	})
}

// Shards returns the number of shards into which the template's stock is divided. 0 = there
// are no shards yet, or the gate is retired.
func (s Gates) Shards(ctx context.Context, templateID int64) (int, error) {
	var shards int
	err := s.Pool.QueryRow(ctx, `select shards from gates where template_id = $1 and state <> 'retired'`, templateID).Scan(&shards)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return shards, pg.Translate(err)
}

// Active returns the number of shards of each template whose stock is divided into shards.
func (s Gates) Active(ctx context.Context) (map[int64]int, error) {
	rows := pg.Rows(ctx, s.Pool, `select template_id, shards from gates where state <> 'retired'`)
	shards := map[int64]int{}
	var id int64
	var n int
	_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		shards[id] = n
		return nil
	})
	return shards, pg.Translate(err)
}

// Retired reports whether the template had a gate that is now retired.
func (s Gates) Retired(ctx context.Context, templateID int64) (bool, error) {
	var retired bool
	err := s.Pool.QueryRow(ctx, `select exists (select from gates where template_id = $1 and state = 'retired')`, templateID).Scan(&retired)
	return retired, pg.Translate(err)
}

// Early returns the number of the template's claims that a gate accepted before the drop
// opened by the database's clock. The recorder refused these claims.
func (s Gates) Early(ctx context.Context, templateID int64) (claims int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from claim_results where template_id = $1 and reason = $2`, templateID, claim.ErrNotStarted.Code).Scan(&claims)
	return claims, pg.Translate(err)
}

const decidedSQL = `
select claim_id, template_id, user_id, case when reason = '' then 'issued' else 'failed' end, coalesce(coupon_id, 0), reason, at from claim_results where `

// Decided returns the user's claim if its outcome is stored, or [claim.ErrNotFound].
func (s Gates) Decided(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error) {
	return s.decided(ctx, `select claim_id, template_id, user_id, 'issued', id, '', issued_at from coupons where user_id = $1 and claim_id = $2
		union all `+decidedSQL+`claim_id = $2 and user_id = $1 limit 1`, by, id)
}

// Known returns the claim of the first request with this key, or [claim.ErrNotFound].
func (s Gates) Known(ctx context.Context, r claim.Request) (claim.Claim, error) {
	return s.decided(ctx, `(select claim_id, template_id, user_id, 'issued', id, '', issued_at from coupons where origin = $1 and origin_key = $2 and origin_key <> '')
		union all (`+decidedSQL+`origin = $1 and origin_key = $2 and origin_key <> '' and template_id = $3 and user_id = $4
			and (origin not in ('code', 'campaign') or coupon_id is not null)) limit 1`, // a code that was refused is as good as before
		r.Origin, r.Key, r.TemplateID, r.UserID)
}

func (s Gates) decided(ctx context.Context, sql string, args ...any) (claim.Claim, error) {
	var c claim.Claim
	err := s.Pool.QueryRow(ctx, sql, args...).Scan(&c.ID, &c.TemplateID, &c.UserID, &c.State, &c.CouponID, &c.Reason, &c.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, claim.ErrNotFound
	}
	return c, pg.Translate(err)
}
