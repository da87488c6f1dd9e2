package drops

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/budget"
	"dropbell/domain/event"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Budgets keeps budgets of drops and shops.
type Budgets struct{ *pg.DB }

// NewBudgets returns the budgets of db.
func NewBudgets(db *pg.DB) Budgets { return Budgets{db} }

const (
	// worthSQL is the greatest discount of a coupon of template t.
	worthSQL = `(case t.kind when 'percent_off' then t.max_off else t.amount_off end)`
	// countedSQL is true if template t counts for budget b. A drop that ended by the clock counts
	// with its whole stock, because staff may still give its coupons away. A drop that staff
	// closed or cancelled counts with its issued coupons. Coupons that were issued by a drop that had
	// ended before the shop's budget began do not count; see earlierSQL.
	countedSQL = `t.state <> 'draft' and case b.scope when 'drop' then t.id = b.subject
        when 'shop' then t.shop_number = b.subject and t.currency = b.currency else false end`
	// earlierSQL is the number of coupons of template t that were issued before budget b began, if
	// the drop had ended by then; otherwise it is 0. The budget does not pay for these coupons.
	earlierSQL = `case when b.scope = 'shop' and t.state in ('closed', 'cancelled') and coalesce(t.ended_at, t.closes_at) < b.since
            then greatest(0, t.issued - (select coalesce(sum(s.issued), 0) from claim_seconds s where s.template_id = t.id and s.second >= date_trunc('second', b.since))) else 0 end`
	// givingSQL is true if coupons of template t can still be issued.
	givingSQL = `(t.state in ('published', 'paused') or t.state = 'closed' and t.ended_at >= least(t.closes_at, coalesce(t.valid_until, t.closes_at))
        and (t.valid_until is null or t.valid_until > clock_timestamp()))`
)

// budgetsSQL returns the budgets that meet the condition, with what is committed and used.
func budgetsSQL(condition string) string {
	return `
select b.scope, b.subject, b.currency, coalesce(d.name, s.name, p.name, ''), coalesce(d.shop_number, s.number, p.shop_number, g.shop_number, 0), b.amount, b.since,
    least(case b.scope when 'campaign' then g.given else c.committed end, ` + maxBig + `)::bigint,
    least(case b.scope when 'campaign' then g.given else c.used end, ` + maxBig + `)::bigint, case b.scope when 'campaign' then g.least else c.least end
from budgets b left join templates d on b.scope = 'drop' and d.id = b.subject left join shops s on b.scope = 'shop' and s.number = b.subject
left join campaigns p on b.scope = 'campaign' and p.id = b.subject
left join lateral (select t.shop_number, b.given::numeric * ` + worthSQL + ` as given,
        (case when p.state not in ('finished', 'cancelled', 'failed') then ` + worthSQL + ` else 0 end)::bigint as least
    from templates t where t.id = p.grant_template_id) g on true,
    lateral (select coalesce(sum((case when ` + givingSQL + ` then greatest(t.stock, t.issued) else t.issued end - e.earlier)::numeric * ` + worthSQL + `), 0) as committed,
            coalesce(sum((t.issued - e.earlier)::numeric * ` + worthSQL + `), 0) as used, coalesce(min(` + worthSQL + `) filter (where ` + givingSQL + `), 0)::bigint as least
        from templates t, lateral (select ` + earlierSQL + ` as earlier) e where ` + countedSQL + `) c
where ` + condition + ` order by b.scope desc, b.subject desc, b.currency`
}

const maxBig = `9223372036854775807`

func (s Budgets) list(ctx context.Context, condition string, args ...any) ([]budget.Budget, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, budgetsSQL(condition), args...), func(row pgx.CollectableRow) (b budget.Budget, err error) {
		err = row.Scan(&b.Scope, &b.Subject, &b.Currency, &b.Name, &b.Shop, &b.Amount, &b.Since, &b.Committed, &b.Used, &b.Least)
		return b, err
	})
	return list, pg.Translate(err)
}

// Budgets returns the budgets of shops and of their drops; see [budget.Store].
func (s Budgets) Budgets(ctx context.Context, shops []int64) ([]budget.Budget, error) {
	return s.list(ctx, `(cardinality($1::bigint[]) = 0 or coalesce(d.shop_number, s.number, p.shop_number) = any($1)) and (b.scope = 'shop' or d.state in ('draft', 'published', 'paused')
		or d.ended_at > now() - interval '7 days' or p.ended_at is null and p.id is not null or p.ended_at > now() - interval '7 days')`, append([]int64{}, shops...))
}

// Budget returns one budget; see [budget.Store].
func (s Budgets) Budget(ctx context.Context, k budget.Key) (budget.Budget, error) {
	list, err := s.list(ctx, `b.scope = $1 and b.subject = $2 and b.currency = $3`, k.Scope, k.Subject, k.Currency)
	if err == nil && len(list) == 0 {
		err = budget.ErrNotFound
	}
	if err != nil {
		return budget.Budget{}, err
	}
	return list[0], nil
}

// takenSQL returns what paid orders took off with the coupons that each budget pays for, in the order of the keys. Of a drop whose
// coupons only partly count, see earlierSQL, the coupons are summed up.
const takenSQL = `
select (case b.scope when 'campaign' then (select coalesce(sum(c.discount), 0) from coupons c
        where c.origin = 'campaign' and c.origin_key >= b.subject || ':' and c.origin_key < b.subject || ';' and c.state = 'used')
    else (select coalesce(sum(case when e.earlier = 0 then y.discounted when e.earlier < t.issued then (select coalesce(sum(c.discount), 0) from coupons c
            where c.template_id = t.id and c.state = 'used' and c.issued_at >= date_trunc('second', b.since)) else 0 end), 0)
        from templates t left join coupon_tallies y on y.template_id = t.id, lateral (select ` + earlierSQL + ` as earlier) e where ` + countedSQL + `) end)::bigint
from unnest(@scopes::text[], @subjects::bigint[], @currencies::text[]) with ordinality k (scope, subject, currency, n) left join budgets b using (scope, subject, currency)
order by k.n`

// Taken sets what paid orders took off; see [budget.Store].
func (s Budgets) Taken(ctx context.Context, list []budget.Budget) error {
	var scopes, currencies []string
	var subjects []int64
	for _, b := range list {
		scopes, subjects, currencies = append(scopes, string(b.Scope)), append(subjects, b.Subject), append(currencies, b.Currency)
	}
	taken, err := pg.Collect(ctx, s.Pool, pgx.RowTo[int64], takenSQL, pgx.StrictNamedArgs{"scopes": scopes, "subjects": subjects, "currencies": currencies})
	for i := range min(len(taken), len(list)) {
		list[i].Taken = money.Amount(taken[i])
	}
	return err
}

// Set stores a budget; see [budget.Store]. Publishing a drop takes the same lock, so a drop that
// is published meanwhile waits or is seen.
func (s Budgets) Set(ctx context.Context, k budget.Key, amount money.Amount, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockBudgets(ctx, tx, k.Scope, k.Subject); err != nil {
			return err
		}
		if k.Scope == budget.Shop {
			if err := tx.QueryRow(ctx, `select from shops where number = $1`, k.Subject).Scan(); errors.Is(err, pgx.ErrNoRows) {
				return budget.ErrNoShop
			} else if err != nil {
				return err
			}
		}
		var given int64
		if k.Scope == budget.Campaign && amount > 0 {
			var err error
			if given, err = givenBy(ctx, tx, k.Subject); err != nil {
				return err
			}
		}
		var before *int64
		err := tx.QueryRow(ctx, `select amount from budgets where scope = $1 and subject = $2 and currency = $3`, k.Scope, k.Subject, k.Currency).Scan(&before)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if before != nil {
			e.Before = budget.Set{Currency: k.Currency, Amount: *before}
		}
		if amount == 0 {
			if before == nil {
				return budget.ErrNotFound
			}
			if _, err := tx.Exec(ctx, `delete from budgets where scope = $1 and subject = $2 and currency = $3`, k.Scope, k.Subject, k.Currency); err != nil {
				return err
			}
			return pg.InsertAudit(ctx, tx, e)
		}
		_, err = tx.Exec(ctx, `insert into budgets as b (scope, subject, currency, amount, given) values ($1, $2, $3, $4, $5)
			on conflict (scope, subject, currency) do update set amount = excluded.amount, given = excluded.given, warned_at = null, used_up_at = null`,
			k.Scope, k.Subject, k.Currency, int64(amount), given)
		if err != nil {
			return err
		}
		var b budget.Budget
		err = tx.QueryRow(ctx, budgetsSQL(`b.scope = $1 and b.subject = $2 and b.currency = $3`), k.Scope, k.Subject, k.Currency).
			Scan(&b.Scope, &b.Subject, &b.Currency, &b.Name, &b.Shop, &b.Amount, &b.Since, &b.Committed, &b.Used, &b.Least)
		if err != nil {
			return err
		}
		if b.Committed > amount {
			return budget.ErrCommitted.Because("published drops commit %s %s already; choose at least this amount, or close a drop", b.Committed.Decimal(k.Currency), k.Currency)
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// givenBy locks the template whose coupons the campaign gives, as giving them does, and counts the
// coupons that it has given. Claims that the gate in Redis has accepted are counted when they are
// written, under the same lock.
func givenBy(ctx context.Context, tx pgx.Tx, campaignID int64) (given int64, err error) {
	err = tx.QueryRow(ctx, `select from templates where id = (select grant_template_id from campaigns where id = $1) for no key update`, campaignID).Scan()
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, budget.ErrNoCoupons
	}
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select count(*) from coupons where origin = 'campaign' and origin_key >= $1::bigint || ':' and origin_key < $1::bigint || ';'`, campaignID).Scan(&given)
	return given, err
}

// lockBudgets serializes changes of a budget and of what is committed of it.
func lockBudgets(ctx context.Context, tx pgx.Tx, scope budget.Scope, subject int64) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:budget:' || $1 || ':' || $2::bigint, 0))`, string(scope), subject)
	return err
}

// keepBudgets returns [budget.ErrShort] unless the stored template t, which may give its whole
// stock away, fits into the budgets of its drop and of its shop. The locks of the budgets are
// held until the transaction ends, so of two drops that are published at once the second sees
// the first.
func keepBudgets(ctx context.Context, tx pgx.Tx, t template.Template) error {
	if t.Stored != template.Published && t.Stored != template.Paused {
		return nil
	}
	for _, k := range []budget.Key{{Scope: budget.Drop, Subject: t.ID, Currency: t.Currency}, {Scope: budget.Shop, Subject: t.ShopNumber, Currency: t.Currency}} {
		if err := lockBudgets(ctx, tx, k.Scope, k.Subject); err != nil {
			return err
		}
		var b budget.Budget
		err := tx.QueryRow(ctx, budgetsSQL(`b.scope = $1 and b.subject = $2 and b.currency = $3`), k.Scope, k.Subject, k.Currency).
			Scan(&b.Scope, &b.Subject, &b.Currency, &b.Name, &b.Shop, &b.Amount, &b.Since, &b.Committed, &b.Used, &b.Least)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		if b.Committed <= b.Amount {
			continue
		}
		whose := "the drop's budget"
		if k.Scope == budget.Shop {
			whose = "the shop's budget"
		}
		own := money.Amount(math.MaxInt64)
		if worth := budget.Worth(t.Spec); worth == 0 || t.Stock < math.MaxInt64/int64(worth) {
			own = money.Amount(t.Stock) * worth
		}
		return budget.Room(b.Amount, max(0, b.Committed-own), budget.Worth(t.Spec), t.Stock, whose)
	}
	return nil
}

// markSQL stores that the budget reached a level, and announces it. It does nothing if that was
// done before, also by another worker.
const markSQL = `
with marked as (
    update budgets set warned_at = coalesce(warned_at, clock_timestamp()), used_up_at = case when @level = 'used_up' then clock_timestamp() end
    where scope = @scope and subject = @subject and currency = @currency and amount = @amount
        and case @level when 'used_up' then used_up_at is null else warned_at is null end
    returning clock_timestamp() as at
)
insert into outbox (topic, payload)
select @topic, jsonb_build_object('scope', @scope::text, 'subject', @subject::bigint::text, 'shop_number', @shop::bigint::text, 'currency', @currency::text,
    'amount', @amount::bigint, 'used', @used::bigint, 'level', @level::text, 'at', at) from marked`

// Reached returns the budgets of which 80 % or all is used. Each level is announced once, until
// the budget is set again.
func (s Budgets) Reached(ctx context.Context) (reached []budget.Budget, err error) {
	all, err := s.Budgets(ctx, nil)
	for _, b := range all {
		if b.Level() == budget.Fine {
			continue
		}
		reached = append(reached, b)
		_, failed := s.Pool.Exec(ctx, markSQL, pgx.StrictNamedArgs{"level": string(b.Level()), "scope": string(b.Scope), "subject": b.Subject, "currency": b.Currency,
			"amount": int64(b.Amount), "used": int64(b.Used), "shop": b.Shop, "topic": event.BudgetReached})
		err = errors.Join(err, pg.Translate(failed))
	}
	return reached, err
}
